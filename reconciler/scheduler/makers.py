"""Objects that templates of the store make, kinds that their definitions bring, and the parts of an operator.

The parts must run until the objects that the operator finalizes are gone: roles with a rule for the kind, their
bindings, the bound ServiceAccounts, and workloads that run as these. Source: Kubernetes, "Using RBAC Authorization" and
"Finalizers". A kind waits for its CustomResourceDefinition in the same plan; other clusters that do not serve it are no
candidates. Source: design#kind-not-served.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Binding
from reconciler.api.clusters import Observations
from reconciler.api.content import Json, JsonObject, dig
from reconciler.api.demand import MadeObject
from reconciler.api.fleet import Fleet, Template
from reconciler.api.refs import GVK, Identity
from reconciler.documents import defined_kind, guessed_plural, served_versions
from reconciler.incremental import Dependents, Table
from reconciler.kinds.body_fields import mapping, mappings, text
from reconciler.kinds.registry import Registry
from reconciler.templates import made_of

RBAC = "rbac.authorization.k8s.io"
_ROLES = frozenset({(RBAC, "Role"), (RBAC, "ClusterRole")})
_BINDINGS = frozenset({(RBAC, "RoleBinding"), (RBAC, "ClusterRoleBinding")})
_WRITES = frozenset({"update", "patch", "*"})
_ALL_RIGHTS = "cluster-admin"

GroupKind = tuple[str, str]
Bodies = Mapping[Identity, JsonObject]


def operator_parts(kind: GroupKind, objects: Bodies, interpreters: Registry) -> frozenset[Identity]:
    """Return the objects of a kind's operators among ours in one cluster: RBAC, ServiceAccounts, workloads."""
    plural = guessed_plural(kind[1])
    for identity, body in objects.items():
        if identity.kind == "CustomResourceDefinition" and defined_kind(body) == kind:
            plural = text(dig(body, "spec", "names", "plural")) or plural
    # As rules name them, with subresources.
    resources = {f"{name}{part}" for name in (plural, "*") for part in ("", "/status", "/finalizers", "/*")}
    roles = {one for one, body in objects.items() if one[:2] in _ROLES and _grants(body, kind[0], resources)}
    bindings = {identity for identity in objects if identity[:2] in _BINDINGS and _binds(identity, objects, roles)}
    accounts = {
        Identity("", "ServiceAccount", text(subject.get("namespace")) or binding.namespace, text(subject.get("name")))
        for binding in bindings
        for _, subject in mappings(objects[binding].get("subjects"))
        if subject.get("kind") == "ServiceAccount"
    }
    workloads = set()
    for identity, body in objects.items():
        template = interpreters.of(*identity[:2]).pod_template(body)
        if isinstance(template, Mapping):
            name = text(dig(template, "spec", "serviceAccountName")) or "default"
            if Identity("", "ServiceAccount", identity.namespace, name) in accounts:
                workloads.add(identity)
    return frozenset(roles | bindings | (accounts & objects.keys()) | workloads)


def _grants(role: JsonObject, group: str, resources: Collection[str]) -> bool:
    return any(
        not {group, "*"}.isdisjoint(_texts(rule.get("apiGroups")))
        and not _texts(rule.get("resources")).isdisjoint(resources)
        and not _WRITES.isdisjoint(_texts(rule.get("verbs")))
        for _, rule in mappings(role.get("rules"))
    )


def _binds(identity: Identity, objects: Bodies, roles: Collection[Identity]) -> bool:
    role = mapping(objects[identity].get("roleRef"))
    name = text(role.get("name"))
    if role.get("kind") == "ClusterRole":
        return name == _ALL_RIGHTS or Identity(RBAC, "ClusterRole", "", name) in roles
    return Identity(RBAC, "Role", identity.namespace, name) in roles


def _texts(value: Json) -> frozenset[str]:
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list) else frozenset()


class Maker(NamedTuple):
    """A template that makes something. `is_whole` False: it only adds to an existing object."""

    identity: Identity
    is_whole: bool


class Makers(Struct, frozen=True):
    """`of`: by made object, its makers, sorted. `products`: by maker, the objects that it makes."""

    of: Mapping[Identity, tuple[Maker, ...]] = field(default_factory=dict)
    products: Mapping[Identity, tuple[MadeObject, ...]] = field(default_factory=dict)


NO_MAKERS: Final = Makers()


class MakerTables:
    """The makers of this round, computed from those of the round before."""

    def __init__(self) -> None:
        self._made = Table[Identity, tuple[MadeObject, ...]]()
        self._makers = Dependents[Identity, Identity]()
        """Maker to what it makes."""
        self._of = Table[Identity, tuple[Maker, ...]]()

    @property
    def makers(self) -> Makers:
        """Return the makers of the last round."""
        return Makers(self._of.rows, self._made.rows)

    def follow(
        self, templates: Mapping[Identity, Template], dirty: Iterable[Identity], interpreters: Registry
    ) -> set[Identity]:
        """Update changed templates; return the objects whose makers changed."""

        def objects_made_by(identity: Identity) -> tuple[MadeObject, ...] | None:
            template = templates.get(identity)
            return (made_of(template, interpreters) or None) if template is not None else None

        kinds, known = interpreters.kinds_with("makes"), self._made.rows
        self._made.update([one for one in dirty if one[:2] in kinds or one in known], objects_made_by)
        changed, rows = self._made.changed, self._made.rows
        stirred = self._makers.on(changed)
        self._makers.update(changed, lambda maker: [one.identity for one in rows.get(maker, ())])
        stirred |= self._makers.on(changed)

        def makers_of(identity: Identity) -> tuple[Maker, ...] | None:
            makers = sorted(self._makers.of((identity,)))
            result = (Maker(one, item.is_whole) for one in makers for item in rows[one] if item.identity == identity)
            return tuple(result) or None

        self._of.update(stirred, makers_of)
        return stirred


def with_defined_kinds(fleet: Fleet, definitions: Mapping[Identity, Binding], observed: Observations) -> Observations:
    """Return the observations with exactly the versions of custom kinds that definitions bound there serve."""
    brought: dict[str, dict[tuple[str, str], list[str]]] = {}
    for identity, binding in definitions.items():
        crd = fleet.templates[identity].body
        if (kind := defined_kind(crd)) is not None:
            for name in binding.clusters:
                brought.setdefault(name, {})[kind] = served_versions(crd)
    clusters = dict(observed.clusters)
    for name, kinds in brought.items():
        if (cluster := clusters.get(name)) is not None and cluster.apis is not None:
            served = {GVK(group, version, kind) for (group, kind), versions in kinds.items() for version in versions}
            others = {gvk for gvk in cluster.apis if gvk.group_kind not in kinds}
            clusters[name] = replace(cluster, apis=frozenset(served | others))
    return replace(observed, clusters=clusters)
