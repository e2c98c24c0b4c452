"""What a shard makes of what the leader tells of Rollouts. Source: ADR 22."""

from __future__ import annotations

from msgspec.structs import replace

from reconciler.model.rollouts.progress import Progress
from reconciler.model.rollouts.record import Record
from reconciler.stages.staging import as_told, to_begin, until_told, with_told

OLD = Record(revision="r1", begun_at="2026-11-25T10:00:00Z")
NEW = Record(revision="r2", begun_at="2026-11-25T11:00:00Z")
OWN = frozenset({"m1", "m2"})


def test_it_begins_where_the_leader_knew_what_is_recorded_here() -> None:
    told, pending = {"m1": NEW, "m2": NEW, "m3": NEW}, {"m1": OLD, "m2": OLD, "m3": OLD}
    assert to_begin({"m1": OLD, "m2": NEW}, told, pending, OWN) == {"m1": NEW}, "m2 has begun, m3 is of another shard"
    assert to_begin({"m1": Record(revision="r9", begun_at="2026-11-25T10:30:00Z")}, told, pending, OWN) == {}
    assert to_begin({}, told, {}, OWN) == {}, "nothing is pending"
    assert to_begin({}, told, {"m1": Record()}, OWN) == {"m1": NEW}, "nothing was there"


def test_a_completion_is_taken_from_the_leader_and_no_other_revision_is() -> None:
    done = replace(NEW, completed_at="2026-11-25T11:05:00Z")
    assert with_told({"m1": NEW, "m2": OLD, "m3": OLD}, {"m1": done, "m2": done}, OWN) == {"m1": done, "m2": OLD}


def test_a_turn_of_a_cluster_without_a_revision_is_taken_from_the_leader() -> None:
    turn = Record(turn="r2", turn_at="2026-11-25T11:00:00Z")
    assert with_told({}, {"m1": turn}, OWN) == {"m1": turn}


def test_nothing_is_deleted_where_the_revision_could_not_begin_yet() -> None:
    records = {"m1": NEW, "m2": NEW, "m3": NEW}
    told = Progress(rollout="default", release="r2", records=records, deletions_due=frozenset(records))
    found = as_told(told, {"m1": NEW, "m2": OLD}, OWN)
    assert found.deletions_due == {"m1", "m3"}
    assert found.records == {"m1": NEW, "m2": OLD, "m3": NEW}


def test_until_the_leader_has_told_nothing_is_due() -> None:
    found = Progress(rollout="default", release="r2", deletions_due=OWN, placement_due=True, is_done=True)
    waiting = until_told(found, {"m1": OLD})
    assert (waiting.deletions_due, waiting.placement_due, waiting.is_done) == (frozenset(), False, False)
    assert waiting.records == {"m1": OLD}
