from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from reconciler.stages.moves import Run, effective, pinned, run_of

clusters = st.sampled_from(["m1", "m2", "m3", "m4"])
placements = st.dictionaries(clusters, st.integers(0, 9))


def test_old_copy_keeps_its_replicas_until_the_new_one_is_healthy() -> None:
    state = effective({"m2": 3}, {"m1": 3}, lambda cluster: False)
    assert state.targets == {"m1": 3, "m2": 3}
    assert state.holds == {"m1": "waits for m2 healthy"}


def test_old_copy_goes_when_the_new_one_is_healthy() -> None:
    assert effective({"m2": 3}, {"m1": 3}, lambda cluster: True).targets == {"m2": 3}


def test_scaling_down_waits_for_nothing() -> None:
    state = effective({"m1": 1, "m2": 1}, {"m1": 3, "m2": 2}, lambda cluster: False, is_new=True)
    assert (state.targets, state.holds) == ({"m1": 1, "m2": 1}, {})


def test_resource_without_replicas_moves_create_first() -> None:
    state = effective({"m2": None}, {"m1": None}, lambda cluster: False)
    assert state.holds == {"m1": "waits for m2 healthy"}


def test_leaving_a_cluster_of_several_waits_for_nothing() -> None:
    assert effective({"m1": 2}, {"m1": 2, "m2": 2}, lambda cluster: False, is_new=True).holds == {}


def test_copy_that_arrived_and_is_not_healthy_yet_is_still_waited_for() -> None:
    assert effective({"m2": 2}, {"m1": 2, "m2": 2}, lambda cluster: False).holds == {"m1": "waits for m2 healthy"}


@given(target=placements, old=placements, ready=st.sets(clusters))
def test_nowhere_fewer_replicas_than_old_or_target_while_something_waits(
    target: dict[str, int], old: dict[str, int], ready: set[str]
) -> None:
    state = effective(target, old, ready.__contains__)
    if state.holds:
        for cluster in {*target, *old}:
            in_force = state.targets.get(cluster) or 0
            assert in_force == max(target.get(cluster, 0), old.get(cluster, 0))
    else:
        assert state.targets == target


@given(target=placements, old=placements)
def test_everything_ready_means_the_target_is_in_force(target: dict[str, int], old: dict[str, int]) -> None:
    assert effective(target, old, lambda cluster: True).targets == target


def test_started_job_stays_under_an_edit() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": Run.STARTED}, by_tick=False)
    assert state.targets == {"m1": 1}
    assert state.holds == {"m1": "the run has started and is not moved"}


def test_started_job_ends_before_a_tick_starts_it_elsewhere() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": Run.STARTED}, by_tick=True)
    assert state.targets == {"m2": 1}
    assert state.waits == {"m2": "waits until the run in m1 is gone"}


def test_finished_job_never_moves() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": Run.FINISHED}, by_tick=True)
    assert state.targets == {"m1": 1}


def test_run_of_reads_the_status() -> None:
    assert run_of({"kind": "Job", "status": {"active": 1}}) is Run.STARTED
    assert run_of({"kind": "Job", "status": {"conditions": [{"type": "Complete", "status": "True"}]}}) is Run.FINISHED
    assert run_of({"kind": "Job", "status": {}}) is Run.PENDING
    assert run_of({"kind": "Pod", "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}) is Run.STARTED
    assert run_of({"kind": "Pod", "status": {"phase": "Succeeded"}}) is Run.FINISHED
