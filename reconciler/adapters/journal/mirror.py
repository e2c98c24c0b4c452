"""The writer's cache of the journal, valid since nobody else writes these tables.

A fleet of 129,000 copies takes half a second to read, and a commit of one file changes a dozen rows of it. Values are
never written into: a change makes new mappings along its path, so that earlier ones can be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from reconciler.model.binding import PreviousPlacement
from reconciler.model.ledger import AppliedRow, Ledger
from reconciler.model.refs import Identity
from reconciler.model.rollouts.record import Record
from reconciler.model.tree import JsonObject
from reconciler.stages.incremental import patched

Placements = Mapping[Identity, PreviousPlacement]
Releases = Mapping[str, Mapping[Identity, str]]
RolloutRecords = Mapping[str, Mapping[str, Record]]


class Mirror:
    """Each table as it was read once, with every change since; None: not read yet, or in doubt."""

    def __init__(self) -> None:
        """Nothing is known."""
        self._ledger: Ledger | None = None
        self._placements: Placements | None = None
        self._good_blobs: Mapping[str, str] | None = None
        self._released: Releases | None = None
        self._rollouts: RolloutRecords | None = None
        self.meta: dict[str, str] = {}
        """The objects of the journal, by key, as far as they were asked for."""
        self.picture: JsonObject | None = None
        """The document that was recorded last."""

    def forget(self) -> None:
        """Read everything again when it is asked for: a transaction was rolled back, or tables were replaced."""
        self._ledger = self._placements = self._good_blobs = self._released = self._rollouts = self.picture = None
        self.meta = {}

    def ledger(self, read: Callable[[], Ledger]) -> Ledger:
        """Return the applied rows, by cluster and identity, sorted."""
        if self._ledger is None:
            self._ledger = read()
        return self._ledger

    def placements(self, read: Callable[[], Placements]) -> Placements:
        """The placements that were recorded last, sorted."""
        if self._placements is None:
            self._placements = read()
        return self._placements

    def good_blobs(self, read: Callable[[], Mapping[str, str]]) -> Mapping[str, str]:
        """The good blobs that were recorded last."""
        if self._good_blobs is None:
            self._good_blobs = read()
        return self._good_blobs

    def released(self, read: Callable[[], Releases], *, keep: bool) -> Releases:
        """Return the released objects, by cluster and identity; not cached for a reader, which misses later ones."""
        found = read() if self._released is None else self._released
        self._released = found if keep else None
        return found

    def rollouts(self, read: Callable[[], RolloutRecords]) -> RolloutRecords:
        """Return the records of rollouts, by rollout and cluster, sorted."""
        if self._rollouts is None:
            self._rollouts = read()
        return self._rollouts

    def rolled(self, rollout: str, changes: Mapping[str, Record | None]) -> None:
        """Records of a rollout were written; None: removed."""
        if self._rollouts is not None:
            records = patched(self._rollouts.get(rollout, {}), changes)
            self._rollouts = patched(self._rollouts, {rollout: records or None})

    def finished(self, *, others_released: bool) -> None:
        """Intents were closed. `others_released`: by some of them something was released, or adopted."""
        if others_released:
            self._released = None

    def applied(self, rows: Iterable[AppliedRow]) -> None:
        """Rows were written, with their manifests as they are recorded."""
        self._patch((row.cluster, row.identity, row) for row in rows)

    def removed(self, copies: Iterable[tuple[str, Identity]]) -> None:
        """Rows were removed."""
        self._patch(((cluster, identity, None) for cluster, identity in copies))

    def placed(self, changes: Mapping[Identity, PreviousPlacement | None]) -> None:
        """Placements were written; None: removed."""
        if self._placements is not None:
            self._placements = patched(self._placements, changes)

    def blobs_recorded(self, blobs: Mapping[str, str]) -> None:
        """All good blobs were replaced."""
        self._good_blobs = dict(blobs)

    def _patch(self, changes: Iterable[tuple[str, Identity, AppliedRow | None]]) -> None:
        if self._ledger is None:
            return
        by_cluster: dict[str, dict[Identity, AppliedRow | None]] = {}
        for cluster, identity, row in changes:
            by_cluster.setdefault(cluster, {})[identity] = row
        ledger = dict(self._ledger)
        for cluster, rows in by_cluster.items():
            ledger[cluster] = patched(ledger.get(cluster, {}), rows)
        self._ledger = {name: ledger[name] for name in sorted(ledger) if ledger[name]}
