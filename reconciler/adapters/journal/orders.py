"""A person's orders: the one thing that others may write while a daemon holds the journal."""

from __future__ import annotations

import uuid
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from reconciler.adapters.journal.file import JournalFile
from reconciler.adapters.journal.rows import (
    EVICTION,
    META,
    SUSPENSION,
    TABLES,
    eviction_columns,
    eviction_value,
    suspension_value,
)
from reconciler.model.ledger import EvictionRecord, SuspensionRecord
from reconciler.model.refs import Identity

_ASKED: Final = "asked"


class Orders:
    """Suspensions and evictions of a journal."""

    _file: JournalFile

    def ask(self, who: str) -> None:
        """Record that somebody wants the service to look at everything now. On the disk before this returns."""
        with self._file.transaction(durable=True):
            self._file.put(META, [(_ASKED, f"{who} {uuid.uuid4()}")])

    @property
    def asked(self) -> str:
        """Who asked last, with a mark of its own for each time; empty: nobody did."""
        rows = self._file.rows(META, "WHERE key = ?", (_ASKED,))
        return str(rows[0][1]) if rows else ""

    def suspend(self, suspension: SuspensionRecord) -> None:
        """Record an order to stop writing; it replaces one of the same scope. On the disk before this returns."""
        with self._file.transaction(durable=True):
            row = (suspension.scope, suspension.reason, suspension.who, suspension.until)
            self._file.put(SUSPENSION, [row])

    def resume(self, scope: str) -> bool:
        """End a suspension; False when there was none."""
        return self._remove("DELETE FROM suspension WHERE scope = ?", (scope,))

    def suspensions(self) -> tuple[SuspensionRecord, ...]:
        """All suspensions, sorted by scope; expired ones too."""
        return tuple(map(suspension_value, self._file.rows(SUSPENSION, "ORDER BY scope")))

    def evict(self, eviction: EvictionRecord) -> None:
        """Record an order that a resource leaves a cluster; it replaces an earlier one."""
        with self._file.transaction(durable=True):
            self._file.put(EVICTION, [eviction_columns(eviction)])

    def readmit(self, identity: Identity, cluster: str) -> bool:
        """End an eviction; False when there was none."""
        where = "api_group = ? AND kind = ? AND namespace = ? AND name = ? AND cluster = ?"
        return self._remove(f"DELETE FROM eviction WHERE {where}", (*identity, cluster))  # noqa: S608 - constants

    def evictions(self) -> tuple[EvictionRecord, ...]:
        """All evictions, sorted by resource and cluster; expired ones too. A journal of an older schema has none."""
        if not self._file.has_table(EVICTION):
            return ()
        return tuple(map(eviction_value, self._file.rows(EVICTION, "ORDER BY kind, namespace, name, cluster")))

    def _remove(self, sql: str, values: tuple[str, ...]) -> bool:
        with self._file.transaction(durable=True):
            self._file.execute(sql, values)
            return bool(self._file.execute("SELECT changes()")[0][0])


class OrderBook(Orders):
    """The orders of a journal, open beside its writer: no lock of ours is taken, SQLite's own are enough."""

    def __init__(self, path: Path) -> None:
        """Open the journal at the path, which must be there already.

        Raises:
            JournalTooNew, JournalCorrupt, JournalError: as `Journal.open`.
        """
        self._file = JournalFile(path, read_only=False, tables=TABLES, is_beside=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
