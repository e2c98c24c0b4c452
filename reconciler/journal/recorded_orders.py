"""A person's orders: the one thing that others may write while a daemon holds the journal."""

from __future__ import annotations

import uuid
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from reconciler.api.ledger import Event, EventKind, EvictionRecord, SuspensionRecord
from reconciler.api.refs import Identity
from reconciler.clock import Clock, SystemClock
from reconciler.journal.events import record
from reconciler.journal.rows import EVICTION, SUSPENSION, TABLES, columns_of, value_of
from reconciler.journal.sqlite_file import META, JournalFile

_ASKED: Final = "asked"
LED_BY: Final = "led_by"


class OrdersTable:
    """Suspensions and evictions of a journal. Who gave an order, and who took it back, is an event of history."""

    _file: JournalFile
    _clock: Clock = SystemClock()

    def ask(self, who: str) -> None:
        """Record a person's request to evaluate everything now. Durable before this returns."""
        with self._file.transaction(durable=True):
            self._file.put(META, [(_ASKED, f"{who} {uuid.uuid4()}")])
            self._note(EventKind.ASKED, "fleet", who)

    @property
    def last_order(self) -> str:
        """Return the person of the last order, with a unique mark; empty: there is none."""
        return self._file.value(_ASKED)

    @property
    def led_by(self) -> str:
        """Return the leader of the fleet while the process of this journal stands by; empty: none."""
        return self._file.value(LED_BY)

    def suspend(self, suspension: SuspensionRecord) -> None:
        """Record an order to stop writing; it replaces one of the same scope. On the disk before this returns."""
        with self._file.transaction(durable=True):
            self._file.put(SUSPENSION, [columns_of(SUSPENSION, suspension)])
            self._note(EventKind.SUSPENDED, suspension.scope, suspension.who, suspension.reason, suspension.until)

    def resume(self, scope: str, who: str = "", reason: str = "") -> bool:
        """End a suspension; False when there was none."""
        with self._file.transaction(durable=True):
            is_gone = self._remove("DELETE FROM suspension WHERE scope = ?", (scope,))
            if is_gone:
                self._note(EventKind.RESUMED, scope, who, reason)
        return is_gone

    def suspensions(self) -> tuple[SuspensionRecord, ...]:
        """All suspensions, sorted by scope; expired ones too."""
        rows = self._file.rows(SUSPENSION, "ORDER BY scope")
        return tuple(value_of(SUSPENSION, row, SuspensionRecord) for row in rows)

    def evict(self, eviction: EvictionRecord) -> None:
        """Record an order that a resource leaves a cluster; it replaces an earlier one."""
        with self._file.transaction(durable=True):
            self._file.put(EVICTION, [columns_of(EVICTION, eviction)])
            subject = f"{eviction.identity} @ {eviction.cluster}"
            self._note(EventKind.EVICTED, subject, eviction.who, eviction.reason, eviction.until)

    def readmit(self, identity: Identity, cluster: str, who: str = "", reason: str = "") -> bool:
        """End an eviction; False when there was none."""
        where = "api_group = ? AND kind = ? AND namespace = ? AND name = ? AND cluster = ?"
        with self._file.transaction(durable=True):
            is_gone = self._remove(f"DELETE FROM eviction WHERE {where}", (*identity, cluster))  # noqa: S608 - constants
            if is_gone:
                self._note(EventKind.READMITTED, f"{identity} @ {cluster}", who, reason)
        return is_gone

    def evictions(self) -> tuple[EvictionRecord, ...]:
        """All evictions, sorted by resource and cluster; expired ones too. A journal of an older schema has none."""
        rows = self._file.rows(EVICTION, "ORDER BY kind, namespace, name, cluster")
        return tuple(value_of(EVICTION, row, EvictionRecord) for row in rows)

    def _remove(self, sql: str, values: tuple[str, ...]) -> bool:
        self._file.execute(sql, values)
        return bool(self._file.execute("SELECT changes()")[0][0])

    def _note(self, kind: EventKind, subject: str, who: str, why: str = "", until: str = "") -> None:
        data = {key: value for key, value in {"who": who, "why": why, "until": until}.items() if value}
        record(self._file, [Event(round=0, time=self._clock.now(), kind=kind, subject=subject, data=data)])


class SharedOrdersTable(OrdersTable):
    """The orders of a journal, open beside its writer: no lock of ours is taken, SQLite's own are enough."""

    def __init__(self, path: Path) -> None:
        """Open the journal at the path, which must be there already.

        Raises JournalTooNew, JournalCorrupt, JournalError: as `Journal.open`.
        """
        self._file = JournalFile(path, read_only=False, tables=TABLES, is_beside=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        self._file.close()
