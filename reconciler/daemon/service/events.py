"""Events that end what waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def either(*events: asyncio.Event) -> AsyncIterator[asyncio.Event]:
    """An event that is set as soon as one of these is; that it is set tells none of them."""
    joined = asyncio.Event()

    async def passed_on(event: asyncio.Event) -> None:
        await event.wait()
        joined.set()

    async with beside(*(passed_on(event) for event in events)):
        for event in events:
            if event.is_set():
                joined.set()
        yield joined


@asynccontextmanager
async def beside(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Work that goes on until the block ends.

    Where one fails, the block is broken off and ends with that exception: nobody would notice that it goes on no more.
    """
    block = asyncio.current_task()
    assert block is not None, "it runs in a task"
    failed: list[BaseException] = []
    has_ended = False

    def look(task: asyncio.Task[None]) -> None:
        if not task.cancelled() and (fault := task.exception()) is not None and not has_ended:
            failed.append(fault)
            if len(failed) == 1:
                block.cancel()

    tasks = [asyncio.create_task(work) for work in works]
    for task in tasks:
        task.add_done_callback(look)
    try:
        yield
    except asyncio.CancelledError:
        if not failed or block.uncancel():
            raise
        raise failed[0] from None
    finally:
        has_ended = True
        await ended(tasks)


async def ended(tasks: Iterable[asyncio.Future[Any]]) -> None:
    """End tasks, whatever they do."""
    found = list(tasks)
    for task in found:
        task.cancel()
    await asyncio.gather(*found, return_exceptions=True)


async def first_of(*works: Awaitable[Any]) -> None:
    """Wait until one of these has ended; the others are ended then."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await ended(tasks)
