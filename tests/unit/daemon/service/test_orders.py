"""What people order through the journal reaches the loop: a look at what changed, or at everything."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import cast

from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.loop.loop import ControlLoop
from reconciler.daemon.service.serve import _watch_orders
from reconciler.model.ledger import SuspensionRecord
from tests.fakes.clocks import QuickClock


class Told:
    """A loop that remembers what it was told."""

    def __init__(self) -> None:
        self.words: asyncio.Queue[str] = asyncio.Queue()

    def nudge(self) -> None:
        self.words.put_nowait("nudge")

    def reload(self) -> None:
        self.words.put_nowait("reload")


async def test_a_suspension_nudges_and_who_asks_has_everything_read(tmp_path: Path) -> None:
    path, loop = tmp_path / "journal.db", Told()
    with Journal.open(path) as journal:
        watching = asyncio.create_task(_watch_orders(journal, cast("ControlLoop", loop), QuickClock()))
        await asyncio.sleep(0)
        with Journal.open_beside(path) as book:
            book.suspend(SuspensionRecord(scope="fleet", reason="r", who="w", until=""))
            assert await asyncio.wait_for(loop.words.get(), 10) == "nudge"
            for _ in range(2):
                book.ask("a@host")
                assert await asyncio.wait_for(loop.words.get(), 10) == "reload"
            book.resume("fleet")
            assert await asyncio.wait_for(loop.words.get(), 10) == "nudge"
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)
