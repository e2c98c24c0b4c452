"""What the loop shows of itself: one reference to values of one moment, which whoever looks reads untorn.

The loop puts it there and goes on; nothing is made of it while nobody looks.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from reconciler.model.observation import Observations
from reconciler.report.status.state_document import Picture


class Shown(Struct, frozen=True, kw_only=True):
    """The picture of the last round and what stands beside it. All of it is frozen, or written by nobody any more.

    `since`: since when the fleet is in step, or is not (RFC 3339). `servers`: addresses of the clusters, asked when
    somebody looks.
    """

    picture: Picture
    observations: Observations = field(default_factory=Observations)
    since: str = ""
    servers: Callable[[], Mapping[str, str]] = dict


class Board:
    """Where the loop shows it. Everything is called from the task of the event loop that shows."""

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
