"""State of each cluster: owner epochs and rollouts, which are in its marks too, and the newest versions seen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from reconciler.adapters.fail_points import reach
from reconciler.adapters.journal.file import JournalFile
from reconciler.adapters.journal.mirror import Mirror
from reconciler.adapters.journal.rows import HOLD, META, ROLLOUT, rollout_columns, rollout_value
from reconciler.containment import contained
from reconciler.model.ledger import HoldRecord
from reconciler.model.refs import GVK
from reconciler.model.rollouts.record import Record

_VERSIONS: Final = "versions"

Versions = Mapping[str, Mapping[GVK, int]]
"""By cluster and kind."""


class HoldBook:
    """The part of a journal about the state of each cluster."""

    _file: JournalFile
    _mirror: Mirror

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

    def rollout_records(self) -> dict[str, dict[str, Record]]:
        """Return the records of rollouts, by rollout and cluster, sorted. A journal of an older schema has none."""
        if self._file.read_only:
            return self._read_rollouts()
        return {name: dict(found) for name, found in self._mirror.rollouts(self._read_rollouts).items()}

    def record_rollouts(self, rollout: str, records: Mapping[str, Record | None]) -> None:
        """Replace the records of one rollout in these clusters (None: delete it); equal ones are not written.

        One commit, or a part of the enclosing one. It does not wait for the disk: each write to a cluster comes after a
        durable intent, whose commit includes earlier ones.
        """
        known = self.rollout_records().get(rollout, {})
        differing = {cluster: record for cluster, record in sorted(records.items()) if record != known.get(cluster)}
        if not differing:
            return
        gone = [(rollout, cluster) for cluster, record in differing.items() if record is None]
        kept = {cluster: record for cluster, record in differing.items() if record is not None}
        with self._file.transaction():
            self._file.execute_many("DELETE FROM rollout WHERE rollout = ? AND cluster = ?", gone)
            self._file.put(ROLLOUT, [rollout_columns(rollout, cluster, record) for cluster, record in kept.items()])
        self._mirror.rolled(rollout, differing)
        reach("after a rollout was recorded")

    def _read_rollouts(self) -> dict[str, dict[str, Record]]:
        found: dict[str, dict[str, Record]] = {}
        if self._file.has_table(ROLLOUT):
            for row in self._file.rows(ROLLOUT, "ORDER BY rollout, cluster"):
                found.setdefault(row[0], {})[row[1]] = rollout_value(row)
        return found

    def versions(self) -> dict[str, dict[GVK, int]]:
        """The newest versions that were seen, by cluster and kind; nothing where that cannot be read."""
        rows = self._file.rows(META, "WHERE key = ?", (_VERSIONS,))
        shape = dict[str, list[tuple[str, str, int]]]
        found = contained(msgspec.json.decode, rows[0][1], type=shape).value if rows else None
        return {
            cluster: {GVK.parse(api_version, kind): number for api_version, kind, number in kinds}
            for cluster, kinds in (found or {}).items()
        }

    def record_versions(self, versions: Versions) -> None:
        """Replace what is recorded; the same is not written again. It does not wait for the disk."""
        found = {
            cluster: [(gvk.api_version, gvk.kind, number) for gvk, number in sorted(kinds.items())]
            for cluster, kinds in sorted(versions.items())
        }
        row = (_VERSIONS, msgspec.json.encode(found).decode())
        if row not in self._file.rows(META, "WHERE key = ?", (_VERSIONS,)):
            with self._file.transaction():
                self._file.put(META, [row])
