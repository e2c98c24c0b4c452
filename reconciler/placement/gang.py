"""Placement of indivisible sets: a gang, or a workload that cannot be divided.

Source: design#gang: the whole set on one cluster that holds all of it, else nowhere. Karmada: multi-component
workloads. Bin packing: a yes is always true, with a place for every pod; a no is exact for small sets alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, permutations
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.api.binding import TargetCluster
from reconciler.api.demand import Component, PodShape
from reconciler.placement.candidates import (
    AffinityGroup,
    Candidate,
    CandidateFinder,
    Candidates,
    keep_previous,
    none_fits,
)
from reconciler.placement.capacity import ClusterRoom, FleetRoom, fit
from reconciler.placement.divide import webster, without_zeros
from reconciler.placement.values import Assignment, PlacementContext, Shortfall, targets_of

_ENOUGH_SETS = 1000
"""More sets than this make no cluster better than another."""


def components_of(situation: PlacementContext) -> tuple[Component, ...]:
    """Return the parts that run together; a workload of one kind of pod is one part."""
    demand = situation.item.demand
    return demand.components or (Component(name="", replicas=demand.replicas or 0, shape=demand.shape),)


def place_whole(
    situation: PlacementContext, groups: Sequence[AffinityGroup], finder: CandidateFinder, room: FleetRoom
) -> Assignment:
    """Return the one cluster for the whole set: in the first tier that has one, the one with most capacity.

    The set stays where it is while that cluster is a candidate and no tick caps it there. If no cluster can hold the
    whole, it is not placed at all; running pods stay until another cluster can hold all of it.
    """
    components = components_of(situation)
    first: Candidates | None = None
    for group in groups:
        candidates = finder.find(situation, group)
        first = first if first is not None and first.members else candidates
        home = _home(situation, candidates.members, components, room)
        if home is not None:
            return _assignment(situation, group.name, candidates, home.name, "the set stays where it is")
        for tier in sorted({member.tier for member in candidates.members}):
            names = [
                member.name
                for member in candidates.members
                if member.tier == tier
                and member.takes_more
                and situation.caps.get(member.name, situation.replicas) >= situation.replicas
            ]
            sets = {name: _sets(situation, name, components, room) for name in names}
            best = min((name for name in names if sets[name] > 0), key=lambda name: (-sets[name], name), default=None)
            if best is not None:
                number = "1 set" if sets[best] == 1 else f"{sets[best]} sets"
                more = " or more" if sets[best] >= _ENOUGH_SETS else ""
                text = f"the whole set fits on {best}, which has room for {number}{more}"
                return _assignment(situation, group.name, candidates, best, text)
            if names and situation.item.policy.ecs_provision and tier == len(group.tiers) - 1:
                text = f"no cluster holds the set now; it waits on {names[0]} for new nodes (ecsProvision)"
                return _assignment(situation, group.name, candidates, names[0], text)
            unknown = sorted(name for name in names if sets[name] < 0)
            if unknown:  # unknown is not full, so nothing of a lower rank is tried
                return _nowhere(situation, candidates, components, unknown)
    assert first is not None, "a policy has at least one group"
    return _nowhere(situation, first, components, ())


def _home(
    situation: PlacementContext, members: Sequence[Candidate], components: Sequence[Component], room: FleetRoom
) -> Candidate | None:
    """Return the cluster where the set is and may stay: still a candidate, not capped, with capacity for additions."""
    if situation.fresh:
        return None
    for member in sorted(members, key=lambda member: -situation.had.get(member.name, 0)):
        had = situation.had.get(member.name)
        if had is None or situation.caps.get(member.name, situation.replicas) < situation.replicas:
            continue
        added = situation.replicas - had
        if (not had and situation.item.demand.replicas is None) or (had and added <= 0):
            return member
        # Additional pods must fit next to the running ones. The grown part is unknown, so each must fit.
        here = room.of(member.name) if had else None
        if here is None or not here.is_known or not member.takes_more:
            continue
        grown = [replace(part, replicas=min(added, part.replicas)) for part in components]
        if all(fits_together([part], here, situation.item.identity.namespace) for part in grown):
            return member
    return None


def _sets(situation: PlacementContext, cluster: str, components: Sequence[Component], room: FleetRoom) -> int:
    """Return sets that fit there; -1 when that is not known."""
    here = room.of(cluster)
    if here is None or not here.is_known:
        return -1
    return sets_that_fit(components, here, situation.item.identity.namespace, _ENOUGH_SETS)


def _nowhere(
    situation: PlacementContext, candidates: Candidates, components: Sequence[Component], unknown: Sequence[str]
) -> Assignment:
    pods = sum(part.replicas for part in components)
    parts = " + ".join(f"{part.replicas} {part.name}".strip() for part in components)
    if not candidates.members:
        shortfall = none_fits(candidates)
    elif unknown:
        text = f"the free capacity of {', '.join(unknown)} is not known"
        shortfall = Shortfall(code="capacity-unknown", text=text)
    else:
        text = f"no cluster has room for the whole set of {pods} pods ({parts}) together"
        shortfall = Shortfall(code="not-enough-capacity", text=text)
    staying = _existing_replicas(situation)
    text = f"{shortfall.text}; it stays where it is" if staying else f"{shortfall.text}; nothing of it is placed"
    placed = sum(target.replicas or 0 for target in staying)
    unplaced = max(0, situation.replicas - placed) if staying else situation.replicas or pods
    return keep_previous(situation, candidates, shortfall, staying, text, unplaced)


def _existing_replicas(situation: PlacementContext) -> tuple[TargetCluster, ...]:
    """Return the existing replicas, at most the template's number."""
    if situation.item.demand.replicas is None:
        return tuple(TargetCluster(cluster=name) for name in situation.had)
    home = min(situation.had, key=lambda name: (-situation.had[name], name), default="")
    if home and situation.had[home] >= situation.replicas:
        return targets_of({home: situation.replicas})
    there = sum(situation.had.values())
    counts = situation.had if there <= situation.replicas else webster(situation.replicas, situation.had)
    return targets_of(without_zeros(counts) or counts)


