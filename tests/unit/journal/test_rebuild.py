"""A rebuild keeps the broken file and who we are, and forgets what the members can tell again."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from reconciler.api.ledger import AppliedRow, SuspensionRecord
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import EarlierRevision, Record
from reconciler.errors import JournalLocked, JournalTooNew
from reconciler.journal import Journal, holder, rebuild
from reconciler.journal.journal_rebuild import move_aside

ROW = AppliedRow(
    cluster="m1", gvk=GVK("", "v1", "ConfigMap"), identity=Identity("", "ConfigMap", "demo", "c"), recorded={"a": 1}
)

DONE = Record(
    revision="c1", begun_at="2026-11-20T10:00:00Z", completed_at="2026-11-20T10:05:00Z",
    earlier=(EarlierRevision(revision="c0", left_at="2026-11-20T10:00:00Z"),),
)  # fmt: skip


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.record_fleet("shop")
        journal.record_cluster("m1", "u-1")
        journal.suspend(SuspensionRecord(scope="fleet", reason="incident"))
        journal.record_applied([ROW])
        journal.record_round("r", "t", {})
        journal.record_rollouts("web", {"m1": DONE})
    return path


def identity_of(path: Path) -> tuple[str, bytes]:
    with Journal.open(path, read_only=True) as journal:
        return journal.uuid, journal.hash_key


def test_a_sound_journal_is_reset_in_place(path: Path) -> None:
    before = identity_of(path)
    journal, set_aside, lost = rebuild(path)
    with journal:
        assert (set_aside, lost) == (None, ())
        assert (journal.uuid, journal.hash_key) == before
        assert journal.ledger() == {}
        assert journal.complete_rounds() == 0
        assert journal.rollout_records() == {"web": {"m1": DONE}}


def test_a_broken_row_sets_the_file_aside_and_saves_the_rest(path: Path) -> None:
    before = identity_of(path)
    connection = sqlite3.connect(path)
    connection.execute("UPDATE applied SET uid = 'other'")
    connection.execute("UPDATE suspension SET reason = 'other'")
    connection.commit()
    connection.close()
    journal, set_aside, lost = rebuild(path)
    with journal:
        assert set_aside == path.with_name("journal.db.corrupt-1")
        assert lost == ("suspensions",)
        assert (journal.uuid, journal.hash_key) == before
        assert (journal.fleet, journal.cluster_uids()) == ("shop", {"m1": "u-1"})
        assert (journal.ledger(), journal.suspensions(), journal.complete_rounds()) == ({}, (), 0)
        assert journal.rollout_records() == {"web": {"m1": DONE}}
        assert journal.verify() == ()


def test_what_cannot_be_read_at_all_is_named_as_lost(path: Path) -> None:
    before = identity_of(path)
    path.write_bytes(b"garbage" * 1000)
    first, aside, lost = rebuild(path)
    first.close()
    words = "what it wrote into the clusters' marks"
    assert lost == ("its uuid and fleet", "the uids of the clusters", "suspensions", words)
    assert identity_of(path) != before
    assert aside is not None
    assert aside.read_bytes() == b"garbage" * 1000
    path.write_bytes(b"again")
    second, aside, _ = rebuild(path)
    second.close()
    assert aside == path.with_name("journal.db.corrupt-2")


def test_the_log_of_a_broken_file_never_reaches_the_new_one(path: Path, tmp_path: Path) -> None:
    crashed = tmp_path / "crashed" / "journal.db"
    crashed.parent.mkdir()
    with Journal.open(path) as journal:
        journal.record_timers({"old": "t"})
        shutil.copy(f"{path}-wal", f"{crashed}-wal")  # what a killed process leaves
        crashed.write_bytes(b"garbage" * 1000)
    assert Path(f"{crashed}-wal").stat().st_size > 0
    rebuilt, aside, _ = rebuild(crashed)
    with rebuilt:
        assert aside is not None
        assert rebuilt.timers() == {}
        assert rebuilt.verify() == ()


def test_what_is_moved_aside_stays_together(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    for suffix in ("", "-wal", "-shm"):
        Path(f"{path}{suffix}").write_text(f"file{suffix}")
    Path(f"{path}.lock").write_text("")
    aside = move_aside(path)
    assert {found.name: found.read_text() for found in tmp_path.iterdir()} == {
        "journal.db.corrupt-1": "file",
        "journal.db.corrupt-1-wal": "file-wal",
        "journal.db.corrupt-1-shm": "file-shm",
        "journal.db.lock": "",
    }
    assert aside.name == "journal.db.corrupt-1"


def test_a_journal_in_use_is_not_rebuilt(path: Path) -> None:
    with Journal.open(path), pytest.raises(JournalLocked):
        rebuild(path)


def test_a_newer_journal_is_not_rebuilt(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(JournalTooNew):
        rebuild(path)
    assert path.exists()
    assert holder(path) is None


def test_a_missing_journal_is_a_new_one(tmp_path: Path) -> None:
    journal, aside, lost = rebuild(tmp_path / "journal.db")
    with journal:
        assert (aside, lost, journal.ledger()) == (None, (), {})
