"""State that another process needs to take over a fleet, beside the marks in the clusters.

Small tables alone: timers, constraints of ticks, orders of persons, losses that guards count, and records of rollouts.
Source: ADR 20.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from reconciler.api.ledger import Losses
from reconciler.containment import contained
from reconciler.journal.locks import CONFIRMED
from reconciler.journal.mirror import Mirror
from reconciler.journal.recorded_orders import LED_BY
from reconciler.journal.rows import (
    BINDING,
    CLUSTER,
    CONSTRAINT,
    EVICTION,
    GUARD_HOLD,
    LOSS,
    META,
    ROLLOUT,
    SUSPENSION,
    TIMER,
    binding_value,
    constraint_value,
    eviction_value,
    rollout_value,
    suspension_value,
)
from reconciler.journal.sqlite_file import JournalFile, Row, SqlTable

_LEFT: Final = "left"
_TABLES: Final = (CLUSTER, CONSTRAINT, EVICTION, GUARD_HOLD, LOSS, ROLLOUT, SUSPENSION, TIMER)
_BY_IDENTITY: Final = "ORDER BY api_group, kind, namespace, name"
_READ: Final[Mapping[str, Callable[[Row], object]]] = {
    BINDING.name: binding_value,
    CONSTRAINT.name: constraint_value,
    EVICTION.name: eviction_value,
    ROLLOUT.name: rollout_value,
    SUSPENSION.name: suspension_value,
}


class HandoverBook:
    """The part of a journal that goes from one leader to the next."""

    _file: JournalFile
    _mirror: Mirror
    _losses: Losses | None = None

    def record_led_by(self, leader: str) -> None:
        """Record the leader while this process stands by; empty: none. An equal one is not written again."""
        row = (LED_BY, leader)
        if row not in self._file.rows(META, "WHERE key = ?", (LED_BY,)):
            with self._file.transaction():
                self._file.put(META, [row])

    @property
    def left(self) -> int:
        """Return how often this journal wrote a changed handover for the next leader."""
        rows = self._file.rows(META, "WHERE key = ?", (_LEFT,))
        return int(rows[0][1]) if rows and str(rows[0][1]).isdigit() else 0

    def count_left(self) -> int:
        """Count once more, before something else is left: a copy of the journal from before has counted less."""
        with self._file.transaction():
            number = self.left + 1
            self._file.put(META, [(_LEFT, str(number))])
        return number

    def handover(self) -> dict[str, list[Row]]:
        """Return the present handover for the next leader."""
        with self._file.transaction():
            found = {table.name: sorted(self._file.rows(table), key=str) for table in _TABLES}
            found[CONFIRMED] = self._file.rows(META, "WHERE key = ?", (CONFIRMED,))
            # Placements are in the marks of placed objects, but for the cluster group in use.
            return found | {BINDING.name: self._file.rows(BINDING, "WHERE affinity_name <> '' " + _BY_IDENTITY)}

    def take_handover(self, told: Mapping[str, Any]) -> None:
        """Replace the handover state by a leader's. Malformed rows are left out."""
        with self._file.transaction(durable=True):
            for table in (*_TABLES, BINDING):
                self._file.execute(f"DELETE FROM {table.name}")  # noqa: S608 - constants
                self._file.put(table, _rows(table, told.get(table.name)))
            self._file.execute("DELETE FROM meta WHERE key = ?", (CONFIRMED,))
            self._file.put(META, [row for row in _rows(META, told.get(CONFIRMED)) if row[0] == CONFIRMED])
        self._mirror.forget()
        self._losses = None


def _rows(table: SqlTable, told: Any) -> list[Row]:
    """The rows that have the form of this version; those of another one are left out."""
    rows = [tuple(row) for row in told if isinstance(row, list)] if isinstance(told, list) else []
    return [row for row in rows if len(row) == len(table.columns) and _is_read(table, row)]


def _is_read(table: SqlTable, row: Row) -> bool:
    if not all(isinstance(value, (str, int)) for value in row):
        return False
    read = _READ.get(table.name)
    return read is None or contained(read, row).fault is None