def _assignment(situation: PlacementContext, group: str, candidates: Candidates, cluster: str, text: str) -> Assignment:
    return Assignment(
        targets=(TargetCluster(cluster=cluster, replicas=situation.item.demand.replicas),),
        affinity_name=group,
        reasons=(situation.reason("gang", text),),
        cluster_reasons=candidates.reasons,
    )


_EXACT_PODS = 12
_EXACT_STEPS = 20_000
_MAX_SETS = 2**20


class _PackedPart(NamedTuple):
    pods: int
    shape: PodShape
    nodes: tuple[int, ...]


def sets_that_fit(components: Sequence[Component], room: ClusterRoom, namespace: str, enough: int = _MAX_SETS) -> int:
    """Return the number of whole sets of the components that fit the cluster, at most `enough`."""
    high = 1
    while high < enough and fits_together(components, room, namespace, high):
        high *= 2
    low, high = (high // 2 if high > 1 else 0), min(high, enough)
    if high == enough and fits_together(components, room, namespace, enough):
        return enough
    while low + 1 < high:
        middle = (low + high) // 2
        if fits_together(components, room, namespace, middle):
            low = middle
        else:
            high = middle
    return low


def fits_together(components: Sequence[Component], room: ClusterRoom, namespace: str, sets: int = 1) -> bool:
    """Return whether so many sets fit at the same time, next to running, waiting and newly placed pods."""
    parts: list[_PackedPart] = []
    free: dict[int, dict[str, int]] = {}
    for component in components:
        if component.replicas > 0:
            nodes = room.nodes_for(component.shape)
            free.update(nodes)
            parts.append(_PackedPart(component.replicas * sets, component.shape, tuple(index for index, _ in nodes)))
    if not parts:
        return True
    if not room.admits_set([(part.shape, part.pods) for part in parts], namespace):
        return False
    # The sums have to suffice for every packing; it is the only use of pods that wait somewhere.
    needed: dict[str, int] = {"pods": sum(part.pods for part in parts)}
    for part in parts:
        for resource, amount in part.shape.requests:
            if amount > 0:
                needed[resource] = needed.get(resource, 0) + part.pods * amount
    waiting = room.waiting
    for resource, amount in needed.items():
        if sum(max(0, one.get(resource, 0)) for one in free.values()) - waiting.get(resource, 0) < amount:
            return False
    if len(parts) == 1:
        return sum(fit(free[index], parts[0].shape.requests) for index in parts[0].nodes) >= parts[0].pods
    return _first_fit(parts, free) or _search(parts, free)


def _first_fit(parts: Sequence[_PackedPart], free: Mapping[int, Mapping[str, int]]) -> bool:
    """Return whether first fit succeeds with parts and nodes in one of several orders, as it nearly always does."""
    orders = permutations(parts) if len(parts) <= 4 else iter([_hardest_first(parts, free)])
    for order in orders:
        for keep_nodes_in_order in (True, False):
            left = {index: dict(room) for index, room in free.items()}
            if all(_place(part, left, keep_nodes_in_order) for part in order):
                return True
    return False


def _hardest_first(parts: Sequence[_PackedPart], free: Mapping[int, Mapping[str, int]]) -> tuple[_PackedPart, ...]:
    def places(part: _PackedPart) -> int:
        return sum(fit(free[index], part.shape.requests) for index in part.nodes) // part.pods

    return tuple(sorted(parts, key=places))


def _place(part: _PackedPart, left: dict[int, dict[str, int]], keep_nodes_in_order: bool) -> bool:
    pods = part.pods
    requests = part.shape.requests
    nodes = part.nodes if keep_nodes_in_order else sorted(part.nodes, key=lambda i: (fit(left[i], requests), i))
    for index in nodes:
        here = min(pods, fit(left[index], requests))
        if here:
            _reserve(left[index], requests, here)
            pods -= here
        if not pods:
            return True
    return False


def _reserve(free: dict[str, int], requests: tuple[tuple[str, int], ...], pods: int) -> None:
    free["pods"] -= pods
    for resource, amount in requests:
        if amount > 0:
            free[resource] -= pods * amount


def _search(parts: Sequence[_PackedPart], free: Mapping[int, Mapping[str, int]]) -> bool:
    """Return whether any way to place the pods one by one succeeds; False for large sets."""
    pods = [part for part in _hardest_first(parts, free) for _ in range(part.pods if part.pods <= _EXACT_PODS else 0)]
    if sum(part.pods for part in parts) > _EXACT_PODS:
        return False
    left = {index: dict(room) for index, room in free.items()}
    steps = count(1)

    def place(position: int) -> bool:
        step = next(steps)
        if position == len(pods):
            return True
        if step > _EXACT_STEPS:
            return False
        part, tried = pods[position], set()
        for index in part.nodes:
            state = tuple(sorted(left[index].items()))
            if state in tried or not fit(left[index], part.shape.requests):
                continue
            tried.add(state)
            _reserve(left[index], part.shape.requests, 1)
            if place(position + 1):
                return True
            _reserve(left[index], part.shape.requests, -1)
        return False

    return place(0)
