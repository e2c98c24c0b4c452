"""Bin packing: whether a set of pods of several shapes fits the nodes of one cluster together.

A yes is always true: it comes with a place for every pod. A no is exact for small sets, and for large ones the answer
of several first-fit runs. Source: design#gang.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count, permutations
from typing import NamedTuple

from reconciler.api.demand import Component, PodShape
from reconciler.placement.capacity.estimate import fit
from reconciler.placement.capacity.free_capacity import ClusterRoom

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
    pods = [(part.shape, part.pods) for part in parts]
    if not room.admits_set(pods, namespace) or not _fits_as_a_whole(parts, free, room.waiting()):
        return False
    if len(parts) == 1:
        return sum(fit(free[index], parts[0].shape.requests) for index in parts[0].nodes) >= parts[0].pods
    return _first_fit(parts, free) or _search(parts, free)


def _fits_as_a_whole(
    parts: Sequence[_PackedPart], nodes: Mapping[int, Mapping[str, int]], waiting: Mapping[str, int]
) -> bool:
    """Return whether the sums suffice: needed for every packing, and the only use of pods that wait somewhere."""
    needed: dict[str, int] = {"pods": sum(part.pods for part in parts)}
    for part in parts:
        for resource, amount in part.shape.requests:
            if amount > 0:
                needed[resource] = needed.get(resource, 0) + part.pods * amount
    return all(
        sum(max(0, free.get(resource, 0)) for free in nodes.values()) - waiting.get(resource, 0) >= amount
        for resource, amount in needed.items()
    )


def _first_fit(parts: Sequence[_PackedPart], free: Mapping[int, Mapping[str, int]]) -> bool:
    """First fit with the parts and nodes in several orders: the greedy answer that suffices almost always."""
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
            _take(left[index], requests, here)
            pods -= here
        if not pods:
            return True
    return False


def _take(free: dict[str, int], requests: tuple[tuple[str, int], ...], pods: int) -> None:
    free["pods"] -= pods
    for resource, amount in requests:
        if amount > 0:
            free[resource] -= pods * amount


def _search(parts: Sequence[_PackedPart], free: Mapping[int, Mapping[str, int]]) -> bool:
    """Every way to place the pods one by one, for sets that are small enough."""
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
            _take(left[index], part.shape.requests, 1)
            if place(position + 1):
                return True
            _take(left[index], part.shape.requests, -1)
        return False

    return place(0)
