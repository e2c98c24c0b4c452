"""Accounts of other processes are read when they are another one. Source: ADR 22."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from reconciler.adapters.journal.journal import Journal
from reconciler.daemon.shards.exchange import Exchange
from reconciler.stages.shards import Account, account_body, account_name
from tests.unit.daemon.shards.test_custody import FakeCluster


async def led(shard: str) -> bool:
    return True


def test_an_account_whose_reading_was_broken_off_is_read_again(tmp_path: Path) -> None:
    """A busy machine takes longer to unpack it than a reading may take; nobody writes it anew meanwhile."""

    async def story(journal: Journal) -> None:
        cluster = FakeCluster()
        cluster.put(account_name("shop", "a"), account_body(account_name("shop", "a"), "n", Account(shard="a")))
        exchange = Exchange(cluster.member, "shop", "", ("a",), lambda: True, led)
        busy = threading.Event()
        with ThreadPoolExecutor(1) as thread:
            asyncio.get_running_loop().set_default_executor(thread)
            thread.submit(busy.wait)
            reading = asyncio.create_task(exchange.read(journal))
            for _ in range(100):
                await asyncio.sleep(0)
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
            busy.set()
            await exchange.read(journal)
            assert exchange.is_complete

    with Journal.open(tmp_path / "journal.db") as journal:
        asyncio.run(story(journal))
