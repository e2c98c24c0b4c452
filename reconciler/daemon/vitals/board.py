"""The status store: one reference to values of one moment, read by others without locks.

The loop publishes and goes on; nothing is computed from it without a reader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from reconciler.model.observation import Observations
from reconciler.report.status.state_document import Picture


class Shown(Struct, frozen=True, kw_only=True):
    """The picture of the last round and its context. All of it is frozen, or no longer written.

    `since`: the time since which the fleet is in step, or is not (RFC 3339). `servers`: addresses of the clusters,
    computed on reading.
    """

    picture: Picture
    observations: Observations = field(default_factory=Observations)
    since: str = ""
    servers: Callable[[], Mapping[str, str]] = dict


class Board:
    """The status store of the loop. Everything is called from the task of the event loop that publishes."""

    def __init__(self) -> None:
        """Nothing is shown yet."""
        self.shown: Shown | None = None
        self.moment = 0
        """It grows whenever something that is shown becomes another."""
        self._waiting: set[asyncio.Future[None]] = set()

    def show(self, shown: Shown) -> None:
        """Show this from now on, and wake who waits for it."""
        self.shown = shown
        self.stir()

    def stir(self) -> None:
        """Something beside the picture is otherwise: whether the store can be read."""
        self.moment += 1
        waiting, self._waiting = self._waiting, set()
        for each in waiting:
            if not each.done():
                each.set_result(None)

    async def changed(self, moment: int) -> int:
        """The number of the moment, once it is another than this one."""
        while self.moment == moment:
            waits = asyncio.get_running_loop().create_future()
            self._waiting.add(waits)
            try:
                await waits
            finally:
                self._waiting.discard(waits)
        return self.moment
