"""Orders of people in the journal reach the loop: a look at what changed, or at everything."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from reconciler.api.ledger import EvictionRecord, SuspensionRecord
from reconciler.api.refs import Identity
from reconciler.controller.service.leadership import FleetProcess
from reconciler.controller.service.serve_fleet import OrdersInForce, _watch_orders, log_orders
from reconciler.journal import Journal, SharedOrdersTable
from tests.fakes.clocks import QuickClock


class Told:
    def __init__(self) -> None:
        self.words: asyncio.Queue[str] = asyncio.Queue()

    def wake(self) -> None:
        self.words.put_nowait("nudge")

    def reload(self) -> None:
        self.words.put_nowait("reload")


async def test_a_suspension_nudges_and_who_asks_has_everything_read(tmp_path: Path) -> None:
    path, loop = tmp_path / "journal.db", Told()
    with Journal.open(path) as journal:
        watching = asyncio.create_task(
            _watch_orders(journal, cast("FleetProcess", SimpleNamespace(loop=loop)), QuickClock())
        )
        await asyncio.sleep(0)
        with SharedOrdersTable(path) as book:
            book.suspend(SuspensionRecord(scope="fleet", reason="r", who="w", until=""))
            assert await asyncio.wait_for(loop.words.get(), 60) == "nudge"
            for _ in range(2):
                book.ask("a@host")
                assert await asyncio.wait_for(loop.words.get(), 60) == "reload"
            book.resume("fleet")
            assert await asyncio.wait_for(loop.words.get(), 60) == "nudge"
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


def test_the_log_says_who_ordered_what_why_and_until_when(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    stop = SuspensionRecord(scope="cluster m1", reason="disk swap", who="li@ops1", until="2026-11-21T12:00:00Z")
    leave = EvictionRecord(identity=Identity("apps", "Deployment", "shop", "web"), cluster="m1",
                           since="2026-11-21T10:00:00Z", who="li@ops1", reason="bad disk")  # fmt: skip
    before, now = OrdersInForce(1, (), ()), OrdersInForce(2, (stop,), (leave,))
    log_orders(before, now)
    log_orders(now, now._replace(version=3))
    log_orders(now, before)
    assert [_said(record) for record in caplog.records] == [
        ("Suspended", "cluster m1", "li@ops1", "disk swap (until 2026-11-21T12:00:00Z)"),
        ("Evicted", "Deployment shop/web", "li@ops1", "bad disk"),
        ("Resumed", "cluster m1", "li@ops1", "disk swap (until 2026-11-21T12:00:00Z)"),
        ("Readmitted", "Deployment shop/web", "li@ops1", "bad disk"),
    ]


def _said(record: logging.LogRecord) -> tuple[str, ...]:
    return tuple(record.__dict__[name] for name in ("event", "obj", "by", "why"))
