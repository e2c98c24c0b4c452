"""Waiting for what another process or thread does, which tells no event."""

from __future__ import annotations

import asyncio
from collections.abc import Callable


async def until(fact: Callable[[], object], timeout_s: float = 180) -> None:
    """Return once `fact` holds; raise TimeoutError after the time, which guards against hanging alone."""
    async with asyncio.timeout(timeout_s):
        while not fact():
            await asyncio.sleep(0.005)  # nothing else can be awaited
