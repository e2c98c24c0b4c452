"""Rights that a store needs in its clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from msgspec import Struct

from reconciler.api.content import dig
from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.documents import BUILT_IN, guessed_plural, is_never_distributed
from reconciler.kinds.body_fields import REPLICAS
from reconciler.kinds.registry import Registry
from reconciler.lease import handover_name, lease_name
from reconciler.placement import wants_capacity
from reconciler.scheduler import Schedule

_GATEWAY_API: Final = {
    ("gateway.networking.k8s.io", "BackendTLSPolicy"): "backendtlspolicies",
    ("gateway.networking.k8s.io", "Gateway"): "gateways",
    ("gateway.networking.k8s.io", "GatewayClass"): "gatewayclasses",
    ("gateway.networking.k8s.io", "GRPCRoute"): "grpcroutes",
    ("gateway.networking.k8s.io", "HTTPRoute"): "httproutes",
    ("gateway.networking.k8s.io", "ListenerSet"): "listenersets",
    ("gateway.networking.k8s.io", "ReferenceGrant"): "referencegrants",
    ("gateway.networking.k8s.io", "TCPRoute"): "tcproutes",
    ("gateway.networking.k8s.io", "TLSRoute"): "tlsroutes",
    ("gateway.networking.k8s.io", "UDPRoute"): "udproutes",
}


def resource_names(fleet: Fleet) -> dict[tuple[str, str], str]:
    """The plural of each (group, kind) that is built in, of the Gateway API, or that the store itself defines."""
    return {group_kind: guessed_plural(group_kind[1]) for group_kind in BUILT_IN} | _GATEWAY_API | _defined(fleet)


def _defined(fleet: Fleet) -> dict[tuple[str, str], str]:
    plurals: dict[tuple[str, str], str] = {}
    for identity, template in fleet.templates.items():
        if identity[:2] != ("apiextensions.k8s.io", "CustomResourceDefinition"):
            continue
        paths = (("spec", "group"), ("spec", "names", "kind"), ("spec", "names", "plural"))
        group, kind, plural = (dig(template.body, *path) for path in paths)
        if isinstance(group, str) and isinstance(kind, str) and isinstance(plural, str):
            plurals[group, kind] = plural
    return plurals


class Level(StrEnum):
    """The intended use of the rights; each level has those of the one before."""

    READ = "read"
    """Compare and report: `diff`, `status`, `run` in mode observe."""
    APPLY = "apply"
    """Create, change, adopt and release, without deleting."""
    FULL = "full"
    """Everything, deletions and replacements too."""

    def has(self, other: Level) -> bool:
        """Return whether the rights of the other level are among those of this one."""
        order = list(Level)
        return order.index(other) <= order.index(self)


_ORDER: Final = ("get", "list", "watch", "create", "patch", "delete", "escalate", "bind")
"""Verbs as people write them."""


class Right(Struct, frozen=True, order=True):
    """Verbs on one resource type. `names`: of these objects alone; empty: of all of them."""

    group: str
    resource: str
    names: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ()

    def __str__(self) -> str:
        """As kubectl names it: `get, list deployments.apps`, `get configmaps fleet-shop`."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return " ".join((", ".join(self.verbs), resource, *self.names))


def merged(rights: Iterable[Right]) -> tuple[Right, ...]:
    """The same rights, each resource once, sorted; those on some objects only as far as not all of them are meant."""
    verbs_of: dict[tuple[str, str, tuple[str, ...]], set[str]] = {}
    for right in rights:
        verbs_of.setdefault((right.group, right.resource, right.names), set()).update(right.verbs)
    result = []
    for (group, resource, names), verbs in sorted(verbs_of.items()):
        of_all = verbs_of.get((group, resource, ()), set()) if names else set()
        if left := sorted(verbs - of_all, key=_ORDER.index):
            result.append(Right(group, resource, names, tuple(left)))
    return tuple(result)


_READ: Final = ("get", "list", "watch")
_APPLY: Final = ("create", "patch")
_RBAC: Final = "rbac.authorization.k8s.io"
_ROLES: Final = {"Role": "roles", "ClusterRole": "clusterroles"}
_BINDINGS: Final = ("RoleBinding", "ClusterRoleBinding")
_CAPACITY: Final = (("", "nodes"), ("", "pods"), ("", "resourcequotas"), ("apps", "replicasets"))
"""Resources to read if a policy divides by free capacity, or fails over."""
_SCALERS: Final = (("autoscaling", "horizontalpodautoscalers"), ("keda.sh", "scaledobjects"))
"""Resources to read if others may scale anything of the store."""
EXPLAINING: Final = Right("", "events", (), ("list",))
"""The right to tell why pods are not made, where only events say it. Everything else works without it."""
_OF_OBJECTS: Final = (
    *(Right("", resource, (), ("list",)) for resource in ("events", "pods")),
    *(Right(group, resource, (), ("list",)) for group, resource in (("apps", "replicasets"), ("batch", "jobs"))),
)
PAGE_RIGHTS: Final = {"objects": _OF_OBJECTS, "logs": (*_OF_OBJECTS, Right("", "pods/log", (), ("get",)))}
"""The rights to show what is below an object and its events, and to show logs. Without them the page says so."""
_NAMESPACE: Final = ("", "Namespace")

