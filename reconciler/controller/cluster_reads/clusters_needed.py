"""The reads of a round: capacity only where a policy divides by it, workloads, autoscalers, and its own clusters.

Without this, one policy that divides by capacity would have the workloads of all others listed in every cluster.
Source: design#autoscaled-replicas; design#parts; ADR 24 (each process plans for the whole fleet).
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import (
    ClusterObservation,
    Listed,
    LiveObject,
    Observations,
    Unlisted,
    UnlistedCause,
    Workload,
)
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import Ledger
from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.documents import BUILT_IN
from reconciler.errors import ConfigurationError, KindFault, KindNotServed
from reconciler.incremental import changed_keys
from reconciler.kinds.body_fields import REPLICAS
from reconciler.kinds.registry import GENERIC, Registry
from reconciler.kube.client import MemberCluster
from reconciler.kube.discovery import Discovery
from reconciler.kube.served_kinds import unlisted
from reconciler.ownership import entries_of
from reconciler.placement import groups_of, policy_wants_capacity, tier_of, wants_capacity
from reconciler.scheduler import Schedule

_SCALERS: Final = (("autoscaling", "HorizontalPodAutoscaler"), ("keda.sh", "ScaledObject"))
_KNOWN_WRITERS: Final = frozenset({"kube-controller-manager", "keda-operator"})
"""The names of the autoscalers of Kubernetes and KEDA that write a scale subresource."""
_NAMESPACES_MAX: Final = 4
"""Above so many namespaces, one list of the whole cluster is cheaper than one of each."""


async def autoscaled(
    member: MemberCluster,
    discovery: Discovery,
    objects: Mapping[Identity, LiveObject],
    interpreters: Registry,
    at_fault: Collection[GVK] = (),
) -> tuple[frozenset[Identity], frozenset[Listed], set[Unlisted]]:
    """Return the autoscaled ones of the objects, the lists of autoscalers, and the failed ones. `at_fault`: not asked.

    Where autoscalers cannot be listed, what one of them has scaled before counts as scaled still.
    """
    candidates = {identity for identity, live in objects.items() if _may_be_scaled(live, interpreters)}
    if not candidates:
        return frozenset(), frozenset(), set()
    kinds = [served.gvk for group_kind in _SCALERS if (served := discovery.preferred(*group_kind)) is not None]
    namespaces = {identity.namespace for identity in candidates}
    places = sorted(namespaces) if len(namespaces) <= _NAMESPACES_MAX else [""]
    targets: set[Identity] = set()
    failed: set[Unlisted] = set()

    async def one(gvk: GVK, namespace: str) -> bool:
        if gvk in at_fault:
            return False
        try:
            listing = await member.list_objects(gvk, namespace=namespace)
        except KindNotServed:
            return False
        except KindFault as error:
            why = f"what a {gvk.kind} of others scales is not known: {error.message}"
            failed.add(unlisted(Listed(gvk, namespace), error, why))
            return False
        interpreter = interpreters.of(*gvk.group_kind)
        scaled = (interpreter.scale_target(scaler.body) for scaler in listing.objects)
        targets.update(target for target in scaled if target is not None)
        return not listing.unread

    were_read = await asyncio.gather(*(one(gvk, namespace) for gvk in kinds for namespace in places))
    if not all(were_read):
        for identity in candidates:
            entries = entries_of(objects[identity].body)
            scalers = {entry.get("manager") for entry in entries if entry.get("subresource") == "scale"}
            targets |= {identity} if scalers & _KNOWN_WRITERS else set()
    listed = frozenset(Listed(gvk, namespace) for gvk in kinds for namespace in places)
    return frozenset(candidates & targets), listed, failed


def scaled_by(gone: Iterable[Identity], ledger: Ledger, interpreters: Registry) -> set[Identity]:
    """Return the recorded scale targets of removed autoscalers."""
    targets: set[Identity] = set()
    for identity in gone:
        interpreter = interpreters.of(*identity[:2])
        for rows in ledger.values() if "scale_target" in interpreter.rules else ():
            row = rows.get(identity)
            target = interpreter.scale_target(row.recorded) if row is not None and row.recorded is not None else None
            targets |= {target} if target is not None else set()
    return targets


def _may_be_scaled(live: LiveObject, interpreters: Registry) -> bool:
    """Return whether the kind can have an autoscaler; an unknown kind shows it once it was scaled."""
    interpreter = interpreters.of(*live.identity[:2])
    if interpreter is not GENERIC:
        return interpreter.replicas_path == REPLICAS
    return any(entry.get("subresource") == "scale" for entry in entries_of(live.body))


def is_room_needed(fleet: Fleet, decided: Schedule | None) -> bool:
    """Return whether the changes of a store since the last schedule need the present capacity."""
    if not wants_capacity(fleet):
        return False
    if decided is None or decided.fleet.propagation != fleet.propagation:
        return True
    return any(may_need_room(each, decided) for each in changed_keys(decided.fleet.templates, fleet.templates))


def may_need_room(identity: Identity, decided: Schedule) -> bool:
    """Return whether free capacity may matter for a template: unless a policy that needs none claims it."""
    policy = decided.policies.get(identity)
    return policy is None or policy_wants_capacity(policy)


def workloads_to_observe(
    fleet: Fleet, interpreters: Registry, decided: Schedule | None = None
) -> dict[Identity, ResourceRef]:
    """The workloads of the store whose state in the clusters may decide anything. `decided`: the last schedule."""
    if decided is not None and decided.fleet.propagation != fleet.propagation:
        decided = None
    fails_over = can_fail_over(fleet)
    return {
        identity: ResourceRef(template.gvk, identity.namespace, identity.name)
        for identity, template in fleet.templates.items()
        if is_to_observe(identity, interpreters, decided, fails_over=fails_over)
        # What no policy claims is placed nowhere, unless it has come since.
        and (decided is None or identity not in decided.claims.unclaimed)
    }


def clusters_with_room(fleet: Fleet, ledger: Ledger) -> frozenset[str]:
    """The clusters whose free capacity may decide anything: a policy that looks at it may place there, or has."""
    wanting = [policy for policy in fleet.propagation if policy_wants_capacity(policy)]
    left = dict(fleet.clusters)
    for group in {group for policy in wanting for group in groups_of(policy, by_capacity=True)}:
        if not left:
            break
        left = {name: cluster for name, cluster in left.items() if tier_of(cluster, group)[0] is None}
    claims = {str(policy.ref) for policy in wanting}
    holding = {name for name in left if any(row.policy in claims for row in ledger.get(name, {}).values())}
    return frozenset((fleet.clusters.keys() - left.keys()) | holding)


def can_fail_over(fleet: Fleet) -> bool:
    """Return whether any policy asks for application failover."""
    return any(policy.application_failover is not None for policy in fleet.propagation)


def is_to_observe(identity: Identity, interpreters: Registry, decided: Schedule | None, *, fails_over: bool) -> bool:
    """Return whether the state of an object may matter, for placement or (`fails_over`: a policy asks) failover."""
    if decided is not None and not may_need_room(identity, decided):
        return False
    interpreter = interpreters.of(*identity[:2])
    if interpreter.replicas_path or "demand" in interpreter.rules:
        return True
    policy = decided.policies.get(identity) if decided is not None else None
    may_fail_over = fails_over if policy is None else policy.application_failover is not None
    may_run = "pod_template" in interpreter.rules or identity[:2] not in BUILT_IN
    return may_fail_over and may_run


def causes(observed: ClusterObservation) -> frozenset[tuple[Listed, UnlistedCause]]:
    """Return the failed lists with their causes; the words may differ from one time to the next."""
    return frozenset((one.what, one.cause) for one in observed.unlisted)


def is_news(now: Observations, before: Observations) -> bool:
    """Return whether placement may change; the time of the observation does not matter."""
    return _placing(now) != _placing(before)


def _placing(observations: Observations) -> dict[str, object]:
    return {
        name: replace(
            observed,
            observed_at="",
            # Without what changes while pods come and go; ticks read the rest.
            workloads={
                identity: Workload(
                    gvk=workload.gvk,
                    identity=identity,
                    replicas=workload.replicas,
                    assigned=workload.assigned,
                    missing=workload.missing,
                    of_fleet=workload.of_fleet,
                )
                for identity, workload in observed.workloads.items()
            },
            pending=tuple(replace(group, names=()) for group in observed.pending),
        )
        for name, observed in observations.clusters.items()
    }


def pulling(fleet: Fleet) -> frozenset[str]:
    """Return the clusters with a process of their own: the main process leaves them alone."""
    return frozenset([name for name, cluster in fleet.clusters.items() if cluster.pulls])


class ClusterFilter(Struct, frozen=True):
    """The clusters that a process applies to. `chosen`: these; empty: all but those with a process of their own."""

    chosen: tuple[str, ...] = ()

    @property
    def is_whole(self) -> bool:
        """Return whether this process schedules for the fleet: it runs ticks, and its placements are active."""
        return not self.chosen

    def own(self, fleet: Fleet) -> frozenset[str]:
        """The clusters of the fleet that this process applies to."""
        return frozenset(self.chosen or fleet.clusters.keys() - pulling(fleet)).intersection(fleet.clusters)

    def elsewhere(self, fleet: Fleet) -> frozenset[str]:
        """The other clusters of the fleet."""
        return frozenset(fleet.clusters) - self.own(fleet)

    def cut(self, fleet: Fleet) -> Fleet:
        """Return the fleet without the clusters of others, for tasks that ask each cluster and place nothing."""
        own = self.own(fleet)
        return replace(fleet, clusters={name: cluster for name, cluster in fleet.clusters.items() if name in own})

    def check(self, fleet: Fleet) -> None:
        """Raise unless the fleet has the chosen clusters. Raises ConfigurationError: it has no such cluster."""
        unknown = ", ".join(sorted(set(self.chosen) - fleet.clusters.keys()))
        if unknown:
            there = ", ".join(sorted(fleet.clusters)) or "none"
            raise ConfigurationError(f"--cluster {unknown}: the store has no such Cluster document; it has {there}")
