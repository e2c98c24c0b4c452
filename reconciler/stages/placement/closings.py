"""Clusters where nothing may be written for a template are no targets of what a tick or a person moves.

The policy suspends dispatching there, a person has suspended writing, or an object that is not ours stands in the way
and may not be adopted. This counts while a constraint is in force and at no other time: an edit of the store says where
a template belongs, whether that may be written already or not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from reconciler.model.fleet import Fleet
from reconciler.model.observation import Observations, workload_in
from reconciler.model.policy import ConflictResolution, PropagationPolicy
from reconciler.model.refs import Identity
from reconciler.stages.ownership import conflict_resolution
from reconciler.stages.placement.values import Situation

FLEET = "fleet"

Closings = Mapping[Identity, Mapping[str, str]]
"""By template the clusters where nothing may be written for it, with why."""


def closed_by_order(closed: Mapping[str, str], identity: Identity, cluster: str) -> str | None:
    """Why a person's order lets nothing be written for a template in a cluster; None: none stands against it.

    `closed`: the words of each order by its scope: `fleet`, `cluster NAME`, or a subject (`Deployment demo/web`).
    """
    if not closed:
        return None
    return next((closed[scope] for scope in (FLEET, f"cluster {cluster}", str(identity)) if scope in closed), None)


def suspended_by(policy: PropagationPolicy, cluster: str) -> str | None:
    """Why nothing may be written in a cluster for what a policy governs; None: it does not suspend that."""
    if policy.suspension.dispatching or cluster in policy.suspension.clusters:
        return f"dispatching is suspended by {policy.ref}"
    return None


def closings(
    fleet: Fleet,
    policies: Mapping[Identity, PropagationPolicy],
    observations: Observations,
    constrained: Iterable[Identity],
) -> dict[Identity, dict[str, str]]:
    """Where nothing may be written for templates on which a constraint is in force."""
    found: dict[Identity, dict[str, str]] = {}
    for identity in constrained:
        policy = policies.get(identity)
        if policy is None or identity not in fleet.templates:
            continue
        closed = {
            cluster: why
            for cluster in fleet.clusters
            if (why := _closing(fleet, policy, observations, identity, cluster)) is not None
        }
        if closed:
            found[identity] = closed
    return found


def obstacles(observations: Observations, constrained: Iterable[Identity]) -> dict[Identity, object]:
    """What closings rest on: orders, and what is known of whose the objects are that are where templates could go."""
    clusters = sorted(observations.clusters)
    return {
        identity: (
            observations.closed,
            *(
                (name, seen.of_fleet)
                for name in clusters
                if (seen := workload_in(observations.clusters, identity, name)) is not None
            ),
        )
        for identity in constrained
    }


def with_closings(situation: Situation, closed: Mapping[str, str]) -> Situation:
    """The situation in which a closed cluster takes nothing: it keeps what is there, and is no candidate otherwise.

    Where it is not known what has been written, what was placed is taken to be there.
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
    if ordered or seen is None or seen.of_fleet is None:
        return ordered
    settings = fleet.settings
    if seen.of_fleet and seen.of_fleet in (settings.name, *settings.previous_names):
        return None
    resolution = conflict_resolution(fleet.templates[identity].body, policy)
    if resolution is ConflictResolution.OVERWRITE and not seen.of_fleet:
        return None
    return f"{identity} exists there and is not ours"
