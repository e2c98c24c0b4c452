"""The inputs of the fleet's state, joined after a round."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.engine import Decision, FleetSnapshot, Round, plan_round
from reconciler.interpreters.registry import Registry
from reconciler.model.observation import Member, Read
from reconciler.model.refs import Identity
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.state import MISSING, Copy, Facts, HealthState, Healthy, by_copy, health_of

Healths = Mapping[str, Mapping[Identity, HealthState]]
"""Health of unhealthy objects, by cluster."""
Looked = dict[str, dict[Identity, HealthState]]
"""Health of everything that was looked at, by cluster."""


def facts_of(picture: Round, members: Mapping[str, Member], done: Collection[Copy] = frozenset()) -> Facts:
    """Return the facts after a round, without its caches. `picture`: pending changes, over the whole fleet.

    `done`: copies whose changes were made since.
    """
    changes = picture.plan.changes
    if done:
        changes = tuple(change for change in changes if (change.cluster, change.identity) not in done)
    return Facts(
        decision=picture.decision,
        manifests=picture.manifests,
        members=members,
        changes=by_copy(changes),
        problems=picture.problems,
        frozen=picture.frozen,
        unlisted={
            name: found.unlisted for name, found in members.items() if isinstance(found, Read) and found.unlisted
        },
    )


def planned_with_health(snapshot: FleetSnapshot, decision: Decision) -> tuple[Round, Looked]:
    """The plan, and how everything is that it looked at: both take long where much is looked at."""
    planned = plan_round(snapshot, decision)
    return planned, looked_health(planned, snapshot)


def looked_health(planned: Round, snapshot: FleetSnapshot) -> Looked:
    """Return the health of desired and of frozen objects that a round read, by cluster."""
    found: Looked = {}
    frozen = planned.decision.frozen | {identity for _, identity in planned.frozen}
    for cluster, manifests in planned.manifests.items():
        member = snapshot.members.get(cluster)
        if isinstance(member, Read):
            # What is frozen is not compared, but how it fares can be seen.
            kept = frozen & snapshot.journal.ledger.get(cluster, {}).keys() - member.unasked if frozen else frozen
            seen = {identity: health for identity in (*manifests, *kept - manifests.keys())
                    if (health := _health(member, identity, snapshot.interpreters)) is not None}  # fmt: skip
            found[cluster] = seen
    return found


def _health(member: Read, identity: Identity, interpreters: Registry) -> HealthState | None:
    live = member.objects.get(identity)
    if live is not None:
        return health_of(live, interpreters.of(*identity[:2]))
    return MISSING if identity in member.absent else None


def not_healthy(found: Mapping[str, Mapping[Identity, HealthState]]) -> Healths:
    """Return unhealthy objects."""
    return {
        cluster: {identity: health for identity, health in seen.items() if not isinstance(health, Healthy)}
        for cluster, seen in found.items()
    }


def last_contacts(document: JsonObject | None) -> dict[str, str]:
    """Return the time of each cluster's last reading, from the picture of an earlier round (RFC 3339)."""
    clusters = dig(document, "clusters") or () if document is not None else ()
    return {entry["name"]: entry["lastSuccess"] for entry in clusters if entry.get("lastSuccess")}
