"""The SQLite file of the journal: opening, schema, transactions, rows with checksums, errors of the system.

Write-ahead log with one writer; readers open connections of their own and see the last commit. `synchronous` is FULL
for data that must survive a power cut before the next step (intents), else NORMAL, where a power cut may lose the last
commits, in order, and never a part of one.
"""

from __future__ import annotations

import os
import sqlite3
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import quote

import msgspec
import orjson
from msgspec import Struct

from reconciler.containment import try_call
from reconciler.errors import JournalCorrupt, JournalError, JournalFull, JournalTooNew
from reconciler.fail_points import reach
from reconciler.journal.journal_lock import whose

APPLICATION_ID = 0x464C5431
"""Marks a SQLite file as a journal of ours."""

BUSY_TIMEOUT_S = 5.0
WAL_BYTES_MAX = 64 * 1024 * 1024

Row = tuple[Any, ...]
_Value = TypeVar("_Value")

_BROKEN = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_IOERR_SHORT_READ", "SQLITE_IOERR_CORRUPTFS")
_NO_ROOM = ("SQLITE_FULL", "SQLITE_IOERR_WRITE", "SQLITE_IOERR_SHMSIZE")
ROOM_BYTES: Final = 1024 * 1024
"""A disk with less room is as good as full."""
LOW_BYTES: Final = 256 * 1024 * 1024
"""With less room `status` warns: the log beside the journal alone may grow to `WAL_BYTES_MAX`."""
REBUILD = "`reconciler journal rebuild` keeps the file aside and builds a new one from the members' marks"


class SqlTable(Struct, frozen=True):
    """A table whose rows end with a checksum over `columns`; the first `keys` columns are the key."""

    name: str
    keys: int
    columns: tuple[str, ...]

    def checksum(self, row: Row) -> int:
        """Return the CRC-32 of a row, seeded with the table's name so that a row is invalid in another table."""
        return zlib.crc32(orjson.dumps(row), zlib.crc32(self.name.encode()))

    def is_intact(self, sealed: Row) -> bool:
        """Return whether a row matches its checksum, the last column."""
        try:
            return bool(self.checksum(sealed[:-1]) == sealed[-1])
        except TypeError:  # a flipped bit made a text a blob
            return False


META = SqlTable("meta", 1, ("key", "value"))
"""Single values by name."""


def migrations() -> tuple[str, ...]:
    """The SQL of every schema version, in order; version n is the nth."""
    files = sorted(Path(__file__).with_name("schema").glob("*.sql"))
    assert [int(path.name[:4]) for path in files] == list(range(1, len(files) + 1)), f"a gap in versions: {files}"
    return tuple(path.read_text(encoding="utf-8") for path in files)


def _file_at(path: Path) -> tuple[int, int] | None:
    """Return the identity of a file: device and inode; None: there is none."""
    try:
        stat = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return stat.st_dev, stat.st_ino


