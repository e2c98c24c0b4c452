"""Suspensions: the one thing that others may write while a daemon holds the journal."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType

from reconciler.adapters.journal_file import JournalFile
from reconciler.adapters.journal_rows import SUSPENSION, TABLES, suspension_value
from reconciler.model.ledger import SuspensionRecord


def put(file: JournalFile, suspension: SuspensionRecord) -> None:
    """Write one; it replaces another of the same scope. On the disk before this returns."""
    with file.transaction(durable=True):
        file.put(SUSPENSION, [(suspension.scope, suspension.reason, suspension.who, suspension.until)])


def remove(file: JournalFile, scope: str) -> bool:
    """End one; False when there was none."""
    with file.transaction(durable=True):
        file.execute("DELETE FROM suspension WHERE scope = ?", (scope,))
        return bool(file.execute("SELECT changes()")[0][0])


def read(file: JournalFile) -> tuple[SuspensionRecord, ...]:
    """All of them, sorted by scope; expired ones too."""
    return tuple(map(suspension_value, file.rows(SUSPENSION, "ORDER BY scope")))


class SuspensionBook:
    """The suspensions of a journal, open beside its writer: no lock of ours is taken, SQLite's own are enough."""

    def __init__(self, path: Path) -> None:
        """Open the journal at the path, which must be there already.

        Raises:
            JournalTooNew, JournalCorrupt, JournalError: as `Journal.open`.
        """
        self._file = JournalFile(path, read_only=False, tables=TABLES, is_beside=True)

    def suspend(self, suspension: SuspensionRecord) -> None:
        """Record a person's order to stop writing; it replaces one of the same scope."""
        put(self._file, suspension)

    def resume(self, scope: str) -> bool:
        """End a suspension; False when there was none."""
        return remove(self._file, scope)

    def suspensions(self) -> tuple[SuspensionRecord, ...]:
        """All suspensions, sorted by scope; expired ones too."""
        return read(self._file)

    def __enter__(self) -> SuspensionBook:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
