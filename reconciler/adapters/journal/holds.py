"""What this journal wrote into the marks that say who holds the fleet: the epochs by which it knows its own."""

from __future__ import annotations

from reconciler.adapters.journal.file import JournalFile
from reconciler.adapters.journal.rows import HOLD
from reconciler.model.ledger import HoldRecord


class HoldBook:
    """The part of a journal that is about holding the fleet."""

    _file: JournalFile

    def holds(self, cluster: str) -> tuple[HoldRecord, ...]:
        """The mark that was written last, and those that a crash left in doubt. None: a journal of an older schema."""
        if not self._file.has_table(HOLD):
            return ()
        rows = self._file.rows(HOLD, "WHERE cluster = ? ORDER BY epoch", (cluster,))
        return tuple(HoldRecord(token=row[1], epoch=row[2], is_confirmed=bool(row[3])) for row in rows)

    def intend_hold(self, cluster: str, epoch: int, token: str) -> None:
        """Note a mark that is about to be written; on the disk before this returns."""
        with self._file.transaction(durable=True):
            self._file.put(HOLD, [(cluster, token, epoch, 0)])

    def confirm_hold(self, cluster: str, epoch: int, token: str) -> None:
        """The mark is written: no earlier one is ours any more. On the disk before this returns."""
        with self._file.transaction(durable=True):
            self._file.execute("DELETE FROM hold WHERE cluster = ?", (cluster,))
            self._file.put(HOLD, [(cluster, token, epoch, 1)])
