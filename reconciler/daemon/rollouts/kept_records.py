"""What is recorded of Rollouts: in memory, and in the journal where somebody holds the fleet."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.adapters.journal.journal import Journal
from reconciler.model.rollouts.record import Record
from reconciler.stages.staging import Records


class KeptRecords:
    """The records by Rollout and cluster, as they were written last."""

    def __init__(self, journal: Journal | None, records: Records) -> None:
        """`records`: as the journal has them. `journal`: None: nothing is written."""
        self._journal = journal
        self.found: Records = records

    def read_again(self) -> None:
        """What a cluster told when the fleet was held there may be in the journal by now."""
        if self._journal is not None:
            self.found = self._journal.rollout_records()

    def take(self, name: str, after: Mapping[str, Record]) -> None:
        """Record what differs from before."""
        before = self.found.get(name, {})
        if before == after:
            return
        if self._journal is not None:
            differing: dict[str, Record | None] = {
                cluster: after.get(cluster)
                for cluster in {*before, *after}
                if before.get(cluster) != after.get(cluster)
            }
            self._journal.record_rollouts(name, differing)
        self.found = {**self.found, name: dict(after)}

    def forget(self, names: Iterable[str]) -> None:
        """Take away what is recorded of Rollouts that are no more."""
        for name in list(names):
            self.take(name, {})
            self.found = {other: found for other, found in self.found.items() if other != name}
