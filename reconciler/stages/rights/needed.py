"""The rights that a store needs in its clusters: for its own kinds, and for other reads of the program.

Kinds are listed and watched in all namespaces, by our label, which no role can be limited to: who may list Secrets may
read all of them. So a kind is named only when the store, or its remains in a cluster, have it. Source:
design#least-privilege; Kubernetes, "Using RBAC Authorization".
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from reconciler.interpreters.registry import Registry
from reconciler.interpreters.replicas import REPLICAS
from reconciler.model.fleet import Fleet
from reconciler.model.refs import Identity
from reconciler.model.tree import dig
from reconciler.stages.decision import Decision
from reconciler.stages.documents import BUILT_IN, is_never_distributed
from reconciler.stages.leadership import handover_name, lease_name
from reconciler.stages.placement import wants_capacity
from reconciler.stages.rights.right import Level, Right, merged

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
_NAMESPACE: Final = ("", "Namespace")

GroupKind = tuple[str, str]


class NeededRights(Struct, frozen=True, kw_only=True):
    """The rights, sorted. `unknown`: kinds with an unknown name in a role; they are left out."""

    rights: tuple[Right, ...]
    unknown: tuple[GroupKind, ...] = ()


def needed_rights(
    decision: Decision,
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
    fleet = decision.fleet
    written = {
        identity: template.gvk.group_kind
        for identity, template in fleet.templates.items()
        if not is_never_distributed(template.gvk, identity)
    }
    kinds = {*written.values(), *recorded}
    leaving = {*(kinds - {_NAMESPACE}), *_claimed_namespaces(decision), *recorded}
    verbs = {kind: _verbs(level, may_go=kind in leaving) for kind in kinds}
    if any(identity.namespace for identity in written) or _NAMESPACE in kinds:
        verbs[_NAMESPACE] = _verbs(level, may_go=_NAMESPACE in leaving)
    of_kinds = [
        Right(group, resources[group, kind], (), found)
        for (group, kind), found in verbs.items()
        if (group, kind) in resources
    ]
    own = (*_own(level, holder), *(_lease(level, fleet.settings.name) if is_leased else ()))
    rights = merged([*of_kinds, *own, *_beside(fleet, decision.interpreters, written), *_grants(fleet, level)])
    return NeededRights(rights=rights, unknown=tuple(sorted(verbs.keys() - resources.keys())))


def _verbs(level: Level, *, may_go: bool) -> tuple[str, ...]:
    return (
        *_READ,
        *(_APPLY if level.has(Level.APPLY) else ()),
        *(("delete",) if may_go and level.has(Level.FULL) else ()),
    )


def _claimed_namespaces(decision: Decision) -> set[GroupKind]:
    """Namespaces, if a policy claims any: no other one is ever deleted by us."""
    is_claimed = any(
        identity[:2] == _NAMESPACE and binding.policy is not None for identity, binding in decision.bindings.items()
    )
    return {_NAMESPACE} if is_claimed else set()


def _own(level: Level, holder: str) -> Iterator[Right]:
    """Yield the rights for the program's own objects in each cluster, and for its identity."""
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


def _beside(fleet: Fleet, interpreters: Registry, written: Mapping[Identity, GroupKind]) -> Iterator[Right]:
    """Yield the rights for reads beside the store's own objects."""
    if wants_capacity(fleet):
        yield from (Right(group, resource, (), ("list",)) for group, resource in _CAPACITY)
    if any(_may_be_scaled(kind, interpreters) for kind in set(written.values())):
        yield from (Right(group, resource, (), ("list",)) for group, resource in _SCALERS)
    if any(interpreters.of(*kind).tells_by_events for kind in set(written.values())):
        yield EXPLAINING


def _may_be_scaled(kind: GroupKind, interpreters: Registry) -> bool:
    return kind not in BUILT_IN or interpreters.of(*kind).replicas_path == REPLICAS


def _grants(fleet: Fleet, level: Level) -> Iterator[Right]:
    """Yield the rights to grant roles: those in the roles, or escalate and bind; by name, so that it is no more.

    Source: Kubernetes, "Using RBAC Authorization", Privilege escalation prevention.
    """
    if not level.has(Level.APPLY):
        return
    for kind, resource in _ROLES.items():
        if names := _names(identity for identity in fleet.templates if identity[:2] == (_RBAC, kind)):
            yield Right(_RBAC, resource, names, ("escalate",))
        bound = {
            dig(template.body, "roleRef", "name")
            for identity, template in fleet.templates.items()
            if identity.group == _RBAC and identity.kind in _BINDINGS and dig(template.body, "roleRef", "kind") == kind
        }
        if found := tuple(sorted(name for name in bound if isinstance(name, str))):
            yield Right(_RBAC, resource, found, ("bind",))


def _names(identities: Iterable[Identity]) -> tuple[str, ...]:
    return tuple(sorted({identity.name for identity in identities}))
