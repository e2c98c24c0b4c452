"""The writer's cache of the journal, valid since nobody else writes these tables.

A fleet of 129,000 copies takes half a second to read, and a commit of one file changes a dozen rows of it. Values are
never written into: a change makes new mappings along its path, so that earlier ones can be compared.

Shared commits: all writes of one turn of the event loop reach the disk by one commit.

A durable commit waits for the disk, two milliseconds or more, and the event loop with it. A commit of the store that
changes a thousand clusters would need that a thousand times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Generic, NamedTuple, TypeVar

from reconciler.api.binding import PreviousPlacement
from reconciler.api.content import JsonObject
from reconciler.api.ledger import AppliedRow, Intent, Ledger, Losses, RecordedLoss
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Record
from reconciler.containment import UNCONTAINED
from reconciler.incremental import patched
from reconciler.journal.sqlite_file import JournalFile

Placements = Mapping[Identity, PreviousPlacement]
Releases = Mapping[str, Mapping[Identity, str]]
RolloutRecords = Mapping[str, Mapping[str, Record]]
Value = TypeVar("Value")


class _TableCache(Generic[Value]):
    """A table as it was read once, with every change since; None: not read yet, or in doubt."""

    def __init__(self, *, is_kept: bool) -> None:
        self.value: Value | None = None
        self._is_kept = is_kept

    def of(self, read: Callable[[], Value]) -> Value:
        """Return the table, read where it is not kept."""
        value = read() if self.value is None else self.value
        if self._is_kept:
            self.value = value
        return value


class Mirror:
    """The tables with the objects of the journal by key, and the document that was recorded last.

    A reader keeps none of it: another process writes.
    """

    def __init__(self, *, is_kept: bool) -> None:
        self._is_kept = is_kept
        self.forget()

    def forget(self) -> None:
        """Read everything again when it is asked for: a transaction was rolled back, or tables were replaced."""
        is_kept = self._is_kept
        self.ledger = _TableCache[Ledger](is_kept=is_kept)
        self.placements = _TableCache[Placements](is_kept=is_kept)
        self.rollouts = _TableCache[RolloutRecords](is_kept=is_kept)
        self.good_blobs = _TableCache[Mapping[str, str]](is_kept=is_kept)
        self.released = _TableCache[Releases](is_kept=is_kept)
        self.losses = _TableCache[Losses](is_kept=is_kept)
        self.meta: dict[str, str] = {}
        self.picture: JsonObject | None = None

    def rolled(self, rollout: str, changes: Mapping[str, Record | None]) -> None:
        """Records of a rollout were written; None: removed."""
        if (known := self.rollouts.value) is not None:
            self.rollouts.value = patched(known, {rollout: patched(known.get(rollout, {}), changes) or None})

    def placed(self, changes: Mapping[Identity, PreviousPlacement | None]) -> None:
        """Placements were written; None: removed."""
        if self.placements.value is not None:
            self.placements.value = patched(self.placements.value, changes)

    def applied(self, changes: Iterable[tuple[str, Identity, AppliedRow | None]]) -> None:
        """Rows were written, with their manifests as they are recorded; None: removed."""
        if self.ledger.value is None:
            return
        by_cluster: dict[str, dict[Identity, AppliedRow | None]] = {}
        for cluster, identity, row in changes:
            by_cluster.setdefault(cluster, {})[identity] = row
        ledger = dict(self.ledger.value)
        for cluster, rows in by_cluster.items():
            ledger[cluster] = patched(ledger.get(cluster, {}), rows)
        self.ledger.value = {name: ledger[name] for name in sorted(ledger) if ledger[name]}


class JournalTables:
    """The file of a journal, and what was read of it."""

    _file: JournalFile
    _mirror: Mirror

    @contextmanager
    def transaction(self, *, durable: bool = False) -> Iterator[None]:
        """One commit for everything inside, or none; for a reader, one consistent view."""
        try:
            with self._file.transaction(durable=durable):
                yield
        except BaseException:
            self._mirror.forget()
            raise


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
        """The ids of the intents, once they are on the disk. Raises JournalError: they are not."""
        loop = asyncio.get_running_loop()
        wanted = _Wanted(tuple(intents), tuple(losses), loop.create_future())
        if not self._waiting:
            loop.call_soon(self._commit)
        self._waiting.append(wanted)
        return await wanted.ids

    def _commit(self) -> None:
        wanted, self._waiting = [each for each in self._waiting if not each.ids.done()], []
        try:
            with self._durable():
                begun = [self._begin(each.intents, each.losses) for each in wanted]
        except Exception as error:
            for each in wanted:
                try:
                    if isinstance(error, UNCONTAINED):
                        raise error
                    # One of them cannot be written; the others go on.
                    each.ids.set_result(self._begin(each.intents, each.losses))
                except Exception as fault:
                    each.ids.set_exception(fault)
            return
        for each, ids in zip(wanted, begun, strict=True):
            each.ids.set_result(ids)
