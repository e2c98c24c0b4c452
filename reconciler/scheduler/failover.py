"""Application failover: exclusions for clusters with a failed application, so that others take it over.

Source: "PropagationPolicy and OverridePolicy", failover configuration; design#failover; design#nowhere-else;
design#end-of-an-exclusion. Unlike Karmada, nothing is excluded when no other cluster takes over, times are remembered
across restarts, and a copy that recovers in time gets its former replicas back.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from msgspec.structs import replace

from reconciler.api.binding import Constraint, PreviousPlacement, Tick
from reconciler.api.clusters import ClusterObservation, Health, Observations, Workload, workload_in
from reconciler.api.content import digest_of
from reconciler.api.fleet import Template
from reconciler.api.policies import ApplicationFailover, PurgeMode
from reconciler.api.refs import Identity
from reconciler.kinds.registry import Registry
from reconciler.observations import Replicas, age_s, in_force, is_in_force, later
from reconciler.placement import closed_by_order
from reconciler.scheduler.deschedule import PROVISION_S, is_descheduled, is_last_tier
from reconciler.scheduler.schedule import Schedule

EXCLUSION_S: Final = 600
"""Duration of the first exclusion; each later one lasts twice as long."""
EXCLUSION_S_MAX: Final = 6 * 3600
PER_TICK: Final = 8
"""So many applications fail over in one tick at most: a fault that many share must not set everything in motion."""

NOTHING_CLOSED: Final[Mapping[str, str]] = MappingProxyType({})
NEVER_TRIED: Final[Mapping[tuple[Identity, str], int]] = MappingProxyType({})


def kept_exclusions(
    schedule: Schedule, observations: Observations, now: str
) -> tuple[tuple[Constraint, ...], dict[Identity, PreviousPlacement]]:
    """Return the exclusions that are still valid or recent, and placements of recovered applications.

    One ends when its time is up and the old copy is gone, when the pod template changes (unless Never keeps the copy),
    or, under Graciously, when the copy recovers in place: the oldest then has its former placement.
    """
    constraints: list[Constraint] = []
    restored: dict[Identity, PreviousPlacement] = {}
    begun: dict[Identity, str] = {}
    for known in observations.constraints:
        if known.tick is not Tick.FAILOVER or not _is_of_now(known, schedule, observations, now):
            continue
        terms = _terms(schedule, known.identity)
        copy = workload_in(observations.clusters, known.identity, known.cluster)
        is_gracious = terms is not None and terms.purge_mode is PurgeMode.GRACIOUSLY
        is_well = copy is not None and copy.health is Health.HEALTHY
        if not (is_gracious and is_in_force(known, now) and is_well):
            # It is prolonged while its copy is there, as the reason of the deletion; one that ended longer ago explains
            # nothing of today.
            has_ended = not is_in_force(known, now) and age_s(known.until, now) < EXCLUSION_S
            is_explaining = has_ended and _leaves_a_copy(known, schedule, observations)
            constraints.append(replace(known, until=later(now, EXCLUSION_S)) if is_explaining else known)
        elif known.identity not in restored or known.since < begun[known.identity]:
            begun[known.identity] = known.since
            restored[known.identity] = PreviousPlacement(identity=known.identity, targets=known.before)
    return tuple(constraints), restored


def due_exclusions(
    schedule: Schedule, observations: Observations, now: str, tried: Mapping[tuple[Identity, str], int] = NEVER_TRIED
) -> tuple[Constraint, ...]:
    """Return exclusions for applications broken for longer than their policy tolerates, the longest first.

    `observations`: with the exclusions that are kept. `is_taken_over` decides whether others take over. `tried`: how
    often nobody did; those come later, or a few without a target would keep all others from their turn.
    """
    failed = [
        (tried.get((identity, name), 0), since, identity, name)
        for identity, name, since, patience_s in _failed(schedule, observations)
        if age_s(since, now) > patience_s
    ]
    known = {(c.identity, c.cluster): c for c in observations.constraints if c.tick is Tick.FAILOVER}
    due: list[Constraint] = []
    for _, since, identity, name in sorted(failed):
        last = known.get((identity, name))
        if last is None or not is_in_force(last, now):
            span_s = EXCLUSION_S if last is None else min(EXCLUSION_S_MAX, 2 * int(age_s(last.since, last.until)))
            terms = _terms(schedule, identity)
            assert terms is not None, "what fails over has a policy that says so"
            due.append(
                Constraint(
                    identity=identity,
                    cluster=name,
                    replicas_max=0,
                    excludes=True,
                    reason=f"unhealthy since {since}",
                    # A copy kept by Never is for a person to take away, so its cluster must not come back by itself.
                    until="" if terms.purge_mode is PurgeMode.NEVER else later(now, max(EXCLUSION_S, span_s)),
                    tick=Tick.FAILOVER,
                    since=now,
                    basis=_basis(schedule.fleet.templates[identity], schedule.interpreters),
                    before=schedule.bindings[identity].targets,
                )
            )
    return tuple(due[:PER_TICK])


def is_taken_over(
    before: Schedule, after: Schedule, exclusion: Constraint, closed: Mapping[str, str] = NOTHING_CLOSED
) -> bool:
    """Return whether clusters without a write block take over what the exclusion, the sole change, takes away."""
    old, new = before.bindings.get(exclusion.identity), after.bindings.get(exclusion.identity)
    if old is None or new is None:
        return False
    had, has = dict(old.targets), dict(new.targets)
    loses = exclusion.cluster not in has or (has[exclusion.cluster] or 0) < (had.get(exclusion.cluster) or 0)
    gains = any(
        after.hold(exclusion.identity, name) is None
        and closed_by_order(closed, exclusion.identity, name) is None
        and (name not in had or (count or 0) > (had[name] or 0))
        for name, count in has.items()
    )
    return loses and gains


def handed_back(
    schedule: Schedule, observations: Observations, restored: Mapping[Identity, PreviousPlacement], now: str
) -> tuple[Constraint, ...]:
    """Return exclusions of clusters that took over, until their copies are gone: a guard might hold these else."""
    begun = [
        Constraint(
            identity=identity,
            cluster=cluster,
            replicas_max=0,
            excludes=True,
            reason="the application recovered where it was before",
            until=later(now, EXCLUSION_S),
            tick=Tick.RECOVERY,
            since=now,
        )
        for identity, placement in sorted(restored.items())
        if identity in schedule.bindings
        for cluster in sorted(set(schedule.bindings[identity].clusters) - {name for name, _ in placement.targets})
    ]
    known = (exclusion for exclusion in in_force(observations.constraints, now) if exclusion.tick is Tick.RECOVERY)
    return (*(one for one in known if not _is_gone(one, observations)), *begun)


def _is_gone(exclusion: Constraint, observations: Observations) -> bool:
    cluster = observations.clusters.get(exclusion.cluster)
    return cluster is not None and cluster.reachable and exclusion.identity not in cluster.workloads


def overdue(schedule: Schedule, observations: Observations, now: str) -> frozenset[Identity]:
    """Return applications whose failed copy may go now, by time or new nodes alone: no event in a cluster tells."""
    return frozenset(
        identity
        for (identity, cluster), exclusion in schedule.ticked.items()
        if exclusion.tick is Tick.FAILOVER
        and (terms := _terms(schedule, identity)) is not None
        and terms.purge_mode is PurgeMode.GRACIOUSLY
        and is_grace_over(terms, exclusion, now)
        and workload_in(observations.clusters, identity, cluster) is not None
        and all(have_nodes(observations.clusters, identity, *to) for to in schedule.bindings[identity].targets)
    )


def is_grace_over(terms: ApplicationFailover, exclusion: Constraint, now: str) -> bool:
    """Return whether the excluded copy has had the grace period of Graciously."""
    return age_s(exclusion.since, now) >= (terms.grace_period_s or 0)


def have_nodes(
    observed: Mapping[str, ClusterObservation], identity: Identity, cluster: str, replicas: Replicas
) -> bool:
    """Return whether all pods of the copy are known to have nodes in a cluster that is to have so many replicas.

    Unmade pods have none, nor have those that the scheduler has not seen, nor those of replicas assigned after the
    observation. If pods could not be listed it is not known.
    """
    workload = workload_in(observed, identity, cluster)
    if workload is None or workload.without_node != 0 or workload.unschedulable or workload.missing:
        return False
    return None in (workload.assigned, replicas) or workload.assigned == replicas


def ends_of_patience(schedule: Schedule, observations: Observations) -> tuple[tuple[Identity, str, str], ...]:
    """Return failed applications that are still tolerated: identity, cluster, end (RFC 3339), sorted."""
    excluded = {(c.identity, c.cluster) for c in observations.constraints if c.tick is Tick.FAILOVER}
    return tuple(
        sorted(
            (identity, name, later(since, patience_s))
            for identity, name, since, patience_s in _failed(schedule, observations)
            if since and (identity, name) not in excluded
        )
    )


def _failed(schedule: Schedule, observations: Observations) -> Iterator[tuple[Identity, str, str, float]]:
    """Yield failed applications with cluster, time of the failure, and the seconds for which they are tolerated."""
    for name, cluster in observations.clusters.items():
        for identity, workload in cluster.workloads.items() if cluster.reachable else ():
            if workload.health is Health.UNHEALTHY:
                patience_s = _patience_s(schedule, cluster, workload)
                if patience_s is not None:
                    yield identity, name, workload.unhealthy_since, patience_s


def _patience_s(schedule: Schedule, cluster: ClusterObservation, workload: Workload) -> float | None:
    """Return for how many seconds a broken application is tolerated; None: it does not fail over."""
    identity = workload.identity
    policy, binding = schedule.policies.get(identity), schedule.bindings.get(identity)
    if policy is None or policy.application_failover is None or binding is None or identity in schedule.frozen:
        return None
    if workload.ended_by_itself:
        return None  # An interruption is a failover; what fails by its own fault fails elsewhere, too.
    if cluster.name not in binding.clusters or binding.is_dependency:
        return None
    toleration_s = float(policy.application_failover.toleration_s)
    if workload.unschedulable:
        if is_descheduled(identity, policy):
            return None
        if policy.ecs_provision and is_last_tier(policy, schedule.fleet.clusters[cluster.name]):
            toleration_s = max(toleration_s, PROVISION_S)
    return toleration_s


def _leaves_a_copy(known: Constraint, schedule: Schedule, observations: Observations) -> bool:
    """Return whether the copy that it takes away may still exist; in an unreachable cluster it counts as existing."""
    binding = schedule.bindings.get(known.identity)
    if binding is not None and known.cluster in binding.clusters:
        return False
    return not _is_gone(known, observations)


def _is_of_now(known: Constraint, schedule: Schedule, observations: Observations, now: str) -> bool:
    """Return whether it concerns the present store, and is recent enough for the next one to know of it."""
    policy, template = schedule.policies.get(known.identity), schedule.fleet.templates.get(known.identity)
    if policy is None or policy.application_failover is None or template is None:
        return False
    if known.cluster not in schedule.fleet.clusters or age_s(known.until, now) >= EXCLUSION_S_MAX:
        return False
    # A copy kept by Never is a person's to take away, whatever the present template.
    is_kept = policy.application_failover.purge_mode is PurgeMode.NEVER
    return known.basis == _basis(template, schedule.interpreters) or (
        is_kept and _leaves_a_copy(known, schedule, observations)
    )


def _terms(schedule: Schedule, identity: Identity) -> ApplicationFailover | None:
    policy = schedule.policies.get(identity)
    return policy.application_failover if policy is not None else None


def _basis(template: Template, interpreters: Registry) -> str:
    return digest_of(interpreters.of(*template.identity[:2]).pod_template(template.body) or template.body.get("spec"))
