"""Parse results between runs, in a SQLite file that may be deleted at any time.

Secrets are never written, nor files that hold one or may quote one. A row counts only if its checksum is right, and if
exactly this program parsed it: the fingerprint is made of the source, since a version number would once be forgotten.
Interpreters of other packages are not part of it: their results are never cached (`templates/facts.py`).
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final, TypeVar

from reconciler import __version__
from reconciler.api.fleet import StoreFile
from reconciler.fleet import ParsedFile, memo_key
from reconciler.store.parse_cache_rows import Unpacker, is_cacheable, packed_file

Value = TypeVar("Value")
_PACKAGE: Final = Path(__file__).parents[1]
PARTS: Final = (
    "api", "documents", "fleet", "hydration", "kinds", "observations", "overrides", "ownership", "policy", "rollouts",
    "secrets", "store", "templates", "yaml", "containment.py", "incremental.py", "decoding.py", "regex.py",
)  # fmt: skip
"""The parts of the package that determine the parse result of a text and its form in the cache."""
_SUFFIXES: Final = (".py", ".json")


@cache
def parse_fingerprint() -> str:
    """Return the hex digest over the source of the parser, computed once in a process: 10 ms.

    Raises OSError: the source cannot be read.
    """
    reader = find_spec("yaml")
    beside = [Path(reader.origin)] if reader is not None and reader.origin is not None else []
    return digest_of_source(_PACKAGE, PARTS, (__version__, sys.version, *(file.read_text() for file in beside)))


def digest_of_source(package: Path, parts: Iterable[str], texts: Iterable[str] = ()) -> str:
    """Hex digits of a digest over the source files of these folders and files, by their paths, and over texts.

    Raises OSError: one of them cannot be read.
    """
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        digest.update(text.encode() + b"\0")
    for part in parts:
        for path in _files(package / part):
            digest.update(f"{path.relative_to(package)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()


def _files(path: Path) -> Iterator[Path]:
    if not path.is_dir():
        yield path
        return
    for folder, below, names in os.walk(path):
        below.sort()
        yield from (Path(folder, name) for name in sorted(names) if name.endswith(_SUFFIXES))


_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS files (key TEXT NOT NULL UNIQUE, checksum INTEGER NOT NULL, body BLOB NOT NULL)"
)
_REVISIONS: Final = 3
"""So many times the files of a store are kept: those of another revision are soon asked for again."""


class ParseCache:
    """Loads and saves `ParsedFile`s by `memo_key`. A cache that cannot be used is empty, never an error."""

    def __init__(self, path: Path) -> None:
        """Use the file at `path`, whose folder exists; it is created, or replaced if its version differs."""
        self._path = path

    def keys(self) -> frozenset[str]:
        """Return the keys of the rows, including broken ones, which `load` skips."""
        return self._query(_keys_in, frozenset())

    def load(self, files: Iterable[StoreFile]) -> dict[str, ParsedFile]:
        """Return the cached results of these files; the others must be parsed."""
        keys, unpacker = {memo_key(file) for file in files}, Unpacker()

        def read(connection: sqlite3.Connection) -> dict[str, ParsedFile]:
            rows = connection.execute("SELECT key, checksum, body FROM files")
            files = (
                (key, unpacker.file(body))
                for key, checksum, body in rows
                if key in keys and isinstance(body, bytes) and _checksum(key, body) == checksum
            )
            return {key: file for key, file in files if file is not None}

        return self._query(read, {})

    def save(self, parsed: Mapping[str, ParsedFile]) -> None:
        """Keep these files, and others as long as they are few. A full disk or a locked file leaves it as it was."""

        def write(connection: sqlite3.Connection) -> None:
            known = _keys_in(connection)
            new = ((key, file) for key, file in parsed.items() if key not in known and is_cacheable(file))
            packed = ((key, packed_file(file)) for key, file in new)
            rows = ((key, _checksum(key, body), body) for key, body in packed if body is not None)
            connection.execute("BEGIN IMMEDIATE")
            is_full = len(known | parsed.keys()) > _REVISIONS * len(parsed)
            gone = [(key,) for key in sorted(known - parsed.keys())] if is_full else []
            connection.executemany("DELETE FROM files WHERE key = ?", gone)
            connection.executemany("INSERT OR REPLACE INTO files VALUES (?, ?, ?)", rows)
            connection.execute("COMMIT")

        self._query(write, None)

    def _query(self, ask: Callable[[sqlite3.Connection], Value], otherwise: Value) -> Value:
        """Return what is found; a file that is no valid database is deleted, so that the next run creates it again."""
        try:
            with self._connection() as connection:
                return ask(connection)
        except (sqlite3.Error, OSError) as error:
            if isinstance(error, sqlite3.DatabaseError) and not isinstance(error, sqlite3.OperationalError):
                for suffix in ("", "-wal", "-shm"):
                    self._path.with_name(self._path.name + suffix).unlink(missing_ok=True)
            return otherwise

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        connection = sqlite3.connect(self._path, isolation_level=None, timeout=5)
        try:
            self._path.chmod(0o600)
            # A row fills a page of the usual size, and would be read in pieces. It counts when the file is made.
            connection.execute("PRAGMA page_size = 16384")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = OFF")
            version = int(parse_fingerprint(), 16) & 0x7FFF_FFFF  # user_version of SQLite has 31 bits
            if connection.execute("PRAGMA user_version").fetchone() != (version,):
                connection.execute("DROP TABLE IF EXISTS files")
                connection.execute(f"PRAGMA user_version = {version}")
            connection.execute(_SCHEMA)
            yield connection
        finally:
            connection.close()


def _keys_in(connection: sqlite3.Connection) -> frozenset[str]:
    return frozenset(key for (key,) in connection.execute("SELECT key FROM files"))


def _checksum(key: str, body: bytes) -> int:
    """Return a checksum against accidents: a person who can write the file can write the checksum as well."""
    return zlib.crc32(body, zlib.crc32(key.encode()))
