"""The treatment of a failed application's old copy: the purge modes of its policy.

Source: "PropagationPolicy and OverridePolicy", failover configuration; design#purge-modes: Immediately goes as soon as
others have taken its replicas over, Graciously when these are healthy, or after the grace period when their pods have
found nodes, Never when a person evicts it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import ClusterObservation, workload_in
from reconciler.api.plan import HeldBy, Hold
from reconciler.api.policies import ApplicationFailover, PurgeMode
from reconciler.api.refs import Identity
from reconciler.observations import Available, CopyAvailability, Effective, Replicas, age_s, effective, gains
from reconciler.scheduler import Schedule

KEPT_BY_POLICY: Final = Hold(
    HeldBy.OTHERS, "purgeMode Never keeps the failed copy until `reconciler evict` takes it away"
)


def effective_after_failure(
    target: Mapping[str, Replicas],
    old: Mapping[str, Replicas],
    failed: Mapping[str, Constraint],
    terms: ApplicationFailover,
    serving: Mapping[str, CopyAvailability],
    with_nodes: Collection[str],
    now: str,
) -> Effective:
    """The placement in force while an application leaves the clusters in which it `failed`, by what excluded it there.

    `serving`: what the copy in a cluster serves. `with_nodes`: clusters where all pods of the copy have nodes.
    Immediately a failed copy goes as soon as others have been written: what cannot be written takes nothing over. What
    else leaves or shrinks meanwhile serves, and waits for those that take over to be available.
    """
    if terms.purge_mode is PurgeMode.GRACIOUSLY:
        state = effective(target, old, serving)
        if not all(is_grace_over(terms, exclusion, now) for exclusion in failed.values()):
            return state
        taken = {
            cluster: replace(copy, availability=Available()) if copy.is_written and cluster in with_nodes else copy
            for cluster, copy in serving.items()
        }
        return _without(state, failed.keys() - effective(target, old, taken).holds.keys())
    others = {cluster: replicas for cluster, replicas in old.items() if cluster not in failed}
    state = effective(target, others, serving)
    hold = KEPT_BY_POLICY
    if terms.purge_mode is PurgeMode.IMMEDIATELY:
        unwritten = [cluster for cluster in sorted(target) if gains(target, old, cluster)]
        if not unwritten and any(serving[cluster].is_written for cluster in target):
            return state
        hold = Hold(HeldBy.MOVE, f"waits for {', '.join(unwritten or sorted(target))} to take over")
    kept = {cluster: old[cluster] for cluster in failed if cluster in old}
    return replace(state, targets={**state.targets, **kept}, holds={**state.holds, **dict.fromkeys(kept, hold)})


def _without(state: Effective, copies: Collection[str]) -> Effective:
    """The state once nothing holds these copies, which are on no target."""
    targets = {cluster: replicas for cluster, replicas in state.targets.items() if cluster not in copies}
    return Effective(targets=targets, holds={name: hold for name, hold in state.holds.items() if name not in copies})


def run_kept_by_policy(
    schedule: Schedule, identity: Identity, target: Mapping[str, Replicas], old: Mapping[str, Replicas]
) -> Effective | None:
    """The placement in force while Never keeps a failed Job or bare Pod, None when it does not.

    It must not run twice, so that nothing takes over before a person has taken it away.
    """
    policy = schedule.policies.get(identity)
    terms = policy.application_failover if policy is not None else None
    failed = failures_of(schedule.ticked, identity, old) if schedule.ticked else {}
    if not failed or terms is None or terms.purge_mode is not PurgeMode.NEVER:
        return None
    staying = {cluster: replicas for cluster, replicas in target.items() if cluster in old}
    kept = {cluster: old[cluster] for cluster in failed}
    return Effective(targets={**staying, **kept}, holds=dict.fromkeys(sorted(kept), KEPT_BY_POLICY))


def is_grace_over(terms: ApplicationFailover, exclusion: Constraint, now: str) -> bool:
    """Return whether the excluded copy has had the grace period of Graciously."""
    return age_s(exclusion.since, now) >= (terms.grace_period_s or 0)


class Scheduled(StrEnum):
    """The state of all pods of a copy: on nodes or not. Only a known yes lets another copy go."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def scheduled(
    observed: Mapping[str, ClusterObservation], identity: Identity, cluster: str, replicas: Replicas
) -> Scheduled:
    """Return whether all pods of the copy have nodes in a cluster that is to have so many replicas.

    Unmade pods have none, nor have those that the scheduler has not seen, nor those of replicas assigned after the
    observation. If pods could not be listed it is unknown.
    """
    workload = workload_in(observed, identity, cluster)
    if workload is None:
        return Scheduled.UNKNOWN
    is_assigned = None in (workload.assigned, replicas) or workload.assigned == replicas
    if workload.unschedulable or workload.missing or workload.without_node or not is_assigned:
        return Scheduled.NO
    return Scheduled.UNKNOWN if workload.without_node is None else Scheduled.YES


def failures_of(
    ticked: Mapping[tuple[Identity, str], Constraint], identity: Identity, old: Iterable[str]
) -> dict[str, Constraint]:
    """Return the clusters of `old` that an application leaves since it failed there, with their exclusions."""
    found = {cluster: ticked.get((identity, cluster)) for cluster in old}
    return {name: tick for name, tick in found.items() if tick is not None and tick.tick is Tick.FAILOVER}
