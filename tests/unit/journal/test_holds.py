"""Records of rollouts come out of the journal as they went in; equal ones are not written."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.rollout_progress import EarlierRevision, Record
from reconciler.errors import JournalCorrupt
from reconciler.journal import Journal
from reconciler.journal.sqlite_file import migrations
from tests.fakes.journals import exported

BEGUN = Record(revision="c2", begun_at="2026-11-21T10:00:00Z")
DONE = Record(revision="c1", begun_at="2026-11-20T10:00:00Z", completed_at="2026-11-20T10:05:00Z")
EVERY_FIELD = Record(
    revision="c1", begun_at="a", completed_at="b", steady_since="c", turn="c2", turn_at="d",
    earlier=(EarlierRevision(revision="c0", left_at="f"), EarlierRevision(revision="c3", left_at="e")),
)  # fmt: skip
TURN = Record(turn="c2", turn_at="2026-11-21T10:00:00Z")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    with Journal.open(tmp_path / "journal.db") as opened:
        yield opened


def statements_of(journal: Journal) -> list[str]:
    seen: list[str] = []
    journal._file._connection.set_trace_callback(seen.append)
    return seen


def test_every_field_of_a_record_is_kept(journal: Journal) -> None:
    journal.record_rollouts("web", {"m2": EVERY_FIELD, "m1": TURN})
    journal.record_rollouts("api", {"m1": DONE})
    kept = {"api": {"m1": DONE}, "web": {"m1": TURN, "m2": EVERY_FIELD}}
    assert journal.rollout_records() == kept
    assert list(journal.rollout_records()["web"]) == ["m1", "m2"]
    with Journal.open(journal.path, read_only=True) as reader:
        assert reader.rollout_records() == kept
    path = journal.path
    journal.close()
    with Journal.open(path) as again:
        assert again.rollout_records() == kept
        assert again.verify() == ()
        rows: Any = exported(again)["rollout"]
        assert [row["completed_at"] for row in rows if row["rollout"] == "api"] == [DONE.completed_at]


def test_what_is_removed_is_gone_and_the_rest_stays(journal: Journal) -> None:
    journal.record_rollouts("web", {"m1": DONE, "m2": DONE})
    journal.record_rollouts("api", {"m1": DONE})
    journal.record_rollouts("web", {"m1": None, "m2": BEGUN, "m3": None})
    journal.record_rollouts("api", {"m1": None})
    assert journal.rollout_records() == {"web": {"m2": BEGUN}}


def test_what_is_equal_costs_no_statement(journal: Journal) -> None:
    journal.record_rollouts("web", {f"m{number}": DONE for number in range(100)})
    seen = statements_of(journal)
    journal.record_rollouts("web", {f"m{number}": DONE for number in range(100)})
    journal.record_rollouts("web", {"away": None})
    assert seen == []
    journal.record_rollouts("web", {f"m{number}": BEGUN if number == 7 else DONE for number in range(100)})
    assert len([text for text in seen if text.startswith("INSERT")]) == 1
    assert len([text for text in seen if text == "COMMIT"]) == 1


def test_what_was_handed_out_is_the_callers_own(journal: Journal) -> None:
    journal.record_rollouts("web", {"m1": DONE})
    journal.rollout_records()["web"]["m1"] = BEGUN
    journal.rollout_records().clear()
    assert journal.rollout_records() == {"web": {"m1": DONE}}


def test_a_transaction_that_is_broken_off_records_nothing(journal: Journal) -> None:
    journal.record_rollouts("web", {"m1": DONE})
    with pytest.raises(ZeroDivisionError), journal.transaction():
        journal.record_rollouts("web", {"m1": BEGUN})
        raise ZeroDivisionError
    assert journal.rollout_records() == {"web": {"m1": DONE}}


def test_a_row_that_was_changed_is_told(journal: Journal) -> None:
    journal.record_rollouts("web", {"m1": DONE})
    path = journal.path
    journal.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE rollout SET revision = 'c9'")
    connection.close()
    with Journal.open(path) as again, pytest.raises(JournalCorrupt, match="rollout web m1"):
        again.rollout_records()


def test_a_journal_of_the_schema_before_is_brought_forward(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.record_timers({"a": "t"})
    with sqlite3.connect(path) as connection:
        connection.execute("DROP TABLE rollout")
        connection.execute("DROP TABLE base")
        connection.execute("DROP TABLE rollout_earlier")
        connection.execute("PRAGMA user_version = 7")
    connection.close()
    with Journal.open(path, read_only=True) as old:
        assert old.rollout_records() == {}
    with Journal.open(path) as current:
        assert len(migrations()) >= 8
        assert (current.timers(), current.rollout_records()) == ({"a": "t"}, {})
        current.record_rollouts("web", {"m1": BEGUN})
        assert current.rollout_records() == {"web": {"m1": BEGUN}}


def test_a_reset_keeps_it_since_a_cluster_that_is_away_cannot_tell_it(journal: Journal) -> None:
    journal.record_rollouts("web", {"m1": DONE})
    journal.reset()
    assert journal.rollout_records() == {"web": {"m1": DONE}}
