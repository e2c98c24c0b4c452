"""All ticks at one moment: constraints from now on, and the schedule under them; since when workloads are unhealthy.

Pure, so that a tick can be shown beforehand (`diff --at`). Source: design#ticks-constrain; design#timers: they survive
restarts. Conditions in a cluster begin again with every flap of a probe, and many kinds have none.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import Constraint, PreviousPlacement, Tick
from reconciler.api.clusters import ClusterObservation, Health, Observations, Workload
from reconciler.api.refs import Identity
from reconciler.observations import is_timer
from reconciler.scheduler.deschedule import deschedule
from reconciler.scheduler.failover import NEVER_TRIED, due_exclusions, handed_back, is_taken_over, kept_exclusions
from reconciler.scheduler.schedule import Schedule


class Ticked(Struct, frozen=True, kw_only=True):
    """The result. `restored`: placements given back. `left`: failed applications that stay: no taker, or advice."""

    constraints: tuple[Constraint, ...]
    schedule: Schedule
    restored: Mapping[Identity, PreviousPlacement] = field(default_factory=dict)
    excluded: tuple[Constraint, ...] = ()
    left: tuple[Constraint, ...] = ()


class Proposal(Struct, frozen=True, kw_only=True):
    """Constraints that are to hold. `wanted`: new exclusions, if others take over. `due`: failed applications."""

    observations: Observations
    wanted: tuple[Constraint, ...]
    due: tuple[Constraint, ...]
    restored: Mapping[Identity, PreviousPlacement]


def propose(
    schedule: Schedule,
    observations: Observations,
    now: str,
    *,
    deschedules: bool = True,
    tried: Mapping[tuple[Identity, str], int] = NEVER_TRIED,
) -> Proposal:
    """Return the constraints from now on, those of persons and files too. `deschedules`: time for descheduling, too."""
    before = observations.constraints
    capped = tuple(known for known in before if known.tick is Tick.DESCHEDULING)
    caps = deschedule(schedule, observations, now) if deschedules else capped
    exclusions, restored = kept_exclusions(schedule, observations, now)
    due = due_exclusions(schedule, replace(observations, constraints=exclusions), now, tried)
    wanted = due if schedule.fleet.settings.failover_act else ()
    orders = tuple(known for known in before if known.tick in (Tick.GIVEN, Tick.EVICTION))
    replaced = {(exclusion.identity, exclusion.cluster) for exclusion in wanted}
    staying = (known for known in exclusions if (known.identity, known.cluster) not in replaced)
    failing = {exclusion.identity for exclusion in wanted}
    back = handed_back(schedule, observations, restored, now)
    others = (*caps, *staying, *(one for one in back if one.identity not in failing), *orders)
    proposed = replace(observations, previous={**observations.previous, **restored}, constraints=(*others, *wanted))
    return Proposal(observations=proposed, wanted=wanted, due=due, restored=restored)


def accept(before: Schedule, after: Schedule, proposal: Proposal) -> Ticked:
    """Return the tick without exclusions that nobody takes over; without some, `schedule` is to be made again."""
    observations, acts = proposal.observations, before.fleet.settings.failover_act
    refused = tuple(one for one in proposal.wanted if not is_taken_over(before, after, one, observations.closed))
    return Ticked(
        constraints=tuple(one for one in observations.constraints if one not in refused),
        schedule=after,
        restored=proposal.restored,
        excluded=tuple(one for one in proposal.wanted if one not in refused),
        left=refused if acts else proposal.due,
    )


def tick(
    schedule: Schedule, observations: Observations, now: str, decide: Callable[[Observations], Schedule]
) -> Ticked:
    """Return the constraints from now on, and the schedule under them. `observations`: as for `propose`."""
    proposal = propose(schedule, observations, now)
    is_other = proposal.observations.constraints != observations.constraints
    ticked = accept(schedule, decide(proposal.observations) if is_other else schedule, proposal)
    if ticked.constraints == proposal.observations.constraints:
        return ticked
    return replace(ticked, schedule=decide(replace(proposal.observations, constraints=ticked.constraints)))


LOOKED = "looked for replicas without a node"
"""Timer key: the first descheduling check after a start of the service."""


def reported_key(event: str, identity: Identity, cluster: str) -> str:
    """Return the timer key: a failed application has been reported."""
    return f"{event} {identity} @ {cluster}"


def remembered_times(observations: Observations, timers: Mapping[str, str]) -> tuple[Observations, dict[str, str]]:
    """Return observations with the earliest known times, and the timers; unreachable clusters end none."""
    clusters: dict[str, ClusterObservation] = {}
    after: dict[str, str] = {}
    for name, cluster in observations.clusters.items():
        if not cluster.reachable:
            after |= {key: since for key, since in timers.items() if key.endswith(f" @ {name}")}
        changed: dict[Identity, Workload] = {}
        for identity, workload in cluster.workloads.items() if cluster.reachable else ():
            if workload.health is Health.UNHEALTHY:
                key = f"unhealthy {identity} @ {name}"
                after[key] = since = min(timers.get(key, workload.unhealthy_since), workload.unhealthy_since)
                ended = f"ended by itself {identity} @ {name}"
                # The pods that show it may be gone by now, with their failed node.
                by_itself = workload.ended_by_itself or timers.get(ended) == workload.unhealthy_since
                if by_itself:
                    after[ended] = workload.unhealthy_since
                if since != workload.unhealthy_since or by_itself != workload.ended_by_itself:
                    changed[identity] = replace(workload, unhealthy_since=since, ended_by_itself=by_itself)
        clusters[name] = replace(cluster, workloads={**cluster.workloads, **changed}) if changed else cluster
    # No workload renews these timers; a report is valid while its reason lasts.
    for key, since in timers.items():
        event, _, about = key.partition(" ")
        if key == LOOKED or is_timer(key) or (event.startswith("Failover") and f"unhealthy {about}" in after):
            after[key] = since
    return replace(observations, clusters=clusters), dict(sorted(after.items()))
