"""`journal verify`, `export` and `compact`; `rebuild` has its tests on real clusters."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from reconciler.api.fleet import HistoryLimits
from reconciler.api.ledger import Event, EventKind
from reconciler.cli.printing import document_text
from reconciler.journal import Journal
from tests.fakes.journals import exported
from tests.unit.cli.command_line import run, write_store
from tests.unit.cli.journals import journal_at


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return journal_at(tmp_path)


def flip(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE applied SET uid = 'other'")
    connection.execute("UPDATE state SET document = '{}'")
    connection.commit()
    connection.close()


def test_a_sound_journal_is_said_to_be_sound(path: Path) -> None:
    assert run("journal", "verify", "--journal", str(path)) == (0, f"{path}: sound\n", "")


def test_verify_works_while_a_daemon_runs(path: Path) -> None:
    with Journal.open(path):
        assert run("journal", "verify", "--journal", str(path)).code == 0


def test_what_is_broken_is_named_with_the_way_out(path: Path) -> None:
    with Journal.open(path) as journal:
        journal.record_clusters({"m1": "u"})
    connection = sqlite3.connect(path)
    connection.execute("UPDATE cluster SET uid = 'other'")
    connection.commit()
    connection.close()
    done = run("journal", "verify", "--journal", str(path))
    assert done.code == 1
    assert "cluster m1: the row was changed" in done.out
    assert "journal rebuild" in done.err
    document = json.loads(run("journal", "verify", "--journal", str(path), "-o", "json").out)
    assert len(document["findings"]) == 1


def test_a_changed_picture_is_found(path: Path) -> None:
    flip(path)
    assert "state picture" in run("journal", "verify", "--journal", str(path)).out
    done = run("status", "--journal", str(path))
    assert done.code == 1
    assert "the row was changed" in done.err


def test_a_file_of_something_else_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(b"this is no database at all, and long enough to be one" * 40)
    done = run("journal", "verify", "--journal", str(path))
    assert done.code == 1
    assert "not a database" in done.out + done.err


def test_export_prints_everything_but_the_key(path: Path) -> None:
    with Journal.open(path, read_only=True) as journal:
        key = journal.hash_key.hex()
    done = run("journal", "export", "--journal", str(path))
    document = json.loads(done.out)
    assert (document["version"], document["fleet"]) == (1, "shop")
    assert document["state"][0]["document"]["round"] == 1
    assert len(document["event"]) == 4
    assert key not in done.out


@pytest.mark.parametrize("form", ["json", "yaml"])
@pytest.mark.parametrize("events", [0, 96, 97, 300])  # beside four: pieces have a hundred
def test_an_export_in_pieces_is_one_document(path: Path, form: str, events: int) -> None:
    time = "2026-11-21T10:00:00Z"
    with Journal.open(path) as journal:
        journal.record_events([Event(round=1, time=time, kind=EventKind.UPDATED, subject=f"x{number}\n", data={})
                               for number in range(events)])  # fmt: skip
        document = exported(journal)
    assert len(document["event"]) == 4 + events
    assert run("journal", "export", "-o", form, "--journal", str(path)).out == document_text(document, form)


def test_rebuild_wants_to_know_the_fleet(tmp_path: Path) -> None:
    store = write_store(tmp_path, fleet="# empty\n")
    done = run("journal", "rebuild", store, "--dir", "--journal", str(tmp_path / "journal.db"))
    assert done.code == 1
    assert "no document of kind Fleet" in done.err


def test_rebuild_is_refused_while_a_daemon_holds_the_journal(path: Path, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    folder.mkdir()
    with Journal.open(path) as daemon:
        done = run("journal", "rebuild", write_store(folder), "--dir", "--journal", str(path))
        assert done.code == 1
        assert "writes this journal; stop it first" in done.err
        assert daemon.complete_rounds() == 1


def test_compact_gives_space_back_and_is_refused_beside_a_writer(path: Path, tmp_path: Path) -> None:
    with Journal.open(path) as journal:
        journal.record_events([Event(round=1, time="2026-11-21T10:00:00Z", kind=EventKind.UPDATED,
                                     subject=f"x{n}", data={"why": "y" * 500}) for n in range(3000)])  # fmt: skip
        journal.keep_history(HistoryLimits(events_max=1000), "2026-11-21T10:00:00Z")
        done = run("journal", "compact", "--journal", str(path))
        assert (done.code, "writes this journal; stop it first" in done.err) == (1, True)
    before = path.stat().st_size
    done = run("journal", "compact", "--journal", str(path))
    assert (done.code, done.err) == (0, "")
    assert done.out == f"{path}: {before / 2**20:.1f} MiB before, {path.stat().st_size / 2**20:.1f} MiB now\n"
    assert path.stat().st_size < before / 2
    assert run("journal", "verify", "--journal", str(path)).code == 0
    missing = run("journal", "compact", "--journal", str(tmp_path / "none.db"))
    assert (missing.code, (tmp_path / "none.db").exists()) == (1, False)
