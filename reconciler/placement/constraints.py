"""Constraints that ticks and persons put on placements: those in force, their end, and write blocks beside them.

An edit of the pod template or the placement ends a descheduling cap at once. Source: design#end-of-a-cap. While a
constraint is active, no move goes to a cluster where dispatching or writing is suspended, or where a foreign object is
in the way; an edit of the store places a template all the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec
from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import ClusterObservation, Observations, workload_in
from reconciler.api.content import digest_of
from reconciler.api.fleet import Fleet, Template
from reconciler.api.ledger import SuspensionRecord
from reconciler.api.plan import FORMER_COUNTS, HeldBy, Hold
from reconciler.api.policies import ConflictResolution, PropagationPolicy
from reconciler.api.refs import Identity
from reconciler.incremental import by_key
from reconciler.kinds.registry import Registry
from reconciler.observations import is_in_force
from reconciler.ownership import conflict_resolution, fleet_names
from reconciler.placement.values import PlacementContext

FLEET = "fleet"
_BETWEEN = ":"


def constraints_in_force(constraints: Iterable[Constraint], now: str) -> dict[Identity, tuple[Constraint, ...]]:
    """Return valid constraints by resource; of several on one cluster the tightest, a person's first."""
    tightest: dict[tuple[Identity, str], Constraint] = {}
    by_tightness = sorted(
        constraints, key=lambda one: (not one.excludes, one.tick is not Tick.EVICTION, one.replicas_max, one.reason)
    )
    for constraint in by_tightness:
        if is_in_force(constraint, now):
            tightest.setdefault((constraint.identity, constraint.cluster), constraint)
    by_identity = by_key((identity, constraint) for (identity, _), constraint in sorted(tightest.items()))
    return {identity: tuple(group) for identity, group in by_identity.items()}


def basis_of(template: Template, policy: PropagationPolicy, cluster: ClusterObservation, interpreters: Registry) -> str:
    """Return digests of the desired state, and of the nodes' admission and size."""
    nodes = [
        {
            "name": node.name,
            "open": node.ready and not node.unschedulable,
            "taints": sorted([taint.key, taint.value, str(taint.effect)] for taint in node.taints),
            "allocatable": dict(node.allocatable),
        }
        for node in sorted(cluster.nodes or (), key=lambda node: node.name)
    ]
    return f"{_wish(template, policy, interpreters)}{_BETWEEN}{digest_of(nodes)}"


def is_wished_as_then(cap: Constraint, template: Template, policy: PropagationPolicy, interpreters: Registry) -> bool:
    """Return whether pod template and placement are unchanged since the cap began."""
    wish, between, _ = cap.basis.partition(_BETWEEN)
    # Caps of earlier versions lack that.
    return not between or wish == _wish(template, policy, interpreters)


def without_outdated_caps(
    observations: Observations,
    templates: Mapping[Identity, Template],
    policies: Mapping[Identity, PropagationPolicy],
    interpreters: Registry,
) -> Observations:
    """Return the observations without caps that an edit has ended; themselves when there are none."""
    outdated = {
        cap
        for cap in observations.constraints
        if cap.tick is Tick.DESCHEDULING
        and cap.identity in templates
        and cap.identity in policies
        and not is_wished_as_then(cap, templates[cap.identity], policies[cap.identity], interpreters)
    }
    if not outdated:
        return observations
    return replace(observations, constraints=tuple(c for c in observations.constraints if c not in outdated))


def _wish(template: Template, policy: PropagationPolicy, interpreters: Registry) -> str:
    pods = interpreters.of(*template.identity[:2]).pod_template(template.body)
    return digest_of({"placement": bare(policy.placement), "template": pods})


def bare(value: object) -> Any:
    """Return a value as JSON, without the files and lines, which move when something else is edited."""
    tree = msgspec.to_builtins(value, order="deterministic", str_keys=True)
    if isinstance(tree, dict):
        return {key: bare(below) for key, below in tree.items() if key != "source"}
    return [bare(below) for below in tree] if isinstance(tree, (list, tuple)) else tree


