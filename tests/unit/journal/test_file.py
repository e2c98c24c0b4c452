"""A damaged, older or newer file is recognised for what it is, and nothing is lost by looking."""

from __future__ import annotations

import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.api.ledger import AppliedRow, Intent
from reconciler.api.plan import Action
from reconciler.api.refs import GVK, Identity
from reconciler.errors import JournalCorrupt, JournalError, JournalTooNew
from reconciler.journal import Journal
from reconciler.journal.rows import APPLIED, TABLES, TIMER
from reconciler.journal.sqlite_file import APPLICATION_ID, JournalFile, migrations, statements


def rows(count: int) -> list[AppliedRow]:
    return [
        AppliedRow(
            cluster="m1",
            gvk=GVK("", "v1", "ConfigMap"),
            identity=Identity("", "ConfigMap", "demo", f"name-{number:05}"),
            uid=f"uid-{number}",
            recorded={"data": {"key": f"value-{number}"}},
            policy="PropagationPolicy demo/web",
        )
        for number in range(count)
    ]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A closed journal of a few pages."""
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        journal.record_applied(rows(300))
    return path


def changed(path: Path, sql: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(sql)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("start", "data"),
    [(0, b"\0" * 100), (4096 * 3, b"\xa5" * 4096), (100, b"\xff" * 64)],
    ids=["the header is zeroed", "a page is garbage", "the schema page is garbage"],
)
def test_a_broken_page_is_found_at_open(path: Path, start: int, data: bytes) -> None:
    content = bytearray(path.read_bytes())
    content[start : start + len(data)] = data
    path.write_bytes(content)
    with pytest.raises(JournalCorrupt, match="journal rebuild"):
        Journal.open(path)
    assert path.read_bytes() == bytes(content), "opening must leave the evidence as it is"


def test_a_truncated_file_is_found_at_open(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: 4096 * 5 + 100])
    with pytest.raises(JournalCorrupt):
        Journal.open(path)


def test_a_text_file_is_not_a_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_text("kind: Deployment\n" * 100)
    with pytest.raises(JournalCorrupt):
        Journal.open(path)
    with pytest.raises(JournalCorrupt):
        Journal.open(path, read_only=True)


@pytest.mark.parametrize("value", [b"uid-150", b"PropagationPolicy demo/web", b"ConfigMap"])
def test_one_flipped_bit_in_a_value_is_found_when_it_is_read(path: Path, value: bytes) -> None:
    content = bytearray(path.read_bytes())
    for offset in _offsets(content, value):
        content[offset] ^= 1
    path.write_bytes(content)
    with Journal.open(path) as journal:
        with pytest.raises(JournalCorrupt, match="the row was changed"):
            journal.applied("m1")
        assert any("applied m1" in problem for problem in journal.verify())


def _offsets(content: bytearray, value: bytes) -> list[int]:
    found, start = [], content.find(value)
    while start >= 0:
        found.append(start)
        start = content.find(value, start + 1)
    assert found
    return found


@pytest.mark.parametrize("seed", range(40))
def test_a_flipped_byte_anywhere_is_found_or_harmless(path: Path, seed: int) -> None:
    expected = {row.identity: row for row in rows(300)}
    content = bytearray(path.read_bytes())
    chosen = random.Random(seed)
    content[chosen.randrange(len(content))] ^= 1 << chosen.randrange(8)
    path.write_bytes(content)
    try:
        with Journal.open(path) as journal:
            assert journal.applied("m1") == expected or journal.verify()
    except JournalError:
        pass


def test_a_changed_or_missing_manifest_is_found(path: Path) -> None:
    changed(path, "UPDATE manifest SET body = x'789c030000000001' WHERE rowid = 1")
    with Journal.open(path) as journal:
        with pytest.raises(JournalCorrupt, match="was changed"):
            journal.applied("m1")
        assert "was changed" in journal.verify()[0]
    changed(path, "DELETE FROM manifest WHERE rowid = 1")
    with Journal.open(path) as journal:
        with pytest.raises(JournalCorrupt, match="is missing"):
            journal.applied("m1")
        assert "is missing" in journal.verify()[0]


def test_a_value_of_another_type_is_found(path: Path) -> None:
    changed(path, "UPDATE applied SET uid = x'00ff' WHERE name = 'name-00007'")
    with Journal.open(path) as journal, pytest.raises(JournalCorrupt):
        journal.applied("m1")


def test_a_broken_row_is_reported_without_its_values(path: Path) -> None:
    with Journal.open(path) as journal:
        key = journal.hash_key.hex()
    changed(path, "UPDATE meta SET checksum = 1 WHERE key = 'hash_key'")
    with Journal.open(path) as journal:
        with pytest.raises(JournalCorrupt) as caught:
            assert journal.hash_key
        assert "meta hash_key" in str(caught.value)
        assert key not in str(caught.value)


def test_a_newer_schema_may_be_read_and_not_written(path: Path) -> None:
    changed(path, "ALTER TABLE applied ADD COLUMN later TEXT")
    changed(path, "UPDATE applied SET checksum = 1")  # it would cover the new column
    changed(path, f"PRAGMA user_version = {len(migrations()) + 1}")
    before = path.read_bytes()
    with pytest.raises(JournalTooNew, match="upgrade"):
        Journal.open(path)
    assert path.read_bytes() == before
    with Journal.open(path, read_only=True) as reader:
        assert reader.is_too_new
        assert len(reader.applied("m1")) == 300


def test_what_a_newer_schema_dropped_asks_for_an_upgrade(path: Path) -> None:
    changed(path, "DROP TABLE timer")
    changed(path, f"PRAGMA user_version = {len(migrations()) + 1}")
    with Journal.open(path, read_only=True) as reader, pytest.raises(JournalTooNew, match="upgrade"):
        reader.timers()


def test_an_older_file_is_brought_forward_with_its_rows(path: Path) -> None:
    file = JournalFile(path, read_only=False, tables=TABLES)
    file.put(TIMER, [("a", "t")])
    step = "CREATE TABLE extra (x TEXT);\nUPDATE timer SET time = 'later';\n"
    file.migrate((*migrations(), step))
    assert file.pragma("user_version") == len(migrations()) + 1
    assert file.rows(TIMER) == [("a", "later")]
    assert len(file.rows(APPLIED)) == 300
    file.close()


def test_a_migration_that_fails_changes_nothing(path: Path) -> None:
    file = JournalFile(path, read_only=False, tables=TABLES)
    with pytest.raises(JournalError):
        file.migrate((*migrations(), "CREATE TABLE extra (x TEXT);\nCREATE TABLE extra (x TEXT);\n"))
    assert file.pragma("user_version") == len(migrations())
    assert file.execute("SELECT name FROM sqlite_master WHERE name = 'extra'") == []
    file.close()


def test_a_file_is_marked_as_ours(path: Path) -> None:
    assert int.from_bytes(path.read_bytes()[68:72], "big") == APPLICATION_ID


def test_a_journal_in_a_folder_that_cannot_be_written_to_is_read(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Root may write everywhere but in a file system that is read-only, and tests may run as root.
    monkeypatch.setattr(os, "access", lambda *_: False)
    folder = sorted(path.parent.iterdir())
    with Journal.open(path, read_only=True) as journal:
        assert len(journal.ledger()["m1"]) == 300
        assert sorted(path.parent.iterdir()) == folder, "no file was made beside it"
    with Journal.open(path) as writer:
        writer.record_applied(rows(301))
        with Journal.open(path, read_only=True) as beside:
            assert len(beside.ledger()["m1"]) == 301, "what its writer has not yet moved into the file is read"


def test_an_empty_file_becomes_a_new_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_bytes(b"")
    with pytest.raises(JournalError, match="is empty"):
        Journal.open(path, read_only=True)
    with Journal.open(path) as journal:
        assert journal.complete_rounds() == 0


def test_a_full_disk_loses_nothing_that_was_written(path: Path) -> None:
    with Journal.open(path) as journal:
        file = journal._file
        file.execute(f"PRAGMA max_page_count = {file.pragma('page_count')}")
        with pytest.raises(JournalError, match="free some space"):
            journal.record_timers({f"timer-{number}": "x" * 500 for number in range(500)})
        assert journal.timers() == {}
        assert len(journal.applied("m1")) == 300
        file.execute("PRAGMA max_page_count = 1000000")
        journal.record_timers({"a": "t"})
        assert journal.timers() == {"a": "t"}
        assert journal.verify() == ()


def test_statements_end_where_sql_says() -> None:
    script = "CREATE TABLE a (x TEXT); -- one; two\nINSERT INTO a VALUES (';\n');\n"
    assert len(list(statements(script))) == 2
    with pytest.raises(AssertionError, match="without an end"):
        list(statements("CREATE TABLE a (x TEXT)"))


def _whole_folder(path: Path) -> None:
    path.parent.rename(path.parent.with_name("elsewhere"))


def _by_another(path: Path) -> None:
    path.with_name("other.db").write_bytes(path.read_bytes())
    path.with_name("other.db").replace(path)


def _by_a_loop(path: Path) -> None:
    _whole_folder(path)
    path.parent.symlink_to(path.parent)


_GONE = "removed or replaced while it was in use"


@pytest.mark.parametrize(
    ("gone", "words"),
    [
        pytest.param(Path.unlink, _GONE, id="the file"),
        pytest.param(lambda path: path.with_name("journal.db-wal").unlink(), _GONE, id="the write-ahead log"),
        pytest.param(_whole_folder, _GONE, id="the folder"),
        pytest.param(_by_another, _GONE, id="replaced"),
        pytest.param(_by_a_loop, "Too many levels of symbolic links; fix that", id="not to be reached"),
    ],
)
def test_what_is_begun_in_a_journal_that_is_gone_is_refused(
    tmp_path: Path, gone: Callable[[Path], None], words: str
) -> None:
    """SQLite would go on to write into a file without a name. Source: design#intents."""
    path = tmp_path / "state" / "journal.db"
    web = Identity("apps", "Deployment", "demo", "web")
    intent = Intent(cluster="m1", gvk=GVK("apps", "v1", "Deployment"), identity=web, action=Action.CREATE)
    with Journal.open(path) as journal:
        journal.begin([intent])
        gone(path)
        for _ in range(2):
            with pytest.raises(JournalError, match=words):
                journal.begin([intent])
