"""Shared commits: all writes of one turn of the event loop reach the disk by one commit.

A durable commit waits for the disk, two milliseconds or more, and the event loop with it. A commit of the store that
changes a thousand clusters would need that a thousand times.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple

from reconciler.containment import UNCONTAINED, contained
from reconciler.model.ledger import Intent, Loss

Ids = tuple[int, ...]


class _Wanted(NamedTuple):
    intents: tuple[Intent, ...]
    losses: tuple[Loss, ...]
    ids: asyncio.Future[Ids]


class SharedCommits:
    """The writers that wait for the next commit."""

    def __init__(
        self,
        begin: Callable[[Iterable[Intent], Iterable[Loss]], Ids],
        durable: Callable[[], AbstractContextManager[None]],
    ) -> None:
        """`begin` writes intents, in a commit of its own or as a part of one that `durable` makes."""
        self._begin, self._durable = begin, durable
        self._waiting: list[_Wanted] = []

    async def begin(self, intents: Iterable[Intent], losses: Iterable[Loss]) -> Ids:
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
            made = contained(self._all, wanted)
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
