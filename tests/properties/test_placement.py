"""Laws of placement over generated fleets: small, but with every rule in play."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from reconciler.api.binding import Binding, PreviousPlacement
from reconciler.api.clusters import ClusterObservation, Observations
from reconciler.api.refs import Identity
from reconciler.placement import PlacementItem, PlacementRequest, place
from tests.examples import examples
from tests.placement_cases import request_of

SHORT = {"no-cluster-fits", "not-enough-capacity", "capacity-unknown", "spread-constraint-unmet"}
"""Rules of reasons that announce a shortfall: such a placement is tried again as soon as room appears."""
NAMES = ("m1", "m2", "m3", "m4")
ROOM = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 12), min_size=4, max_size=4)
COUNTS = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 9), max_size=4)
BY_CAPACITY = st.sampled_from(["dynamic-weight", "aggregated"])
DIVISIONS = st.sampled_from(["dynamic-weight", "aggregated", "static-weight", "duplicated"])


@st.composite
def policies(draw: st.DrawFn) -> dict[str, Any]:
    given_policy: dict[str, Any] = {"division": draw(DIVISIONS)}
    shape = draw(st.sampled_from(["open", "names", "tiers", "groups"]))
    if shape == "names":
        given_policy["affinity"] = draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True))
    elif shape in ("tiers", "groups"):
        given_policy["mode"] = "tiers" if shape == "tiers" else "exclusive"
        groups = draw(st.lists(st.sets(st.sampled_from(NAMES), min_size=1), min_size=2, max_size=3))
        given_policy["groups"] = {f"g{index}": sorted(names) for index, names in enumerate(groups)}
    if draw(st.booleans()):
        given_policy["weights"] = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(1, 5), max_size=4))
    if draw(st.booleans()):
        least = draw(st.integers(1, 2))
        given_policy["spread"] = [{"field": "cluster", "min": least, "max": draw(st.integers(least, 4))}]
        if draw(st.booleans()):
            given_policy["spread"].append({"field": "region", "min": 1, "max": draw(st.integers(1, 3))})
    given_policy["ecsProvision"] = draw(st.booleans())
    given_policy["gang"] = draw(st.integers(0, 5)) == 0
    return given_policy


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    clusters = {
        name: {
            "region": draw(st.sampled_from(["r1", "r2", ""])),
            "taints": draw(st.sampled_from([[], [], ["a=b:NoSchedule"]])),
        }
        for name in NAMES
    }
    workloads = [
        {
            "workload": f"w{index}",
            "replicas": draw(st.one_of(st.integers(0, 15), st.none())),
            "policy": draw(policies()),
            "previous": draw(st.one_of(st.none(), COUNTS)) if index else draw(COUNTS),
            "caps": draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 5), max_size=1)),
            "excluded": draw(st.lists(st.sampled_from(NAMES), max_size=1)),
            "requests": {"cpu": draw(st.integers(1, 3))},
        }
        for index in range(draw(st.integers(1, 4)))
    ]
    free = draw(ROOM)
    if draw(st.booleans()):
        free.pop(draw(st.sampled_from(NAMES)))
    observed = {name: {"reachable": False} for name in draw(st.lists(st.sampled_from(NAMES), max_size=1))}
    return {
        "clusters": clusters,
        "free": free,
        "observed": observed,
        "workloads": workloads,
        "partial": draw(st.booleans()),
        "fresh": draw(st.integers(0, 5)) == 0,
    }


def counts_of(binding: Binding) -> dict[str, int]:
    return {target.cluster: target.replicas or 0 for target in binding.targets}


def waits_for_room(binding: Binding) -> bool:
    """Return whether it goes somewhere else as soon as others leave room there, as replicas do that had to stay."""
    return any(reason.rule in SHORT or "find no room elsewhere and stay" in reason.text for reason in binding.reasons)


def placed_again(
    request: PlacementRequest, bindings: Mapping[Identity, Binding], items: tuple[PlacementItem, ...] | None = None
) -> Mapping[Identity, Binding]:
    """The placement after the first one was carried out: room is taken where replicas are new, free where they went."""
    items = request.items if items is None else items
    moved = dict.fromkeys(request.clusters, 0)
    for item in request.items:
        previous = request.observations.previous.get(item.identity)
        ((_, millicores),) = item.demand.shape.requests
        for target in bindings[item.identity].targets:
            moved[target.cluster] += (target.replicas or 0) * millicores
        for target in previous.targets if previous else ():
            if target.cluster in moved and item.demand.replicas is not None:
                moved[target.cluster] -= (target.replicas or 0) * millicores
    observations = Observations(
        clusters={name: taken(seen, moved[name]) for name, seen in request.observations.clusters.items()},
        constraints=request.observations.constraints,
        previous={
            identity: PreviousPlacement(identity=identity, targets=binding.targets, affinity_name=binding.affinity_name)
            for identity, binding in bindings.items()
        },
    )
    return place(replace(request, items=items, observations=observations, fresh=False)).bindings


def taken(seen: ClusterObservation, millicores: int) -> ClusterObservation:
    if not seen.nodes:
        return seen
    return replace(seen, nodes=(replace(seen.nodes[0], requested={"cpu": millicores}),))


@given(cases())
@settings(max_examples=examples(50), deadline=None)
def test_every_binding_is_well_formed(case: dict[str, Any]) -> None:
    request = request_of(case)
    result = place(request)
    assert set(result.bindings) == {item.identity for item in request.items}
    for item in request.items:
        binding = result.bindings[item.identity]
        assert binding.clusters == tuple(sorted(set(binding.clusters)))
        assert set(binding.clusters) <= set(request.clusters) <= set(binding.cluster_reasons)
        assert binding.reasons
        assert binding.unplaced >= 0
        for target in binding.targets:
            assert (target.replicas is None) == (item.demand.replicas is None)


@given(cases())
@settings(max_examples=examples(50), deadline=None)
def test_replicas_that_are_divided_add_up(case: dict[str, Any]) -> None:
    request = request_of(case)
    for item in request.items:
        binding = place(request).bindings[item.identity]
        replicas = item.demand.replicas
        if replicas is None or item.policy.placement.scheduling.division == "duplicated":
            continue
        assert sum(counts_of(binding).values()) + binding.unplaced >= replicas
        if not item.policy.placement.scheduling.gang:
            assert sum(counts_of(binding).values()) + binding.unplaced == replicas
            previous = request.observations.previous.get(item.identity)
            empty = {target.cluster for target in previous.targets if not target.replicas} if previous else ()
            idle = {name for name, count in counts_of(binding).items() if not count}
            assert not replicas or idle <= set(empty), "0 replicas are only where there were 0 before"


@given(cases(), st.randoms(use_true_random=False))
@settings(max_examples=examples(25), deadline=None)
def test_the_order_of_inputs_does_not_matter(case: dict[str, Any], order: random.Random) -> None:
    request = request_of(case)
    items, constraints = list(request.items), list(request.observations.constraints)
    order.shuffle(items)
    order.shuffle(constraints)
    shuffled = replace(
        request,
        items=tuple(items),
        clusters=dict(reversed(list(request.clusters.items()))),
        observations=Observations(
            clusters=dict(reversed(list(request.observations.clusters.items()))),
            constraints=tuple(constraints),
            previous=dict(reversed(list(request.observations.previous.items()))),
        ),
    )
    assert place(shuffled) == place(request)


@given(cases())
@settings(max_examples=examples(75), deadline=None)
def test_nothing_moves_when_nothing_changed(case: dict[str, Any]) -> None:
    request = request_of(case)
    first = place(request).bindings
    again = placed_again(request, first)
    for identity, binding in first.items():
        if not waits_for_room(binding):
            assert counts_of(again[identity]) == counts_of(binding), (binding.reasons, again[identity].reasons)


@given(ROOM, COUNTS, st.integers(1, 20), BY_CAPACITY)
@settings(max_examples=examples(50), deadline=None)
def test_new_replicas_never_exceed_free_room(
    free: dict[str, int], previous: dict[str, int], replicas: int, division: str
) -> None:
    case = {
        "clusters": NAMES,
        "free": free,
        "previous": previous,
        "replicas": replicas,
        "policy": {"division": division},
    }
    (binding,) = place(request_of(case)).bindings.values()
    for name, count in counts_of(binding).items():
        assert count - previous.get(name, 0) <= free[name]


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 4)), min_size=2, max_size=6), ROOM)
@settings(max_examples=examples(25), deadline=None)
def test_one_round_never_books_room_twice(workloads: list[tuple[int, int]], free: dict[str, int]) -> None:
    case = {
        "clusters": NAMES,
        "free": free,
        "policy": {"division": "dynamic-weight"},
        "workloads": [
            {"workload": f"w{index}", "replicas": replicas, "requests": {"cpu": cpu}}
            for index, (replicas, cpu) in enumerate(workloads)
        ],
    }
    request = request_of(case)
    taken = dict.fromkeys(NAMES, 0)
    for item, (_, cpu) in zip(request.items, workloads, strict=True):
        for name, count in counts_of(place(request).bindings[item.identity]).items():
            taken[name] += count * cpu
    assert all(taken[name] <= free[name] for name in NAMES)


@given(ROOM, COUNTS, st.integers(1, 15), st.integers(0, 10), DIVISIONS)
@settings(max_examples=examples(50), deadline=None)
def test_scaling_up_takes_nothing_away(
    free: dict[str, int], previous: dict[str, int], replicas: int, more: int, division: str
) -> None:
    policy = {"division": division, "weights": {"m1": 3, "m2": 1, "m4": 2}}
    case = {"clusters": NAMES, "free": free, "previous": previous, "replicas": replicas, "policy": policy}
    request = request_of(case)
    small = place(request).bindings
    items = tuple(replace(item, demand=replace(item.demand, replicas=replicas + more)) for item in request.items)
    large = placed_again(request, small, items)
    for identity, binding in small.items():
        grown = counts_of(large[identity])
        assert all(grown.get(name, 0) >= count for name, count in counts_of(binding).items())


@given(ROOM, st.integers(1, 40))
@settings(max_examples=examples(37), deadline=None)
def test_tiers_fill_in_order_and_empty_in_reverse(free: dict[str, int], replicas: int) -> None:
    groups = {"a": ["m2"], "b": ["m4", "m1"], "c": ["m3"]}
    policy = {"division": "dynamic-weight", "mode": "tiers", "groups": groups, "ecsProvision": True}
    request = request_of({"clusters": NAMES, "free": free, "replicas": replicas, "policy": policy})
    full = place(request).bindings
    (binding,) = full.values()
    counts = counts_of(binding)
    left = replicas
    for names in (["m2"], ["m4", "m1"]):
        share = min(left, sum(free[name] for name in names))
        assert sum(counts.get(name, 0) for name in names) == share
        left -= share
    assert counts.get("m3", 0) == left
    for fewer in range(replicas, 0, -1):
        items = tuple(replace(item, demand=replace(item.demand, replicas=fewer)) for item in request.items)
        (now,) = placed_again(request, full, items).values()
        shrunk, missing = counts_of(now), replicas - fewer
        for names in (["m3"], ["m4", "m1"], ["m2"]):
            before = sum(counts.get(name, 0) for name in names)
            after = sum(shrunk.get(name, 0) for name in names)
            assert before - after == min(before, missing)
            missing -= before - after


@given(
    st.lists(st.lists(st.integers(0, 8), min_size=1, max_size=3), min_size=2, max_size=3),
    st.lists(st.tuples(st.integers(1, 4), st.integers(1, 4)), min_size=1, max_size=3),
)
@settings(max_examples=examples(37), deadline=None)
def test_a_gang_is_placed_on_one_cluster_or_not_at_all(nodes: list[list[int]], parts: list[tuple[int, int]]) -> None:
    observed: dict[str, Any] = {
        f"m{index}": {
            "nodes": [{"name": f"n{n}", "allocatable": {"cpu": cpus, "pods": 99}} for n, cpus in enumerate(rooms)]
        }
        for index, rooms in enumerate(nodes)
    }
    case = {
        "clusters": list(observed),
        "observed": observed,
        "kind": "PyTorchJob",
        "replicas": sum(replicas for replicas, _ in parts),
        "components": {f"c{i}": {"replicas": n, "requests": {"cpu": cpu}} for i, (n, cpu) in enumerate(parts)},
        "policy": {"division": "dynamic-weight", "gang": True},
        "partial": True,
    }
    (binding,) = place(request_of(case)).bindings.values()
    pods = sorted((cpu for n, cpu in parts for _ in range(n)), reverse=True)
    holds = {
        name: packs(pods, [int(n["allocatable"]["cpu"]) for n in given["nodes"]]) for name, given in observed.items()
    }
    assert len(binding.targets) == (1 if any(holds.values()) else 0)
    assert all(holds[name] for name in binding.clusters)


def packs(pods: list[int], rooms: list[int]) -> bool:
    """Return whether the pods go onto the nodes, by trying everything: the oracle."""
    if not pods:
        return True
    tried = set()
    for index, room in enumerate(rooms):
        if room >= pods[0] and room not in tried:
            tried.add(room)
            if packs(pods[1:], [*rooms[:index], room - pods[0], *rooms[index + 1 :]]):
                return True
    return False
