"""The moves of one object: the placement in force while others take over. Source: design#effective-placement."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.binding import Tick
from reconciler.api.clusters import NotRead, RunOutcome
from reconciler.diff import Copies
from reconciler.observations import Effective, Rest, Run, effective, pinned, run_of
from reconciler.placement import closed_by_order
from reconciler.planner.purge import Scheduled, effective_after_failure, failures_of, run_kept_by_policy, scheduled
from reconciler.scheduler import RUNS_ONCE
from reconciler.templates import is_run_of_hook


def plan_moves(copies: Copies) -> tuple[Effective, Mapping[str, Rest]]:
    """Return the placement in force for the target of an object, and its copies at rest as far as that is news."""
    identity, schedule, target, old = copies.identity, copies.schedule, copies.target, copies.old
    if is_run_of_hook(schedule.fleet.templates.get(identity)):
        return Effective(targets=target), {}  # Each cluster has a run of its own.
    if identity[:2] in RUNS_ONCE:
        return run_kept_by_policy(schedule, identity, target, old) or _pinned(copies), {}
    if target == old:
        # Nothing moves. The usual case: the health of established copies is not needed.
        return Effective(targets=target), copies.at_rest()
    if schedule.bindings[identity].is_dependency or schedule.lingers(identity):
        # It follows its owners, whose move has been judged; what left the store moves nowhere.
        return Effective(targets=target), {}
    serving = {cluster: copies.serving(cluster) for cluster in (*target, *(name for name in old if name not in target))}
    policy = schedule.policies.get(identity)
    failed = failures_of(schedule.ticked, identity, old) if schedule.ticked else {}
    if failed and policy is not None and policy.application_failover is not None:
        observed, terms = copies.snapshot.observations.clusters, policy.application_failover
        with_nodes = [
            cluster
            for cluster, replicas in target.items()
            if scheduled(observed, identity, cluster, replicas) is Scheduled.YES
        ]
        state = effective_after_failure(target, old, failed, terms, serving, with_nodes, copies.snapshot.now)
    else:
        state = effective(target, old, serving)
    return state, copies.at_rest()


def _pinned(copies: Copies) -> Effective:
    """Return the active placement of objects that must not run twice."""
    identity, schedule, target, old = copies.identity, copies.schedule, copies.target, copies.old
    runs = {cluster: _run(copies, cluster) for cluster in old}
    ticked = [cluster for cluster in old if (identity, cluster) in schedule.ticked]
    arriving = [cluster for cluster in target if cluster not in old]
    whys = {cluster: _why_not_written(copies, cluster) for cluster in arriving}
    return pinned(target, old, runs, ticked, {cluster: why for cluster, why in whys.items() if why is not None})


def _run(copies: Copies, cluster: str) -> Run:
    live = copies.snapshot.live(cluster, copies.identity)
    if live is None:
        # Of a cluster that is not read, a run is assumed to be under way: it must not start twice.
        return Run.STARTED
    run, ticked = run_of(live.body), copies.schedule.ticked.get((copies.identity, cluster))
    if run is Run.FINISHED and ticked is not None and ticked.tick is Tick.FAILOVER:
        # Its cluster interrupted it (or failover would have left it alone): it is to run to its end elsewhere.
        return Run.FINISHED if copies.interpreter.outcome(live.body) is RunOutcome.SUCCEEDED else Run.STARTED
    return run


def _why_not_written(copies: Copies, cluster: str) -> str | None:
    """Return why a copy that is to come to a cluster cannot be made there now, as far as is known; None: it can.

    What may not be written takes nothing over, so that nothing may be taken away for it.
    """
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
