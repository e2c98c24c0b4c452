"""`now` asks the running service, and says when there is none."""

from __future__ import annotations

from pathlib import Path

from reconciler.journal import Journal
from tests.unit.cli.command_line import run
from tests.unit.cli.journals import record_round


def test_the_service_is_asked_through_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal)
        assert journal.last_order == ""
        seen = set()
        for _ in range(2):
            version = journal.data_version
            done = run("now", "--journal", str(path))
            assert (done.code, "look at everything now" in done.err) == (0, True)
            assert journal.data_version != version
            seen.add(journal.last_order)
        assert len(seen) == 2, "each time is told from the one before"


def test_without_a_service_nobody_is_asked(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        record_round(journal)
    done = run("now", "--journal", str(path))
    assert done.code == 1
    assert "no service runs with this journal; 'reconciler apply'" in done.err
    with Journal.open(path, read_only=True) as journal:
        assert journal.last_order == ""
