"""The moves of one object: the placement in force while others take over. Source: design#effective-placement.

Purge modes of failed applications: Immediately: go as soon as others are written; Graciously: when these are healthy,
or have nodes after the grace period; Never: when a person evicts it. Source: "PropagationPolicy and OverridePolicy",
failover configuration; design#purge-modes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import NotRead, RunOutcome
from reconciler.api.plan import HeldBy, Hold
from reconciler.api.policies import ApplicationFailover, PurgeMode
from reconciler.api.refs import Identity
from reconciler.diff import Copies
from reconciler.observations import (
    ActivePlacement,
    Available,
    CopyAtRest,
    CopyAvailability,
    JobProgress,
    Replicas,
    effective,
    gains,
    pinned,
    run_of,
)
from reconciler.placement import closed_by_order
from reconciler.scheduler import RUNS_ONCE, Schedule, have_nodes, is_grace_over
from reconciler.templates import is_run_of_hook

KEPT_BY_POLICY: Final = Hold(
    HeldBy.OTHERS, "purgeMode Never keeps the failed copy until `reconciler evict` takes it away"
)


def plan_moves(copies: Copies) -> tuple[ActivePlacement, Mapping[str, CopyAtRest]]:
    """Return the placement in force for the target of an object, and its copies at rest as far as that is news."""
    identity, schedule, target, old = copies.identity, copies.schedule, copies.target, copies.old
    if is_run_of_hook(schedule.fleet.templates.get(identity)):
        return ActivePlacement(targets=target), {}  # Each cluster has a run of its own.
    if identity[:2] in RUNS_ONCE:
        run = finished_run_to_keep(schedule, identity, target, old)
        if run is not None:
            return run, {}
        ticked = [cluster for cluster in old if (identity, cluster) in schedule.ticked]
        whys = {cluster: _why_not_written(copies, cluster) for cluster in target if cluster not in old}
        unwritten = {cluster: why for cluster, why in whys.items() if why is not None}
        return pinned(target, old, {cluster: _run(copies, cluster) for cluster in old}, ticked, unwritten), {}
    if target == old:
        # Nothing moves. The usual case: the health of established copies is not needed.
        return ActivePlacement(targets=target), copies.at_rest()
    lingers = schedule.staging is not None and identity in schedule.staging.lingering
    if schedule.bindings[identity].is_dependency or lingers:
        # It follows its owners, whose move has been judged; what left the store moves nowhere.
        return ActivePlacement(targets=target), {}
    serving = {
        cluster: copies.availability(cluster) for cluster in (*target, *(name for name in old if name not in target))
    }
    policy = schedule.policies.get(identity)
    failed = failures_of(schedule.ticked, identity, old)
    if failed and policy is not None and policy.application_failover is not None:
        observed, terms = copies.snapshot.observations.clusters, policy.application_failover
        with_nodes = [
            cluster for cluster, replicas in target.items() if have_nodes(observed, identity, cluster, replicas)
        ]
        state = effective_after_failure(target, old, failed, terms, serving, with_nodes, copies.snapshot.now)
    else:
        state = effective(target, old, serving)
    return state, copies.at_rest()


def _run(copies: Copies, cluster: str) -> JobProgress:
    live = copies.snapshot.live(cluster, copies.identity)
    if live is None:
        # Of a cluster that is not read, a run is assumed to be under way: it must not start twice.
        return JobProgress.STARTED
    run, ticked = run_of(live.body), copies.schedule.ticked.get((copies.identity, cluster))
    if run is JobProgress.FINISHED and ticked is not None and ticked.tick is Tick.FAILOVER:
        # Its cluster interrupted it (or failover would have left it alone): it is to run to its end elsewhere.
        has_succeeded = copies.interpreter.outcome(live.body) is RunOutcome.SUCCEEDED
        return JobProgress.FINISHED if has_succeeded else JobProgress.STARTED
    return run


def _why_not_written(copies: Copies, cluster: str) -> str | None:
    """Return why a coming copy cannot be written now, so that it takes nothing over; None: it can."""
    identity, snapshot, comparison = copies.identity, copies.snapshot, copies.compared.get(cluster)
    if comparison is None:
        member = snapshot.members.get(cluster)
        return member.why if isinstance(member, NotRead) else "it was not compared with what is there"
    if comparison.problem is not None:
        return f"{identity} {comparison.problem.message}"
    hold = (
        (comparison.change.hold if comparison.change is not None else None)
        or copies.schedule.hold(identity, cluster)
        or closed_by_order(snapshot.observations.closed, identity, cluster)
    )
    return hold.why if hold is not None else None


def effective_after_failure(
    target: Mapping[str, Replicas],
    old: Mapping[str, Replicas],
    failed: Mapping[str, Constraint],
    terms: ApplicationFailover,
    serving: Mapping[str, CopyAvailability],
    with_nodes: Collection[str],
    now: str,
) -> ActivePlacement:
    """Return the active placement while an application leaves the clusters in which it `failed`.

    `with_nodes`: clusters where all pods have nodes. Under Immediately a failed copy goes once others are written; what
    else leaves or shrinks waits for available ones.
    """
    if terms.purge_mode is PurgeMode.GRACIOUSLY:
        state = effective(target, old, serving)
        if not all(is_grace_over(terms, exclusion, now) for exclusion in failed.values()):
            return state
        assumed = {
            cluster: replace(copy, availability=Available()) if copy.is_written and cluster in with_nodes else copy
            for cluster, copy in serving.items()
        }
        # Once nothing holds these copies, which are on no target.
        gone = failed.keys() - effective(target, old, assumed).holds.keys()
        targets = {cluster: replicas for cluster, replicas in state.targets.items() if cluster not in gone}
        return ActivePlacement(
            targets=targets, holds={name: hold for name, hold in state.holds.items() if name not in gone}
        )
    others = {cluster: replicas for cluster, replicas in old.items() if cluster not in failed}
    state = effective(target, others, serving)
    hold = KEPT_BY_POLICY
    if terms.purge_mode is PurgeMode.IMMEDIATELY:
        unwritten = [cluster for cluster in sorted(target) if gains(target, old, cluster)]
        if not unwritten and any(serving[cluster].is_written for cluster in target):
            return state
        hold = Hold(HeldBy.MOVE, f"waits for {', '.join(unwritten or sorted(target))} to take over")
    held = {cluster: old[cluster] for cluster in failed if cluster in old}
    return replace(state, targets={**state.targets, **held}, holds={**state.holds, **dict.fromkeys(held, hold)})


def finished_run_to_keep(
    schedule: Schedule, identity: Identity, target: Mapping[str, Replicas], old: Mapping[str, Replicas]
) -> ActivePlacement | None:
    """Return the active placement while Never keeps a failed Job or Pod, which must not run twice; else None."""
    policy = schedule.policies.get(identity)
    terms = policy.application_failover if policy is not None else None
    failed = failures_of(schedule.ticked, identity, old)
    if not failed or terms is None or terms.purge_mode is not PurgeMode.NEVER:
        return None
    staying = {cluster: replicas for cluster, replicas in target.items() if cluster in old}
    held = {cluster: old[cluster] for cluster in failed}
    return ActivePlacement(targets={**staying, **held}, holds=dict.fromkeys(sorted(held), KEPT_BY_POLICY))


def failures_of(
    ticked: Mapping[tuple[Identity, str], Constraint], identity: Identity, old: Iterable[str]
) -> dict[str, Constraint]:
    """Return the clusters of `old` that an application leaves since it failed there, with their exclusions."""
    ticks = {cluster: ticked.get((identity, cluster)) for cluster in old}
    return {name: tick for name, tick in ticks.items() if tick is not None and tick.tick is Tick.FAILOVER}
