"""A number of places that all clusters share, and that no silent cluster keeps."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager


class SharedSlots:
    """A limit of concurrent requests over all clusters; slow ones no longer count, so that they hold up nobody."""

    def __init__(self, at_once: int, slow_after_s: float) -> None:
        """All slots are free."""
        self._semaphore = asyncio.Semaphore(at_once)
        self._slow_after_s = slow_after_s

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot until the end, or until this turns out slow."""
        await self._semaphore.acquire()
        held = ExitStack()
        held.callback(self._semaphore.release)
        timer = asyncio.get_running_loop().call_later(self._slow_after_s, held.close)
        with held:
            try:
                yield
            finally:
                timer.cancel()