def closed_by(suspensions: Iterable[SuspensionRecord]) -> dict[str, str]:
    """Return the reason of each write block, by scope."""
    closed = {}
    for record in suspensions:
        who = f" by {record.who}" if record.who else ""
        until = f" until {record.until}" if record.until else ""
        reason = f": {record.reason}" if record.reason else ""
        closed[record.scope] = f"{record.scope} is suspended{who}{until}{reason}"
    return closed


def closed_by_order(closed: Mapping[str, str], identity: Identity, cluster: str) -> Hold | None:
    """Return the order that blocks writes of a template in a cluster, from the reason by scope; None: none does."""
    if not closed:
        return None
    scopes = (FLEET, f"cluster {cluster}", str(identity))
    return next((Hold(HeldBy.SUSPENDED, closed[scope], scope) for scope in scopes if scope in closed), None)


def suspended_by(policy: PropagationPolicy, cluster: str) -> Hold | None:
    """Return why a policy suspends writes in a cluster, or did so in the revision before; None: it does not."""
    suspension = policy.suspension
    if suspension.covers(cluster):
        return Hold(HeldBy.SUSPENDED, f"dispatching is suspended by {policy.ref}")
    if suspension.former is not None and suspension.former.covers(cluster):
        return Hold(HeldBy.SETTINGS, f"dispatching is suspended no more by {policy.ref}{FORMER_COUNTS}")
    return None


def closings(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    observations: Observations,
    constrained: Iterable[Identity],
) -> dict[Identity, dict[str, str]]:
    """Return the write blocks of templates under a constraint, by cluster."""
    blocks: dict[Identity, dict[str, str]] = {}
    for identity in constrained:
        policy = policies.get(identity)
        if policy is None or identity not in fleet.templates:
            continue
        reasons = ((name, _closing(fleet, policy, observations, identity, name)) for name in fleet.clusters)
        closed = {cluster: why for cluster, why in reasons if why is not None}
        if closed:
            blocks[identity] = closed
    return blocks


def obstacles(observations: Observations, constrained: Iterable[Identity]) -> dict[Identity, object]:
    """Return the inputs of write blocks: suspensions, and owners of objects in candidate clusters."""
    clusters, inputs = observations.clusters, dict[Identity, object]()
    for identity in constrained:
        workloads = [(name, workload_in(clusters, identity, name)) for name in sorted(clusters)]
        owners = [(name, workload.of_fleet) for name, workload in workloads if workload is not None]
        inputs[identity] = (observations.closed, *owners)
    return inputs


def with_closings(situation: PlacementContext, closed: Mapping[str, str]) -> PlacementContext:
    """Return the situation with write blocks: a blocked cluster keeps its written (else placed) replicas, or is out."""
    if not closed:
        return situation
    there = situation.written or situation.had
    excluded = {cluster: why for cluster, why in closed.items() if cluster not in there}
    situation = replace(situation, excluded={**excluded, **situation.excluded})
    if not situation.is_divided_by_capacity or situation.is_whole:
        return situation
    staying = {cluster: situation.had[cluster] for cluster in closed if cluster in there and cluster in situation.had}
    caps = {cluster: min(count, situation.caps.get(cluster, count)) for cluster, count in staying.items()}
    reasons = {cluster: closed[cluster] for cluster in caps}
    return replace(situation, caps={**situation.caps, **caps}, cap_reasons={**reasons, **situation.cap_reasons})


def _closing(
    fleet: Fleet, policy: PropagationPolicy, observations: Observations, identity: Identity, cluster: str
) -> str | None:
    ordered = suspended_by(policy, cluster) or closed_by_order(observations.closed, identity, cluster)
    workload = workload_in(observations.clusters, identity, cluster)
    if ordered is not None:
        return ordered.why
    if workload is None or workload.of_fleet is None:
        return None
    settings = fleet.settings
    if workload.of_fleet and workload.of_fleet in fleet_names(settings):
        return None
    resolution = conflict_resolution(fleet.templates[identity].body, policy)
    if resolution is ConflictResolution.OVERWRITE and not workload.of_fleet:
        return None
    return f"{identity} exists there and is not ours"
