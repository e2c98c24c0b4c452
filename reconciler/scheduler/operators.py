"""The parts of an operator: they must run until the objects that it finalizes are gone.

An operator may write objects of a kind when RBAC grants it: roles with a rule for the kind, their bindings, the bound
ServiceAccounts, and the workloads that run as these. Source: Kubernetes, "Using RBAC Authorization" and "Finalizers":
an object with a finalizer stays until a controller has taken the finalizer off.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from reconciler.api.refs import Identity
from reconciler.api.tree import Json, JsonObject, dig
from reconciler.documents import guessed_plural
from reconciler.kinds.body_fields import mapping, mappings, text
from reconciler.kinds.registry import Registry

RBAC = "rbac.authorization.k8s.io"
_WRITES = frozenset({"update", "patch", "*"})
_ALL_RIGHTS = "cluster-admin"

GroupKind = tuple[str, str]
Bodies = Mapping[Identity, JsonObject]


def operator_parts(kind: GroupKind, objects: Bodies, interpreters: Registry) -> frozenset[Identity]:
    """Return the objects of a kind's operators in one cluster: RBAC, ServiceAccounts, workloads.

    `objects`: ours in the cluster, by identity.
    """
    resources = _resources(kind, objects)
    roles = {one for one, body in objects.items() if _is_role(one) and _grants(body, kind[0], resources)}
    bindings = {identity for identity in objects if _is_binding(identity) and _binds(identity, objects, roles)}
    accounts = {account for identity in bindings for account in _accounts(identity, objects[identity])}
    workloads = {
        identity
        for identity, body in objects.items()
        if (account := _account_of(identity, body, interpreters)) is not None and account in accounts
    }
    return frozenset(roles | bindings | (accounts & objects.keys()) | workloads)


def _is_role(identity: Identity) -> bool:
    return identity.group == RBAC and identity.kind in ("Role", "ClusterRole")


def _is_binding(identity: Identity) -> bool:
    return identity.group == RBAC and identity.kind in ("RoleBinding", "ClusterRoleBinding")


def _grants(role: JsonObject, group: str, resources: Collection[str]) -> bool:
    return any(
        not {group, "*"}.isdisjoint(_texts(rule.get("apiGroups")))
        and not _texts(rule.get("resources")).isdisjoint(resources)
        and not _WRITES.isdisjoint(_texts(rule.get("verbs")))
        for _, rule in mappings(role.get("rules"))
    )


def _resources(kind: GroupKind, objects: Bodies) -> frozenset[str]:
    """Return the resource names of a kind in RBAC rules, with its subresources."""
    plural = guessed_plural(kind[1])
    for identity, body in objects.items():
        if identity.kind == "CustomResourceDefinition" and (dig(body, "spec", "group"), _kind_of(body)) == kind:
            plural = text(dig(body, "spec", "names", "plural")) or plural
    return frozenset(f"{name}{part}" for name in (plural, "*") for part in ("", "/status", "/finalizers", "/*"))


def _kind_of(definition: JsonObject) -> Json:
    return dig(definition, "spec", "names", "kind")


def _binds(identity: Identity, objects: Bodies, roles: Collection[Identity]) -> bool:
    role = mapping(objects[identity].get("roleRef"))
    name = text(role.get("name"))
    if role.get("kind") == "ClusterRole":
        return name == _ALL_RIGHTS or Identity(RBAC, "ClusterRole", "", name) in roles
    return Identity(RBAC, "Role", identity.namespace, name) in roles


def _accounts(identity: Identity, binding: JsonObject) -> Iterator[Identity]:
    for _, subject in mappings(binding.get("subjects")):
        if subject.get("kind") == "ServiceAccount":
            namespace = text(subject.get("namespace")) or identity.namespace
            yield Identity("", "ServiceAccount", namespace, text(subject.get("name")))


def _account_of(identity: Identity, body: JsonObject, interpreters: Registry) -> Identity | None:
    """The account that the pods of a workload have; None: it has no pods."""
    template = interpreters.of(*identity[:2]).pod_template(body)
    if not isinstance(template, Mapping):
        return None
    name = text(dig(template, "spec", "serviceAccountName")) or "default"
    return Identity("", "ServiceAccount", identity.namespace, name)


def _texts(value: Json) -> frozenset[str]:
    return frozenset(one for one in value if isinstance(one, str)) if isinstance(value, list) else frozenset()
