"""The room that is kept up to date during a round equals a fresh estimate of the nodes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.clusters import ClusterNode, ClusterObservation, Quota
from reconciler.api.demand import Component, PodShape, Resources
from reconciler.placement import admits, fit, free_room
from reconciler.placement.capacity import FleetRoom
from reconciler.placement.capacity.estimate import UNLIMITED, fit_of_quota
from reconciler.placement.gang import fits_together, sets_that_fit
from tests.present import present

SHAPES = [
    PodShape(requests=(("cpu", 1000),)),
    PodShape(requests=(("cpu", 500), ("memory", 2))),
    PodShape(requests=(("memory", 3),)),
    PodShape(requests=()),
    PodShape(requests=(("cpu", 700),), node_selector=(("disk", "ssd"),)),
    PodShape(requests=(("nvidia.com/gpu", 1),)),
]


def estimate(observation: ClusterObservation, shape: PodShape, namespace: str = "") -> int | None:
    """Pods of the shape that the cluster has room for now, in addition to what runs; None when that is not known.

    Sum over the nodes that admit the shape, but not more than these nodes have left as a whole after the pods that wait
    for a node (`pending_requests`: where those will land is not known, that they will take room is), and not more than
    the quotas of the namespace allow. An unreachable cluster has no room.
    """
    if not observation.reachable:
        return 0
    if observation.nodes is None:
        return None
    open_nodes = [free_room(node) for node in observation.nodes if not admits(node, shape)]
    pods = sum(fit(free, shape.requests) for free in open_nodes)
    pods = min(pods, fit_as_a_whole(open_nodes, observation.pending_requests, shape))
    for quota in observation.quotas:
        if quota.namespace == namespace:
            pods = min(pods, fit_of_quota(quota, {}, shape.requests))
    return pods


def fit_as_a_whole(nodes: list[dict[str, int]], waiting: Resources, shape: PodShape) -> int:
    """Pods that the nodes together have room for after the waiting pods, as if they were one node."""
    if not any(waiting.values()):
        return UNLIMITED
    names = ["pods", *(name for name, amount in shape.requests if amount > 0)]
    whole = {name: sum(max(0, free.get(name, 0)) for free in nodes) - waiting.get(name, 0) for name in names}
    return fit(whole, shape.requests)


@st.composite
def clusters(draw: st.DrawFn) -> ClusterObservation:
    nodes = tuple(
        ClusterNode(
            name=f"n{index}",
            ready=draw(st.sampled_from([True, True, True, False])),
            labels=draw(st.sampled_from([{}, {"disk": "ssd"}])),
            allocatable={"cpu": draw(st.integers(0, 8000)), "memory": draw(st.integers(0, 12)), "pods": 6},
            requested={"cpu": draw(st.integers(0, 2000)), "pods": draw(st.integers(0, 7))},
        )
        for index in range(draw(st.integers(0, 5)))
    )
    waiting = draw(st.sampled_from([{}, {"cpu": 1500, "pods": 2}, {"memory": 4}]))
    quotas = draw(
        st.sampled_from([(), (Quota(namespace="demo", hard={"requests.cpu": 4000}, used={"requests.cpu": 1000}),)])
    )
    return ClusterObservation(name="m1", nodes=nodes, pending_requests=waiting, quotas=quotas)


@given(clusters(), st.sampled_from(SHAPES), st.sampled_from(["demo", "other"]))
@settings(deadline=None)
def test_an_untouched_room_is_the_estimate(seen: ClusterObservation, shape: PodShape, namespace: str) -> None:
    ask = FleetRoom({"m1": seen}).asker(shape, namespace, ("apps", "Deployment"), there=())
    assert ask(["m1"])[0] == estimate(seen, shape, namespace)


@given(clusters(), st.sampled_from(SHAPES), st.integers(0, 9))
@settings(deadline=None)
def test_taking_pods_of_a_shape_takes_exactly_their_number(
    seen: ClusterObservation, shape: PodShape, pods: int
) -> None:
    room = FleetRoom({"m1": seen})
    ask = room.asker(shape, "demo", ("apps", "Deployment"), there=())
    before = present(ask(["m1"])[0])
    room.take((("m1", min(pods, before)),), shape, "demo")
    assert ask(["m1"])[0] == before - min(pods, before)


@given(clusters(), st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(0, 4)), max_size=6), st.sampled_from(SHAPES))
@settings(deadline=None)
def test_room_asked_for_in_between_does_not_change_what_is_left(
    seen: ClusterObservation, takes: list[tuple[PodShape, int]], shape: PodShape
) -> None:
    asked, silent = FleetRoom({"m1": seen}), FleetRoom({"m1": seen})
    for taken, pods in takes:
        for room in (asked, silent):
            room.take((("m1", pods),), taken, "demo")
        for other in SHAPES:
            asked.asker(other, "demo", ("apps", "Deployment"), there=())(["m1"])[0]
    answers = [room.asker(shape, "demo", ("apps", "Deployment"), there=())(["m1"])[0] for room in (asked, silent)]
    assert answers[0] == answers[1]


@given(clusters(), st.lists(st.tuples(st.sampled_from(SHAPES), st.integers(1, 4)), min_size=1, max_size=3))
@settings(deadline=None)
def test_a_set_that_fits_leaves_no_pod_without_a_place(
    seen: ClusterObservation, parts: list[tuple[PodShape, int]]
) -> None:
    room = present(FleetRoom({"m1": seen}).of("m1"))
    components = [Component(name=str(index), replicas=n, shape=shape) for index, (shape, n) in enumerate(parts)]
    sets = sets_that_fit(components, room, "demo", enough=8)
    assert (sets > 0) == fits_together(components, room, "demo")
    for component in components:
        assert sets * component.replicas <= present(estimate(seen, component.shape, "demo"))
