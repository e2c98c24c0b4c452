"""What the loop shows of itself: one reference to values of one moment, which whoever looks reads untorn.

The loop puts it there and goes on; nothing is made of it while nobody looks.
"""

from __future__ import annotations

import asyncio

from reconciler.daemon.vitals.shown import Shown
from reconciler.daemon.vitals.whole import Whole
from reconciler.stages.state import Others

__all__ = ["Board", "Shown"]


class Board:
    """Where the loop shows it. Everything is called from the task of the event loop that shows."""

    def __init__(self) -> None:
        """Nothing is shown yet."""
        self.shown: Shown | None = None
        """What this process itself knows."""
        self.others: Others | None = None
        """What other processes of the fleet tell; None: it has no shards."""
        self.moment = 0
        """It grows whenever something that is shown becomes another."""
        self._waiting: set[asyncio.Future[None]] = set()
        self._whole = Whole()

    @property
    def whole(self) -> Shown | None:
        """The whole fleet, as far as anybody tells; None: nothing is shown yet."""
        if self.shown is None or self.others is None:
            return self.shown
        return self._whole.of(self.shown, self.others)

    def take_in(self, others: Others | None) -> None:
        """Other processes tell this from now on; None: there are none any more."""
        if others is not self.others:
            self.others = others
            self.stir()

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
