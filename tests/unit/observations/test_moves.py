from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.clusters import Health, LastHealth
from reconciler.api.ledger import AppliedRow
from reconciler.api.plan import HeldBy, Hold
from reconciler.api.refs import GVK, Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.observations import (
    ActivePlacement,
    Availability,
    Available,
    CopyAtRest,
    CopyAvailability,
    JobProgress,
    NotAvailable,
    RecordedMove,
    UnknownAvailability,
    UnknownReason,
    availability_of,
    effective,
    last_availability,
    memory_of,
    pinned,
    run_of,
    with_copy_at_rest,
)
from tests.yaml_text import load_yaml

WEB = Identity("apps", "Deployment", "demo", "web")
TABLES = Path(__file__).parents[2] / "cases" / "moves"
GROUPS = {"ConfigMap": "", "PersistentVolumeClaim": ""}

clusters = st.sampled_from(["m1", "m2", "m3", "m4"])
placements = st.dictionaries(clusters, st.integers(0, 9))


def cases(table: str) -> list[Any]:
    rows = load_yaml((TABLES / f"{table}.yaml").read_text())["rows"]
    return [pytest.param(row, id=row["name"]) for row in rows]


def availability_in(row: Mapping[str, Any]) -> Availability:
    """Return what a row says of a copy: available, lacking, or unknown for a reason."""
    if "unknown" in row:
        return UnknownAvailability(UnknownReason[row["unknown"]])
    return Available(row["available"]) if "available" in row else NotAvailable(row.get("lacking", 0))


def serving_in(row: Mapping[str, Any]) -> CopyAvailability:
    served = row.get("served")
    return CopyAvailability(availability=availability_in(row), established=served, base=row.get("base", served or 0))


@pytest.mark.parametrize("row", cases("effective"))
def test_placement_in_force(row: dict[str, Any]) -> None:
    copies = {cluster: serving_in(copy) for cluster, copy in row["copies"].items()}
    serving = {**dict.fromkeys({*row["target"], *row["old"]}, serving_in({})), **copies}
    state = effective(row["target"], row["old"], serving)
    holds = row.get("holds", {})
    kept = {cluster: row["old"][cluster] for cluster in holds}
    assert state.targets == {**row["target"], **kept}
    assert {cluster: (hold.by, hold.why) for cluster, hold in state.holds.items()} == {
        cluster: (HeldBy.MOVE, why) for cluster, why in holds.items()
    }


@pytest.mark.parametrize("row", cases("availability"))
def test_what_a_status_tells(row: dict[str, Any]) -> None:
    live = {"kind": row["kind"], "metadata": {"generation": 2}}
    live |= {key: row[key] for key in ("spec", "status") if key in row}
    interpreter = BUILT_IN_KINDS.of(GROUPS.get(row["kind"], "apps"), row["kind"])
    assert availability_of(live, interpreter) == availability_in(row)


def test_what_somebody_told_of_an_object_without_a_status() -> None:
    assert last_availability(LastHealth(Health.UNKNOWN, 3)) == UnknownAvailability(UnknownReason.STATUS)
    assert last_availability(LastHealth(Health.HEALTHY, 3)) == Available(3)
    assert last_availability(LastHealth(Health.PROGRESSING, 1)) == NotAvailable(1)


def row_of(uid: str = "u", established: int | None = None, base: int | None = None, replicas: int = 5) -> AppliedRow:
    gvk = GVK("apps", "v1", "Deployment")
    return AppliedRow(
        cluster="m1", gvk=gvk, identity=WEB, uid=uid, established=established, base=base, replicas=replicas
    )


def test_what_is_remembered_ends_with_the_object_and_never_exceeds_what_is_assigned() -> None:
    row = row_of(established=3, base=5)
    assert memory_of(row, "u", 7) == RecordedMove(established=3, base=5)
    assert memory_of(row, "u", 2) == RecordedMove(established=2, base=2)
    assert memory_of(row, "u", None) == RecordedMove(established=3, base=5)
    assert memory_of(row, "v", 7) == memory_of(None, "u", 7) == RecordedMove()


def test_what_a_copy_at_rest_is_recorded_with() -> None:
    row = row_of(established=3)
    sick = with_copy_at_rest(row, CopyAtRest(uid="u", replicas=5, is_available=False))
    assert (sick.established, sick.base) == (3, 5)
    well = with_copy_at_rest(sick, CopyAtRest(uid="u", replicas=5, is_available=True))
    assert (well.established, well.base) == (5, None)
    assert with_copy_at_rest(row, CopyAtRest(uid="v", replicas=5, is_available=True)) == row
    assert with_copy_at_rest(row_of(replicas=4), CopyAtRest(uid="u", replicas=5, is_available=False)).base == 4


