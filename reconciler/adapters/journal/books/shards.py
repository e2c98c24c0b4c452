"""What a journal knows of shards: whose it is, what the leader ordered, and clusters that went to another shard."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import orjson

from reconciler.adapters.journal.books.orders import SHARD, TOLD
from reconciler.adapters.journal.file import JournalFile
from reconciler.adapters.journal.mirror import Mirror
from reconciler.adapters.journal.rows import META, SUSPENSION, json_text
from reconciler.model.ledger import Losses
from reconciler.model.tree import Json, JsonObject

_OF_CLUSTER: Final = ("applied", "established", "intent", "hold", "rollout", "loss", "guard_hold")


class ShardBook:
    """The part of a journal that is about shards."""

    _file: JournalFile
    _mirror: Mirror
    _losses: Losses | None = None

    def record_shard(self, name: str) -> None:
        """Record of which shard the journal is from now on. The same is not written again."""
        row = (SHARD, name)
        if row not in self._file.rows(META, "WHERE key = ?", (SHARD,)):
            with self._file.transaction(durable=True):
                self._file.put(META, [row])

    def record_told(self, document: JsonObject | None) -> None:
        """Replace what other processes tell (`report.told_document`); None: nothing. The same is not written again."""
        rows = [(TOLD, json_text(document))] if document is not None else []
        if rows != self._file.rows(META, "WHERE key = ?", (TOLD,)):
            with self._file.transaction():
                self._file.execute("DELETE FROM meta WHERE key = ?", (TOLD,))
                self._file.put(META, rows)

    @property
    def told(self) -> dict[str, Json] | None:
        """What other processes tell, as it was recorded last; None: nothing."""
        rows = self._file.rows(META, "WHERE key = ?", (TOLD,))
        found: dict[str, Json] | None = orjson.loads(str(rows[0][1])) if rows else None
        return found

    def suspension_rows(self) -> tuple[tuple[str, ...], ...]:
        """The orders to stop writing, to be told to another process."""
        return tuple(tuple(map(str, row)) for row in self._file.rows(SUSPENSION, "ORDER BY scope"))

    def take_suspensions(self, rows: Iterable[tuple[str, ...]]) -> bool:
        """Know the orders that the leader knows, and no others; whether these are others than before."""
        told = sorted(row for row in rows if len(row) == len(SUSPENSION.columns))
        if tuple(told) == self.suspension_rows():
            return False
        with self._file.transaction(durable=True):
            self._file.execute("DELETE FROM suspension")
            self._file.put(SUSPENSION, told)
        return True

    def forget_cluster(self, name: str) -> None:
        """Know nothing of what is in a cluster any more: another process applies there, and has its marks."""
        with self._file.transaction(durable=True):
            for table in _OF_CLUSTER:
                self._file.execute(f"DELETE FROM {table} WHERE cluster = ?", (name,))  # noqa: S608 - constants
            self._file.execute("DELETE FROM cluster WHERE name = ?", (name,))
        self._mirror.forget()
        self._losses = None
