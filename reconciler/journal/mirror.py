"""The writer's cache of the journal, valid since nobody else writes these tables.

A fleet of 129,000 copies takes half a second to read, and a commit of one file changes a dozen rows of it. Values are
never written into: a change makes new mappings along its path, so that earlier ones can be compared.

Shared commits: all writes of one turn of the event loop reach the disk by one commit.

A durable commit waits for the disk, two milliseconds or more, and the event loop with it. A commit of the store that
changes a thousand clusters would need that a thousand times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import NamedTuple

from reconciler.api.binding import PreviousPlacement
from reconciler.api.content import JsonObject
from reconciler.api.ledger import AppliedRow, Intent, Ledger, RecordedLoss
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Record
from reconciler.containment import UNCONTAINED, try_call
from reconciler.incremental import patched

Placements = Mapping[Identity, PreviousPlacement]
Releases = Mapping[str, Mapping[Identity, str]]
RolloutRecords = Mapping[str, Mapping[str, Record]]


class Mirror:
    """Each table as it was read once, with every change since; None: not read yet, or in doubt."""

    def __init__(self) -> None:
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


Ids = tuple[int, ...]


class _Wanted(NamedTuple):
    intents: tuple[Intent, ...]
    losses: tuple[RecordedLoss, ...]
    ids: asyncio.Future[Ids]


class SharedCommits:
    """The writers that wait for the next commit."""

    def __init__(
        self,
        begin: Callable[[Iterable[Intent], Iterable[RecordedLoss]], Ids],
        durable: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`begin` writes intents, in a commit of its own or as a part of one that `durable` makes."""
        self._begin, self._durable = begin, durable
        self._waiting: list[_Wanted] = []

    async def begin(self, intents: Iterable[Intent], losses: Iterable[RecordedLoss]) -> Ids:
        """The ids of the intents, once they are on the disk.

        Raises:
            JournalError: they are not.
        """
        loop = asyncio.get_running_loop()
        wanted = _Wanted(tuple(intents), tuple(losses), loop.create_future())
        if not self._waiting:
            loop.call_soon(self._commit)
        self._waiting.append(wanted)
        return await wanted.ids

    def _commit(self) -> None:
        wanted, self._waiting = [each for each in self._waiting if not each.ids.done()], []
        try:
            made = try_call(self._all, wanted)
        except UNCONTAINED as error:
            for each in wanted:
                each.ids.set_exception(error)
            return
        if made.value is not None:
            for each, ids in zip(wanted, made.value, strict=True):
                each.ids.set_result(ids)
            return
        # One of them cannot be written; the others go on.
        for each in wanted:
            self._alone(each)

    def _all(self, wanted: Iterable[_Wanted]) -> list[Ids]:
        with self._durable():
            return [self._begin(each.intents, each.losses) for each in wanted]

    def _alone(self, wanted: _Wanted) -> None:
        try:
            wanted.ids.set_result(self._begin(wanted.intents, wanted.losses))
        except Exception as error:
            wanted.ids.set_exception(error)
