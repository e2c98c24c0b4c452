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
from typing import Generic, NamedTuple, TypeVar

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
Value = TypeVar("Value")


class _TableCache(Generic[Value]):
    """A table as it was read once, with every change since; None: not read yet, or in doubt."""

    def __init__(self) -> None:
        self.value: Value | None = None

    def of(self, read: Callable[[], Value]) -> Value:
        """Return the table, read where it is not kept."""
        if self.value is None:
            self.value = read()
        return self.value


class Mirror:
    """The tables of the writer, with the objects of the journal by key, and the document that was recorded last."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Read everything again when it is asked for: a transaction was rolled back, or tables were replaced."""
        self.ledger, self.placements, self.rollouts = (
            _TableCache[Ledger](),
            _TableCache[Placements](),
            _TableCache[RolloutRecords](),
        )
        self.good_blobs, self.released = _TableCache[Mapping[str, str]](), _TableCache[Releases]()
        self.meta: dict[str, str] = {}
        self.picture: JsonObject | None = None

    def rolled(self, rollout: str, changes: Mapping[str, Record | None]) -> None:
        """Records of a rollout were written; None: removed."""
        if (known := self.rollouts.value) is not None:
            records = patched(known.get(rollout, {}), changes)
            self.rollouts.value = patched(known, {rollout: records or None})

    def applied(self, rows: Iterable[AppliedRow]) -> None:
        """Rows were written, with their manifests as they are recorded."""
        self._patch((row.cluster, row.identity, row) for row in rows)

    def removed(self, copies: Iterable[tuple[str, Identity]]) -> None:
        """Rows were removed."""
        self._patch(((cluster, identity, None) for cluster, identity in copies))

    def placed(self, changes: Mapping[Identity, PreviousPlacement | None]) -> None:
        """Placements were written; None: removed."""
        if self.placements.value is not None:
            self.placements.value = patched(self.placements.value, changes)

    def _patch(self, changes: Iterable[tuple[str, Identity, AppliedRow | None]]) -> None:
        if self.ledger.value is None:
            return
        by_cluster: dict[str, dict[Identity, AppliedRow | None]] = {}
        for cluster, identity, row in changes:
            by_cluster.setdefault(cluster, {})[identity] = row
        ledger = dict(self.ledger.value)
        for cluster, rows in by_cluster.items():
            ledger[cluster] = patched(ledger.get(cluster, {}), rows)
        self.ledger.value = {name: ledger[name] for name in sorted(ledger) if ledger[name]}


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
