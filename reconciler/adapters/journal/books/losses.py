"""State of the guards over commits, rounds and restarts: recent losses, and start times of holds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from reconciler.adapters.journal.file import JournalFile
from reconciler.adapters.journal.rows import GUARD_HOLD, LOSS, META
from reconciler.containment import contained
from reconciler.model.ledger import Loss, Losses
from reconciler.model.plan import NOT_CONFIRMED, Confirmed
from reconciler.model.refs import Identity

CONFIRMED: Final = "confirmed"
"""The key of the confirmed changes that are not made yet."""


class LossBook:
    """The losses of a journal. The writer reads them again only when it has written them."""

    _file: JournalFile
    _losses: Losses | None = None

    def losses(self) -> Losses:
        """All that is recorded. A journal of an older schema has none."""
        if self._losses is None or self._file.read_only:
            self._losses = self._read()
        return self._losses

    def _read(self) -> Losses:
        if not self._file.has_table(LOSS):
            return Losses()
        order = "ORDER BY cluster, api_group, kind, namespace, name"
        made = (Loss(cluster=row[0], identity=Identity(*row[1:5]), time=row[5]) for row in self._file.rows(LOSS, order))
        held_since: dict[str, str] = dict(self._file.rows(GUARD_HOLD, "ORDER BY cluster"))
        return Losses(made=tuple(made), held_since=held_since, confirmed=self._confirmed())

    def _confirmed(self) -> Confirmed:
        rows = self._file.rows(META, "WHERE key = ?", (CONFIRMED,))
        found = contained(msgspec.json.decode, rows[0][1], type=Confirmed).value if rows else None
        return found or NOT_CONFIRMED

    def record_losses(self, losses: Iterable[Loss]) -> None:
        """Record losses before they are made; a later loss of the same copy replaces the earlier one."""
        rows = [(loss.cluster, *loss.identity, loss.time) for loss in losses]
        if rows:
            self._losses = None
            self._file.put(LOSS, rows)

    def forget_losses(self) -> None:
        """Forget all losses: a person has confirmed them."""
        if self.losses().made:
            self._losses = None
            with self._file.transaction():
                self._file.execute("DELETE FROM loss")

    def keep_losses(self, kept: Losses) -> None:
        """Keep only these losses, of those recorded, and these times; equal ones are not written."""
        known = self.losses()
        gone = set(known.made) - set(kept.made)
        if not gone and (known.held_since, known.confirmed) == (kept.held_since, kept.confirmed):
            return
        self._losses = None
        with self._file.transaction():
            where = "cluster = ? AND api_group = ? AND kind = ? AND namespace = ? AND name = ?"
            self._file.execute_many(f"DELETE FROM loss WHERE {where}", _keys(gone))  # noqa: S608 - constants
            self._put_holds(known.held_since, kept.held_since)
            if known.confirmed != kept.confirmed:
                self._file.put(META, [(CONFIRMED, msgspec.json.encode(kept.confirmed).decode())])

    def _put_holds(self, known: Mapping[str, str], kept: Mapping[str, str]) -> None:
        ended = [(cluster,) for cluster in sorted(known.keys() - kept.keys())]
        self._file.execute_many("DELETE FROM guard_hold WHERE cluster = ?", ended)
        self._file.put(GUARD_HOLD, [row for row in sorted(kept.items()) if known.get(row[0]) != row[1]])


def _keys(losses: Iterable[Loss]) -> list[tuple[str, ...]]:
    return sorted((loss.cluster, *loss.identity) for loss in losses)