GroupKind = tuple[str, str]


class NeededRights(Struct, frozen=True, kw_only=True):
    """The rights, sorted. `unknown`: kinds with an unknown name in a role; they are left out."""

    rights: tuple[Right, ...]
    unknown: tuple[GroupKind, ...] = ()


def needed_rights(
    schedule: Schedule,
    level: Level,
    recorded: Collection[GroupKind],
    resources: Mapping[GroupKind, str],
    holder: str,
    *,
    is_leased: bool = False,
) -> NeededRights:
    """Return the store's needs for a level.

    `recorded`: kinds with recorded copies that may have to be deleted. `resources`: the plural of each (group, kind).
    `holder`: the ConfigMap of the fleet's owner record. `is_leased`: the cluster has the leader's Lease.
    """
    fleet = schedule.fleet
    written = {
        identity: template.gvk.group_kind
        for identity, template in fleet.templates.items()
        if not is_never_distributed(template.gvk, identity, is_admitted=template.is_admitted)
    }
    kinds = {*written.values(), *recorded}
    # Namespaces, if a policy claims any: no other one is ever deleted by us.
    is_claimed = any(
        identity[:2] == _NAMESPACE and binding.policy is not None for identity, binding in schedule.bindings.items()
    )
    leaving = {*(kinds - {_NAMESPACE}), *({_NAMESPACE} if is_claimed else set()), *recorded}
    verbs = {kind: _verbs(level, may_go=kind in leaving) for kind in kinds}
    if any(identity.namespace for identity in written) or _NAMESPACE in kinds:
        verbs[_NAMESPACE] = _verbs(level, may_go=_NAMESPACE in leaving)
    of_kinds = [
        Right(group, resources[group, kind], (), used)
        for (group, kind), used in verbs.items()
        if (group, kind) in resources
    ]
    own = (*_own(level, holder), *(_lease(level, fleet.settings.name) if is_leased else ()))
    rights = merged([*of_kinds, *own, *_other_rights(fleet, schedule.interpreters, written), *_grants(fleet, level)])
    return NeededRights(rights=rights, unknown=tuple(sorted(verbs.keys() - resources.keys())))


def _verbs(level: Level, *, may_go: bool) -> tuple[str, ...]:
    return (
        *_READ,
        *(_APPLY if level.has(Level.APPLY) else ()),
        *(("delete",) if may_go and level.has(Level.FULL) else ()),
    )


def _own(level: Level, holder: str) -> Iterator[Right]:
    yield Right("", "namespaces", ("kube-system",), ("get",))
    yield Right("", "configmaps", (holder,), ("get",))
    if level.has(Level.APPLY):
        yield Right("", "namespaces", ("fleet-system",), _APPLY)
        yield Right("", "configmaps", (holder,), _APPLY)


def _lease(level: Level, fleet: str) -> Iterator[Right]:
    """Yield the rights of leader election, in the one cluster that has the Lease."""
    if level.has(Level.APPLY):
        yield Right("coordination.k8s.io", "leases", (lease_name(fleet),), ("get", *_APPLY))
        yield Right("", "configmaps", (handover_name(fleet),), ("get", *_APPLY))


def _other_rights(fleet: Fleet, interpreters: Registry, written: Mapping[Identity, GroupKind]) -> Iterator[Right]:
    if wants_capacity(fleet):
        yield from (Right(group, resource, (), ("list",)) for group, resource in _CAPACITY)
    if any(
        (kind not in BUILT_IN or interpreters.of(*kind).replicas_path == REPLICAS) for kind in set(written.values())
    ):
        yield from (Right(group, resource, (), ("list",)) for group, resource in _SCALERS)
    if any(interpreters.of(*kind).tells_by_events for kind in set(written.values())):
        yield EXPLAINING


def _grants(fleet: Fleet, level: Level) -> Iterator[Right]:
    """Yield the rights to grant roles: those in the roles, or escalate and bind; by name, so that it is no more.

    Source: Kubernetes, "Using RBAC Authorization", Privilege escalation prevention.
    """
    if not level.has(Level.APPLY):
        return
    for kind, resource in _ROLES.items():
        if names := {one.name for one in fleet.templates if one[:2] == (_RBAC, kind)}:
            yield Right(_RBAC, resource, tuple(sorted(names)), ("escalate",))
        bound = {
            dig(template.body, "roleRef", "name")
            for identity, template in fleet.templates.items()
            if identity.group == _RBAC and identity.kind in _BINDINGS and dig(template.body, "roleRef", "kind") == kind
        }
        if granted := tuple(sorted(name for name in bound if isinstance(name, str))):
            yield Right(_RBAC, resource, granted, ("bind",))
