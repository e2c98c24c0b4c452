"""Write blocks: such a cluster is no target of a move by a tick or a person.

The policy suspends dispatching there, a person has suspended writing, or an object that is not ours blocks the place
and may not be adopted. This counts only while a constraint is active: an edit of the store places a template, whether
that may be written already or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from reconciler.api.clusters import Observations, workload_in
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import SuspensionRecord
from reconciler.api.plan import FORMER_COUNTS, HeldBy, Hold
from reconciler.api.policies import ConflictResolution, PropagationPolicy
from reconciler.api.refs import Identity
from reconciler.ownership import conflict_resolution, fleet_names
from reconciler.placement.values import Situation

FLEET = "fleet"


def closed_by(suspensions: Iterable[SuspensionRecord]) -> dict[str, str]:
    """Return the reason of each write block, by scope."""
    return {found.scope: _words(found) for found in suspensions}


def closed_by_order(closed: Mapping[str, str], identity: Identity, cluster: str) -> Hold | None:
    """Return why a person's order blocks writes of a template in a cluster; None: no order does.

    `closed`: the reason of each order by its scope: `fleet`, `cluster NAME`, or a subject (`Deployment demo/web`).
    """
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
    found: dict[Identity, dict[str, str]] = {}
    for identity in constrained:
        policy = policies.get(identity)
        if policy is None or identity not in fleet.templates:
            continue
        reasons = ((name, _closing(fleet, policy, observations, identity, name)) for name in fleet.clusters)
        closed = {cluster: why for cluster, why in reasons if why is not None}
        if closed:
            found[identity] = closed
    return found


def obstacles(observations: Observations, constrained: Iterable[Identity]) -> dict[Identity, object]:
    """Return the inputs of write blocks: suspensions, and owners of objects in candidate clusters."""
    found: dict[Identity, object] = {}
    for identity in constrained:
        seen = [(name, workload_in(observations.clusters, identity, name)) for name in sorted(observations.clusters)]
        owners = [(name, workload.of_fleet) for name, workload in seen if workload is not None]
        found[identity] = (observations.closed, *owners)
    return found


def with_closings(situation: Situation, closed: Mapping[str, str]) -> Situation:
    """Return the situation with write blocks: a blocked cluster keeps its replicas, and is no candidate otherwise.

    If the written copies are unknown, placed ones count as written.
    """
    if not closed:
        return situation
    there = situation.written or situation.had
    excluded = {cluster: why for cluster, why in closed.items() if cluster not in there}
    situation = replace(situation, excluded={**excluded, **situation.excluded})
    if not situation.is_divided_by_capacity or situation.is_whole:
        return situation
    kept = {cluster: situation.had[cluster] for cluster in closed if cluster in there and cluster in situation.had}
    caps = {cluster: min(count, situation.caps.get(cluster, count)) for cluster, count in kept.items()}
    reasons = {cluster: closed[cluster] for cluster in caps}
    return replace(situation, caps={**situation.caps, **caps}, cap_reasons={**reasons, **situation.cap_reasons})


def _closing(
    fleet: Fleet, policy: PropagationPolicy, observations: Observations, identity: Identity, cluster: str
) -> str | None:
    ordered = suspended_by(policy, cluster) or closed_by_order(observations.closed, identity, cluster)
    seen = workload_in(observations.clusters, identity, cluster)
    if ordered is not None:
        return ordered.why
    if seen is None or seen.of_fleet is None:
        return None
    settings = fleet.settings
    if seen.of_fleet and seen.of_fleet in fleet_names(settings):
        return None
    resolution = conflict_resolution(fleet.templates[identity].body, policy)
    if resolution is ConflictResolution.OVERWRITE and not seen.of_fleet:
        return None
    return f"{identity} exists there and is not ours"


def _words(found: SuspensionRecord) -> str:
    who = f" by {found.who}" if found.who else ""
    until = f" until {found.until}" if found.until else ""
    reason = f": {found.reason}" if found.reason else ""
    return f"{found.scope} is suspended{who}{until}{reason}"
