from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.ledger import AppliedRow
from reconciler.model.refs import GVK, Identity
from reconciler.stages.moves.moves import (
    NOBODY_TAKES_IT,
    Effective,
    Run,
    Serving,
    effective,
    pinned,
    run_of,
    still_established,
)

WEB = Identity("apps", "Deployment", "demo", "web")

clusters = st.sampled_from(["m1", "m2", "m3", "m4"])
placements = st.dictionaries(clusters, st.integers(0, 9))


Replicas = int | None


def among(**copies: Serving) -> Callable[[str], Serving]:
    """What the named copies serve; the others serve nothing."""
    return lambda cluster: copies.get(cluster, Serving())


READY = Serving(is_available=True)


def settled(replicas: int) -> Serving:
    """A copy that serves as it has for long."""
    return Serving(is_available=True, replicas=replicas, established=replicas)


def broken(established: int | None = None, replicas: int | None = 0) -> Serving:
    return Serving(established=established, replicas=replicas)


def silent(established: int | None = None) -> Serving:
    """Its cluster does not answer."""
    return Serving(is_known=False, established=established)


def test_old_copy_keeps_its_replicas_until_the_new_one_is_healthy() -> None:
    state = effective({"m2": 3}, {"m1": 3}, among(m1=settled(3)))
    assert state.targets == {"m1": 3, "m2": 3}
    assert state.holds == {"m1": "waits for m2 healthy"}


def test_old_copy_goes_when_the_new_one_is_available() -> None:
    assert effective({"m2": 3}, {"m1": 3}, among(m2=READY)).targets == {"m2": 3}


@pytest.mark.parametrize("new", [broken(), broken(1, 1), silent()])
def test_a_copy_that_exists_and_never_served_takes_nothing_over(new: Serving) -> None:
    target: dict[str, Replicas] = {"m2": 3}
    state = effective(target, {"m1": 3, "m2": 3}, among(m1=settled(3), m2=new))
    assert state.holds == {"m1": "waits for m2 healthy"}
    state = effective({"m1": 1, "m2": 2}, {"m1": 3, "m2": 2}, among(m1=settled(3), m2=new))
    assert state == Effective(targets={"m1": 3, "m2": 2}, holds={"m1": "waits for m2 healthy"})


def test_a_cluster_is_left_only_while_the_others_serve() -> None:
    old: dict[str, Replicas] = {"m1": 2, "m2": 2}
    for copy in (broken(2), silent(2)):
        state = effective({"m2": 2}, old, among(m1=settled(2), m2=copy))
        assert state.holds == {"m1": "waits for m2 healthy"}


def test_a_settled_copy_that_does_not_answer_is_not_waited_for_while_another_serves() -> None:
    old: dict[str, Replicas] = {"m1": 2, "m2": 2, "m3": 2}
    target: dict[str, Replicas] = {"m2": 2, "m3": 2}
    assert effective(target, old, among(m2=settled(2), m3=silent(2))).targets == target
    assert effective(target, old, among(m2=settled(2), m3=silent(1))).holds == {"m1": "waits for m3 healthy"}
    assert effective(target, old, among(m2=settled(2), m3=broken(2))).holds == {"m1": "waits for m3 healthy"}
    assert effective(target, old, among(m2=silent(2), m3=silent(2))).holds == {"m1": "waits for m2, m3 healthy"}


def test_scaling_down_waits_for_nothing_and_nobodys_health() -> None:
    copies = among(m1=settled(3), m2=broken(2), m3=silent(2))
    state = effective({"m1": 1, "m2": 1, "m3": 1}, {"m1": 3, "m2": 2, "m3": 2}, copies)
    assert (state.targets, state.holds) == ({"m1": 1, "m2": 1, "m3": 1}, {})


def test_a_copy_that_never_served_more_shrinks_at_once() -> None:
    target: dict[str, Replicas] = {"m1": 2, "m2": 3}
    old: dict[str, Replicas] = {"m1": 5}
    assert effective(target, old, among(m1=broken(None, 2))) == Effective(targets=target)
    assert effective(target, old, among(m1=Serving(is_available=True, replicas=3))).holds == {
        "m1": "waits for m2 healthy"
    }
    assert effective(target, old, among(m1=broken(5, 0))).holds == {"m1": "waits for m2 healthy"}
    assert effective(target, old, among(m1=broken(None, None))).holds == {"m1": "waits for m2 healthy"}
    assert effective({"m1": 2}, old, among(m1=broken(None, None))) == Effective(targets={"m1": 2})


def test_two_copies_that_shrink_do_not_wait_for_each_other() -> None:
    target: dict[str, Replicas] = {"m1": 2, "m2": 2}
    old: dict[str, Replicas] = {"m1": 5, "m2": 5}
    m1, m2 = broken(None, 1), broken(None, 2)
    assert effective(target, old, among(m1=m1, m2=m2)) == Effective(targets=target)
    state = effective(target, old, among(m1=m1, m2=settled(5)))
    assert state == Effective(targets={"m1": 2, "m2": 5}, holds={"m2": "waits for m1 healthy"})