@given(target=placements, old=placements, ready=st.sets(clusters))
def test_nowhere_fewer_replicas_than_old_or_target_while_something_waits(
    target: dict[str, int], old: dict[str, int], ready: set[str]
) -> None:
    serving = {
        cluster: serving_in({"available" if cluster in ready else "lacking": 9, "served": old.get(cluster, 0)})
        for cluster in {*target, *old}
    }
    state = effective(target, old, serving)
    if not state.holds:
        assert state.targets == target
        return
    in_force = {cluster: state.targets.get(cluster) or 0 for cluster in {*target, *old}}
    assert all(replicas >= target.get(cluster, 0) for cluster, replicas in in_force.items())
    reduced = {cluster for cluster, replicas in old.items() if in_force[cluster] < replicas}
    # The one that all others wait for waits for nobody.
    assert len(reduced) <= 1
    assert not reduced & ready


@given(target=placements, old=placements)
def test_everything_available_means_the_target_is_in_force(target: dict[str, int], old: dict[str, int]) -> None:
    state = effective(target, old, dict.fromkeys({*target, *old}, CopyAvailability(availability=Available())))
    assert state.targets == (target or old)


GONE_FIRST = Hold(HeldBy.OTHERS, "waits until the run in m1 is gone")


def test_started_job_stays_under_an_edit() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": JobProgress.STARTED}, ticked=())
    assert state.targets == {"m1": 1}
    assert state.holds == {"m1": Hold(HeldBy.OTHERS, "the run has started and is not moved")}


def test_started_job_ends_before_a_tick_starts_it_elsewhere() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": JobProgress.STARTED}, ticked=("m1",))
    assert state.targets == {"m2": 1}
    assert state.waits == {"m2": GONE_FIRST}


def test_started_job_stays_under_a_tick_while_nothing_can_take_it_over() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": JobProgress.STARTED}, ["m1"], {"m2": "m2 is closed"})
    assert state == ActivePlacement(
        targets={"m1": 1}, holds={"m1": Hold(HeldBy.OTHERS, "m2 cannot take the run over: m2 is closed")}
    )
    assert pinned({}, {"m1": 1}, {"m1": JobProgress.STARTED}, ticked=("m1",)).targets == {"m1": 1}


def test_an_order_about_one_started_job_takes_no_other_one_away() -> None:
    runs = {"m1": JobProgress.STARTED, "m2": JobProgress.STARTED}
    state = pinned({"m3": 1}, {"m1": 1, "m2": 1}, runs, ticked=("m1",))
    assert state.targets == {"m1": 1, "m2": 1}
    assert pinned({"m3": 1}, {"m1": 1, "m2": 1}, runs, ticked=("m1", "m2")).targets == {"m3": 1}


def test_a_job_that_may_begin_at_any_moment_goes_before_it_comes_elsewhere() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": JobProgress.PENDING}, ticked=())
    assert state == ActivePlacement(targets={"m2": 1}, waits={"m2": GONE_FIRST})


def test_a_job_that_has_not_begun_stays_where_nothing_can_take_it() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": JobProgress.PENDING}, (), {"m2": "m2 is closed"})
    assert state.targets == {"m1": 1}
    assert pinned({}, {"m1": 1}, {"m1": JobProgress.PENDING}, ticked=()).targets == {"m1": 1}


def test_finished_job_never_moves() -> None:
    state = pinned({"m2": 1}, {"m1": 1}, {"m1": JobProgress.FINISHED}, ticked=("m1",))
    assert state.targets == {"m1": 1}


def test_run_of_reads_the_status() -> None:
    assert run_of({"kind": "Job", "status": {"active": 1}}) is JobProgress.STARTED
    assert (
        run_of({"kind": "Job", "status": {"conditions": [{"type": "Complete", "status": "True"}]}})
        is JobProgress.FINISHED
    )
    assert run_of({"kind": "Job", "status": {}}) is JobProgress.PENDING
    assert run_of({"kind": "Pod", "spec": {"nodeName": "n"}, "status": {"phase": "Running"}}) is JobProgress.STARTED
    assert run_of({"kind": "Pod", "status": {"phase": "Succeeded"}}) is JobProgress.FINISHED
