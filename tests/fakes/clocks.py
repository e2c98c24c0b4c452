"""Clocks that tests own."""

from __future__ import annotations

import asyncio
import time

from reconciler.clock import rfc3339

SPEED = 20.0
"""The speed of the time of a `QuickClock` beside ours."""


class TestClock:
    """Stands still until told; sleeping advances it at once and is remembered."""

    __test__ = False

    def __init__(self, epoch_s: float = 1_800_000_000) -> None:
        self._start_s = epoch_s
        self._passed_s = 0.0
        self.slept: list[float] = []

    def advance(self, seconds: float) -> None:
        self._passed_s += seconds

    def now(self) -> str:
        return rfc3339(self._start_s + self._passed_s)

    def monotonic_s(self) -> float:
        return self._passed_s

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.advance(seconds)
        await asyncio.sleep(0)


class QuickClock:
    """Time that passes twenty times as fast, so that pauses of seconds cost a test nothing."""

    def now(self) -> str:
        return rfc3339(time.time())

    def monotonic_s(self) -> float:
        return time.monotonic() * SPEED

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds / SPEED)  # the clock of tests whose servers live in real time