def test_of_two_arrivals_both_are_waited_for() -> None:
    old: dict[str, Replicas] = {"m1": 2, "m2": 2, "m3": 2, "m4": 2}
    state = effective({"m3": 2, "m4": 2}, old, among(m1=settled(2), m2=settled(2), m3=READY))
    assert state.holds == dict.fromkeys(("m1", "m2"), "waits for m4 healthy")


def test_where_nothing_can_take_it_everything_stays() -> None:
    state = effective({}, {"m1": 3}, among(m1=settled(3)))
    assert state == Effective(targets={"m1": 3}, holds={"m1": NOBODY_TAKES_IT})


def test_what_has_no_replicas_moves_create_first() -> None:
    state = effective({"m2": None}, {"m1": None}, among())
    assert state.holds == {"m1": "waits for m2 healthy"}


def test_a_copy_on_no_node_does_not_take_over_from_one_that_serves() -> None:
    healthy_on_none = Serving(is_available=True, replicas=0)
    serves = Serving(is_available=True, replicas=2)
    target: dict[str, Replicas] = {"m2": None, "m3": None}
    assert effective(target, {"m1": None}, among(m1=serves, m2=healthy_on_none, m3=healthy_on_none)).holds
    assert not effective(target, {"m1": None}, among(m1=serves, m2=healthy_on_none, m3=serves)).holds
    assert not effective(target, {"m1": None}, among(m1=broken(), m2=healthy_on_none, m3=healthy_on_none)).holds


def test_what_is_established_ends_with_the_object_and_never_exceeds_what_is_assigned() -> None:
    row = AppliedRow(cluster="m1", gvk=GVK("apps", "v1", "Deployment"), identity=WEB, uid="u", established=5)
    assert still_established(row, "u", 7) == 5
    assert still_established(row, "u", 2) == 2
    assert still_established(row, "u", None) == 5
    assert still_established(row, "v", 7) is None
    assert still_established(None, "u", 7) is None


@given(target=placements, old=placements, ready=st.sets(clusters))
def test_nowhere_fewer_replicas_than_old_or_target_while_something_waits(
    target: dict[str, int], old: dict[str, int], ready: set[str]
) -> None:
    state = effective(target, old, lambda cluster: settled(old.get(cluster, 0)) if cluster in ready else broken(9))
    if state.holds:
        for cluster in {*target, *old}:
            in_force = state.targets.get(cluster) or 0
            assert in_force == max(target.get(cluster, 0), old.get(cluster, 0)) or (not target and cluster in old)
    else:
        assert state.targets == target


@given(target=placements, old=placements)
def test_everything_available_means_the_target_is_in_force(target: dict[str, int], old: dict[str, int]) -> None:
    state = effective(target, old, lambda cluster: READY)
    assert state.targets == (target or old)


def test_started_job_stays_under_an_edit() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": Run.STARTED}, ticked=())
    assert state.targets == {"m1": 1}
    assert state.holds == {"m1": "the run has started and is not moved"}


def test_started_job_ends_before_a_tick_starts_it_elsewhere() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": Run.STARTED}, ticked=("m1",))
    assert state.targets == {"m2": 1}
    assert state.waits == {"m2": "waits until the run in m1 is gone"}


def test_started_job_stays_under_a_tick_while_nothing_can_take_it_over() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": Run.STARTED}, ["m1"], lambda cluster: f"{cluster} is closed")
    assert state == Effective(targets={"m1": 1}, holds={"m1": "m2 cannot take the run over: m2 is closed"})
    assert pinned({}, {"m1": 1}, {"m1": Run.STARTED}, ticked=("m1",)).targets == {"m1": 1}


def test_an_order_about_one_started_job_takes_no_other_one_away() -> None:
    runs = {"m1": Run.STARTED, "m2": Run.STARTED}
    state = pinned({"m3": 1}, {"m1": 1, "m2": 1}, runs, ticked=("m1",))
    assert state.targets == {"m1": 1, "m2": 1}
    assert pinned({"m3": 1}, {"m1": 1, "m2": 1}, runs, ticked=("m1", "m2")).targets == {"m3": 1}


def test_a_job_that_may_begin_at_any_moment_goes_before_it_comes_elsewhere() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": Run.PENDING}, ticked=())
    assert state == Effective(targets={"m2": 1}, waits={"m2": "waits until the run in m1 is gone"})


def test_a_job_that_has_not_begun_stays_where_nothing_can_take_it() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": Run.PENDING}, (), lambda cluster: f"{cluster} is closed")
    assert state.targets == {"m1": 1}
    assert pinned({}, {"m1": 1}, {"m1": Run.PENDING}, ticked=()).targets == {"m1": 1}


def test_finished_job_never_moves() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": Run.FINISHED}, ticked=("m1",))
    assert state.targets == {"m1": 1}


def test_run_of_reads_the_status() -> None:
    assert run_of({"kind": "Job", "status": {"active": 1}}) is Run.STARTED
    assert run_of({"kind": "Job", "status": {"conditions": [{"type": "Complete", "status": "True"}]}}) is Run.FINISHED
    assert run_of({"kind": "Job", "status": {}}) is Run.PENDING
    assert run_of({"kind": "Pod", "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}) is Run.STARTED
    assert run_of({"kind": "Pod", "status": {"phase": "Succeeded"}}) is Run.FINISHED
