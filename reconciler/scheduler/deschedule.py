"""Descheduling: caps for clusters where replicas find no node, so that placement moves them to free capacity.

Source: "Dynamic distribution and descheduling"; design#descheduler; design#cap. Karmada handles Deployments alone,
takes replicas away even if no cluster can take them, and requires that fewer pods than assigned are ready, so that the
rolling update of the page would move nothing. Here pods of the newest revision count, old ones do not keep a cluster,
and placement holds a cap only as far as others have capacity.
"""

from __future__ import annotations

from typing import Final

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import Cluster, ClusterObservation, Observations, Workload
from reconciler.api.policies import PropagationPolicy
from reconciler.api.refs import Identity
from reconciler.observations import age_s
from reconciler.placement import admits, basis_of, fit, free_room, groups_of, is_wished_as_then, tier_of
from reconciler.scheduler.schedule import Schedule
from reconciler.templates import claims_of, demand_of

CAP_S_MIN: Final = 600.0
"""A cap stays at least so long, whatever changes."""
PROVISION_S: Final = 900.0
"""So long a pod may wait for a new node where `autoScaling.ecsProvision` makes some."""

_KINDS: Final = frozenset({("apps", "Deployment"), ("apps", "StatefulSet"), ("batch", "Job")})

Caps = dict[tuple[Identity, str], Constraint]


def deschedule(schedule: Schedule, observations: Observations, now: str) -> tuple[Constraint, ...]:
    """Return the caps from now on, remaining and new ones. Clusters that cannot be read neither get nor lose one."""
    caps: Caps = {
        (known.identity, known.cluster): known
        for known in observations.constraints
        if known.tick is Tick.DESCHEDULING and _still_holds(known, schedule, observations, now)
    }
    for name, cluster in sorted(observations.clusters.items()):
        if not cluster.reachable or cluster.nodes is None:
            continue
        for identity, workload in sorted(cluster.workloads.items()):
            cap = _cap(schedule, cluster, workload, now) if workload.unschedulable else None
            known = caps.get((identity, name))
            if cap is not None and (known is None or cap < known.replicas_max):
                template, policy = schedule.fleet.templates[identity], schedule.policies[identity]
                pods = "1 pod" if workload.unschedulable == 1 else f"{workload.unschedulable} pods"
                caps[identity, name] = Constraint(
                    identity=identity,
                    cluster=name,
                    replicas_max=cap,
                    reason=f"{pods} found no node there since {workload.unschedulable_since}",
                    tick=Tick.DESCHEDULING,
                    since=now,
                    basis=basis_of(template, policy, cluster, schedule.interpreters),
                )
    return tuple(caps[key] for key in sorted(caps))


def _cap(schedule: Schedule, cluster: ClusterObservation, workload: Workload, now: str) -> int | None:
    """Return the most replicas that should be there; None: no fewer than now."""
    identity = workload.identity
    policy, binding = schedule.policies.get(identity), schedule.bindings.get(identity)
    if policy is None or binding is None or identity in schedule.frozen or not is_descheduled(identity, policy):
        return None
    assigned = binding.replicas_on(cluster.name)
    # Another number than the assigned one: by an override, an autoscaler, or a move in progress.
    if not assigned or workload.replicas != assigned:
        return None
    threshold_s = float(schedule.fleet.settings.unschedulable_threshold_s)
    if policy.ecs_provision and is_last_tier(policy, schedule.fleet.clusters[cluster.name]):
        threshold_s = max(threshold_s, PROVISION_S)
    if age_s(workload.unschedulable_since, now) <= threshold_s:
        return None
    if claims_of(identity, schedule.fleet.templates[identity].body):
        return None  # Their volumes would stay where they are: a person decides about that.
    # A pod of any revision stands for a desired replica; if the nodes are unknown, ready pods count.
    held = workload.held
    placed = workload.ready if held is None else sum(amounts.get("pods", 0) for amounts in held.values())
    # Extra pods of a rolling update do not count.
    missing = min(workload.unschedulable, max(0, assigned - placed))
    cap = max(0, min(assigned - missing, _fit(schedule, cluster, workload)))
    return cap if cap < assigned else None


def is_descheduled(identity: Identity, policy: PropagationPolicy) -> bool:
    """Return whether its replicas without a node are moved one by one."""
    scheduling = policy.placement.scheduling
    return identity[:2] in _KINDS and scheduling.division.needs_capacity and not scheduling.gang


def is_last_tier(policy: PropagationPolicy, cluster: Cluster) -> bool:
    """Return whether the cluster is in the last tier of its group, to which new nodes are added."""
    for group in groups_of(policy, by_capacity=True):
        tier, _ = tier_of(cluster, group)
        if tier is not None:
            return tier == len(group.tiers) - 1
    return False


def _fit(schedule: Schedule, cluster: ClusterObservation, workload: Workload) -> int:
    """Return replicas that the nodes hold without this workload; ready ones stay if unknown. Source: design#fit."""
    shape = demand_of(schedule.fleet.templates[workload.identity], schedule.interpreters).shape
    nodes = [node for node in cluster.nodes or () if not admits(node, shape)]
    pods = 0
    for node in nodes:
        free = free_room(node)
        for resource, amount in (workload.held or {}).get(node.name, {}).items():
            free[resource] = free.get(resource, 0) + amount
        pods += fit(free, shape.requests)
    return pods + workload.ready if nodes and workload.held is None else pods


def _still_holds(cap: Constraint, schedule: Schedule, observations: Observations, now: str) -> bool:
    """Return whether nothing has changed that could let more replicas in, or the cap is too young to end."""
    policy, template = schedule.policies.get(cap.identity), schedule.fleet.templates.get(cap.identity)
    if policy is None or template is None or not is_descheduled(cap.identity, policy):
        return False
    interpreters = schedule.interpreters
    if cap.cluster not in schedule.fleet.clusters or not is_wished_as_then(cap, template, policy, interpreters):
        return False
    cluster = observations.clusters.get(cap.cluster)
    if cluster is None or not cluster.reachable or cluster.nodes is None or age_s(cap.since, now) < CAP_S_MIN:
        return True
    return cap.basis == basis_of(template, policy, cluster, interpreters)