class JournalFile:
    """A connection. Everything is called from the thread that opened it."""

    def __init__(
        self,
        path: Path,
        *,
        read_only: bool,
        tables: tuple[SqlTable, ...],
        is_second: bool = False,
        busy_s: float = BUSY_TIMEOUT_S,
    ) -> None:
        """Open the file; a writer creates it, brings its schema up to date and checks its pages.

        `is_second`: another process may be its writer; the file must be there, and its schema is left as it is.
        `busy_s`: so long it is waited for others who write.

        Raises:
            JournalCorrupt: it is no SQLite file, or a page is broken.
            JournalTooNew: a newer version wrote it and `read_only` is False.
            JournalError: it cannot be opened, or is something else.
        """
        self.path = path
        self.read_only = read_only
        self.is_second = is_second
        self._busy_s = busy_s
        self.is_too_new = False
        self._tables = tables
        self._depth = 0
        self._is_durable = False
        self._is_closed = False
        self._connection = self._connect()
        self._is_of = _file_at(path)
        try:
            with self.reported():
                self._prepare()
        except JournalError:
            self._connection.close()
            raise

    def _connect(self) -> sqlite3.Connection:
        with self.reported():
            if not self.read_only and not self.is_second:
                try:
                    self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
                    # SQLite gives -wal and -shm the mode of the file; nobody else needs to read it.
                    os.close(os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
                except OSError as exc:
                    remedy = whose(self.path) or "; name another file with --journal"
                    raise JournalError(f"{self.path}: {exc.strerror}{remedy}") from exc
            elif not self.path.exists():
                raise JournalError(
                    f"{self.path}: there is no journal; `reconciler apply` and `run` make one, --journal names another"
                )
            uri = f"file:{quote(str(self.path))}?mode={'ro' if self.read_only else 'rw'}"
            log = self.path.with_name(f"{self.path.name}-wal")
            if self.read_only and not os.access(self.path.parent, os.W_OK) and not log.exists():
                # In a read-only folder, as in a backup, it has no writer: SQLite needs no file beside it.
                uri += "&immutable=1"
            return sqlite3.connect(uri, uri=True, isolation_level=None, timeout=self._busy_s)

    def _prepare(self) -> None:
        version, application = self.pragma("user_version"), self.pragma("application_id")
        is_new = version == 0 and not self._connection.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone()
        if not is_new and application != APPLICATION_ID:
            raise JournalError(f"{self.path}: is a database of something else; name another file with --journal")
        scripts = migrations()
        self.is_too_new = version > len(scripts)
        if is_new and (self.read_only or self.is_second):
            lost = "if the fleet ran before, `reconciler journal rebuild` makes it from the clusters"
            raise JournalError(f"{self.path}: the journal is empty; `reconciler apply` and `run` fill it; {lost}")
        if self.read_only:
            return
        if self.is_too_new:
            raise JournalTooNew(
                f"{self.path}: has schema {version} and this version knows {len(scripts)}; "
                "upgrade, or use commands that only read"
            )
        if self.is_second:
            return
        self._connection.execute("PRAGMA journal_mode = WAL")
        self._connection.execute(f"PRAGMA journal_size_limit = {WAL_BYTES_MAX}")
        self._connection.execute("PRAGMA synchronous = NORMAL")
        if version:
            faults = [str(row[0]) for row in self._connection.execute("PRAGMA quick_check(3)")]
            if faults != ["ok"]:
                raise JournalCorrupt(f"{self.path}: {'; '.join(faults)}; {REBUILD}")
        self.migrate(scripts)

    def pragma(self, name: str) -> int:
        """The value of an integer pragma."""
        return int(self._connection.execute(f"PRAGMA {name}").fetchone()[0])

    def migrate(self, scripts: tuple[str, ...]) -> None:
        """Bring the schema forward to the last script, all in one transaction."""
        version = self.pragma("user_version")
        if version == len(scripts):
            return
        with self.transaction(durable=True):
            for statement in (part for script in scripts[version:] for part in statements(script)):
                self._connection.execute(statement)
            if version:
                # A new column changes the content of a checksum.
                for table in self._tables:
                    sql = f"SELECT {', '.join(table.columns)} FROM {table.name}"  # noqa: S608 - constants
                    self.put(table, self._connection.execute(sql).fetchall())
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {len(scripts)}")

    @contextmanager
    def reported(self) -> Iterator[None]:
        """Errors of SQLite as errors of the journal."""
        try:
            yield
        except PermissionError as exc:
            raise JournalError(f"{self.path}: {exc.strerror}{whose(self.path)}") from exc
        except sqlite3.Error as exc:
            name = getattr(exc, "sqlite_errorname", "")
            if name.startswith(_BROKEN) or "Could not decode to UTF-8" in str(exc):
                raise JournalCorrupt(f"{self.path}: {exc}; {REBUILD}") from exc
            if self.is_too_new:
                raise JournalTooNew(f"{self.path}: was written by a newer version ({exc}); upgrade to read it") from exc
            if name.startswith(_NO_ROOM):
                raise JournalFull(f"{self.path}: {exc}; free some space, nothing was written") from exc
            raise JournalError(f"{self.path}: {exc}{whose(self.path)}") from exc

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        """Everything inside is committed together, or not at all; inside another one it joins that.

        `durable`: the commit is on the disk before this returns. A reader gets one consistent view.
        """
        if self._depth:
            assert not durable or self._is_durable, "a durable step inside a transaction that is not"
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        with self.reported():
            if self.read_only:
                self._connection.execute("BEGIN")
            else:
                if durable is not self._is_durable:
                    self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
                    self._is_durable = durable
                self._connection.execute("BEGIN IMMEDIATE")
            self._depth = 1
            try:
                yield
                if not self.read_only:
                    reach("before a commit of the journal")
                self._connection.execute("COMMIT")
                if durable:
                    self._refuse_where_it_is_gone()
                if not self.read_only:
                    reach("after a commit of the journal")
            except BaseException:
                # SQLite has already rolled back after a full disk.
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
            finally:
                self._depth = 0

    def _refuse_where_it_is_gone(self) -> None:
        """Refuse a removed or replaced file: SQLite would go on to write where nobody will ever read.

        Checked after each durable commit, since the next step depends on it.
        """
        try:
            is_there = _file_at(self.path) == self._is_of and self.path.with_name(f"{self.path.name}-wal").exists()
        except OSError as error:
            raise JournalError(f"{self.path}: {error.strerror}; fix that, and start again") from error
        if not is_there:
            raise JournalError(
                f"{self.path}: the journal was removed or replaced while it was in use; nothing more is done that it "
                "could not remember. Put it back, or let `reconciler journal rebuild` make a new one from the members' "
                "marks, and start again"
            )

    def put(self, table: SqlTable, rows: Iterable[Row]) -> None:
        """Insert rows, or replace those with the same key."""
        marks = ", ".join("?" for _ in range(len(table.columns) + 1))
        sql = f"INSERT OR REPLACE INTO {table.name} ({', '.join(table.columns)}, checksum) VALUES ({marks})"  # noqa: S608 - constants
        with self.reported():
            self._connection.executemany(sql, ((*row, table.checksum(row)) for row in rows))

    def remove(self, table: SqlTable, keys: Iterable[Row]) -> None:
        """Delete the rows with these keys."""
        where = " AND ".join(f"{column} = ?" for column in table.columns[: table.keys])
        self.execute_many(f"DELETE FROM {table.name} WHERE {where}", keys)  # noqa: S608 - constants

    def replace(self, table: SqlTable, known: Iterable[Row], wanted: Iterable[Row]) -> None:
        """Replace the known rows by the wanted ones, in one commit; equal ones are not written again."""
        before, after = ({row[: table.keys]: row for row in rows} for rows in (known, wanted))
        with self.transaction():
            self.remove(table, sorted(before.keys() - after.keys()))
            self.put(table, [row for key, row in after.items() if before.get(key) != row])

    def value(self, name: str) -> str:
        """The single value of that name; empty: there is none."""
        rows = self.rows(META, "WHERE key = ?", (name,))
        return str(rows[0][1]) if rows else ""

    def put_value(self, name: str, value: str) -> None:
        """Replace a single value; an equal one is not written again."""
        if (name, value) not in self.rows(META, "WHERE key = ?", (name,)):
            with self.transaction():
                self.put(META, [(name, value)])

    def decoded(self, name: str, shape: type[_Value]) -> _Value | None:
        """The single value of that name, as it was written as JSON; None: there is none of this shape."""
        return try_call(msgspec.json.decode, self.value(name), type=shape).value

    def put_json(self, name: str, value: object) -> None:
        """Replace a single value by another one as JSON; an equal one is not written again."""
        self.put_value(name, msgspec.json.encode(value).decode())

    def rows(self, table: SqlTable, where: str = "", values: Row = ()) -> list[Row]:
        """Rows without their checksums; none of a table that the older schema of a reader's file lacks.

        `where` may hold ORDER BY and LIMIT as well.
        Raises JournalCorrupt: a row does not have the checksum that it was written with.
        """
        return list(self.each_row(table, where, values))

    def each_row(self, table: SqlTable, where: str = "", values: Row = ()) -> Iterator[Row]:
        """Yield what `rows` returns, one by one: nothing is written meanwhile."""
        if (
            self.read_only
            and not self.is_too_new
            and not self.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (table.name,))
        ):
            return
        sql = f"SELECT {', '.join(table.columns)}, checksum FROM {table.name} {where}"  # noqa: S608 - constants
        with self.reported():
            for sealed in self._connection.execute(sql, values):
                row = sealed[:-1]
                if not self.is_too_new and not table.is_intact(sealed):
                    subject = " ".join(map(str, row[: table.keys]))
                    raise JournalCorrupt(f"{self.path}: {table.name} {subject}: the row was changed; {REBUILD}")
                yield row

    def last(self, table: SqlTable) -> int:
        """Return the greatest number in the first column; 0: there is no row."""
        return int(self.execute(f"SELECT max({table.columns[0]}) FROM {table.name}")[0][0] or 0)  # noqa: S608 - constants

    def execute(self, sql: str, values: Row = ()) -> list[Row]:
        """The rows that a statement gives."""
        with self.reported():
            return self._connection.execute(sql, values).fetchall()

    def execute_many(self, sql: str, rows: Iterable[Row]) -> None:
        """Run a statement once a row."""
        with self.reported():
            self._connection.executemany(sql, rows)

    def vacuum(self) -> None:
        """Write the file again without the pages that are free."""
        with self.reported():
            self._connection.execute("VACUUM")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def close(self) -> None:
        """Fold the write-ahead log into the file and close it; a second call does nothing."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            with self.reported():
                if not self.read_only and not self.is_second:
                    self._connection.execute("PRAGMA busy_timeout = 100")  # a reader must not hold up the shutdown
                    self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        finally:
            self._connection.close()


def lack_of_room(journal: Path, least_bytes: int = ROOM_BYTES) -> str:
    """Return how little room the disk of a journal has left; empty: enough, or nobody knows."""
    disk = try_call(os.statvfs, journal.parent).value
    free = disk.f_bavail * disk.f_frsize if disk is not None else least_bytes
    return f"{journal.parent}: only {free // 1024} KiB of its disk are free" if free < least_bytes else ""


def statements(script: str) -> Iterator[str]:
    """The statements of an SQL script, so that they can run inside one transaction."""
    pending = ""
    for line in script.splitlines(keepends=True):
        pending += line
        if sqlite3.complete_statement(pending):
            yield pending
            pending = ""
    assert not pending.strip(), f"a statement without an end: {pending!r}"
