"""Health probes of clusters in progress: the state of the copies, and the objects that gates name."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection, Mapping

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import Met, Record, Sight, Unseen
from reconciler.api.rollouts import Gate, Layout, ObjectName
from reconciler.api.tree import JsonObject
from reconciler.clock import within
from reconciler.containment import awaited
from reconciler.controller import timing
from reconciler.controller.reading.members import Reachable, told_fault
from reconciler.errors import MemberClusterError, ObjectNotFound
from reconciler.kube.client import MemberCluster
from reconciler.rollouts import Copy, RolloutSelection, named_objects, sight_of
from reconciler.staging import layouts_of
from reconciler.state import FleetState, copies_of

Records = Mapping[str, Record]
"""By cluster."""

_AT_ONCE = 16
"""So many objects of a cluster are asked for side by side."""


class Followed(Struct, frozen=True, kw_only=True):
    """A Rollout with the clusters of its stages, and the templates that go with it."""

    name: str
    layout: Layout
    identities: frozenset[Identity]


def followed_in(fleet: Fleet, selection: RolloutSelection) -> tuple[Followed, ...]:
    """Return every Rollout of a fleet, with its selection."""
    by_name: dict[str, list[Identity]] = {rollout.name: [] for rollout in fleet.rollouts}
    for identity, names in selection.rollouts.items():
        for name in names:
            by_name[name].append(identity)
    return tuple(
        Followed(name=rollout.name, layout=layout, identities=frozenset(by_name[rollout.name]))
        for rollout, layout in layouts_of(fleet)
    )


def sights_of(followed: Followed, records: Records, shown: FleetState | None) -> dict[str, Sight]:
    """Return the health probes of clusters in progress. `shown`: the state of the fleet after the last round.

    Conditions of gates are left out: nobody watches the objects that they name.
    """
    if shown is None or shown.facts is None or shown.facts.decision.staging is None:
        return {}
    drawn = shown.facts.decision.staging.in_force.get(followed.name, {})
    found: dict[str, Sight] = {}
    for name, of_stage in followed.layout.stage_of.items():
        record, state = records.get(name), shown.clusters.get(name)
        if name in shown.facts.elsewhere:
            # Also before it begins there: nothing that happens later makes anybody look again.
            found[name] = Unseen("another process applies there")
            continue
        if record is None or not record.revision or record.completed_at or state is None:
            continue
        if state.why_away is not None:
            found[name] = Unseen(state.why_away)
        else:
            plain = replace(of_stage.stage.gate, checks=())
            found[name] = sight_of(plain, drawn.get(name, ""), copies_of(state, followed.identities), {})
    return found


async def with_conditions(
    followed: Followed,
    records: Records,
    plain: Mapping[str, Sight],
    shown: FleetState | None,
    reachable: Reachable,
) -> dict[str, Sight]:
    """The same with the conditions of gates, which are looked up where all the rest is well."""
    asked: dict[str, Awaitable[Sight]] = {}
    for name, of_stage in followed.layout.stage_of.items():
        gate, sight = of_stage.stage.gate, plain.get(name)
        is_well = isinstance(sight, Met) and sight.revision == records[name].revision
        if gate.checks and is_well and shown is not None:
            asked[name] = _checked(gate, records[name].revision, followed.identities, shown, name, reachable)
    told = await asyncio.gather(*asked.values())
    return {**plain, **dict(zip(asked, told, strict=True))}


def asks_conditions(layout: Layout, records: Records) -> bool:
    """Return whether a cluster in progress has a gate with conditions."""
    on_their_way = {name for name, record in records.items() if record.revision and not record.completed_at}
    return any(of_stage.stage.gate.checks for name, of_stage in layout.stage_of.items() if name in on_their_way)


async def _checked(
    gate: Gate, revision: str, identities: Collection[Identity], shown: FleetState, name: str, reachable: Reachable
) -> Sight:
    """A cluster whose copies are well: whether the conditions of its gate hold, too."""
    member = reachable.get(name)
    if not isinstance(member, MemberCluster):
        return Unseen(member or "it was not asked yet")
    asked = await awaited(within(_read(gate, identities, shown, member), timing.PATIENCE_S))
    if asked.value is None:
        fault = asked.fault
        is_told = isinstance(fault, MemberClusterError)
        assert fault is not None, "what gives nothing has failed"
        if isinstance(fault, TimeoutError):
            return Unseen(f"no answer within {timing.PATIENCE_S:g} s")
        return Unseen(str(fault) if is_told else told_fault(name, fault))
    copies, objects = asked.value
    return sight_of(gate, revision, copies, objects)


async def _read(
    gate: Gate, identities: Collection[Identity], shown: FleetState, member: MemberCluster
) -> tuple[list[Copy], dict[ObjectName, JsonObject]]:
    limit = asyncio.Semaphore(_AT_ONCE)

    async def body(gvk: GVK, namespace: str, name: str) -> JsonObject | None:
        async with limit:
            try:
                return (await member.get(gvk, namespace, name)).body
            except ObjectNotFound:
                return None

    named = named_objects(gate)
    bodies = await asyncio.gather(*(body(each.gvk, each.namespace, each.name) for each in named))
    objects = {each: found for each, found in zip(named, bodies, strict=True) if found is not None}
    if len(named) == len(gate.checks):
        return [], objects
    kinds = _kinds(identities, shown, member.name)
    found = await asyncio.gather(*(body(gvk, each.namespace, each.name) for each, gvk in kinds.items()))
    copies = [Copy(each, True, True, "", body) for each, body in zip(kinds, found, strict=True) if body is not None]
    return copies, objects


def _kinds(identities: Collection[Identity], shown: FleetState, cluster: str) -> dict[Identity, GVK]:
    """Return those of these that are desired in a cluster, with their kinds."""
    assert shown.facts is not None, "what is shown was made of something"
    wanted = shown.facts.manifests.get(cluster, {})
    return {identity: wanted[identity].gvk for identity in sorted(identities) if identity in wanted}
