"""The time of the world, injected wherever it matters so that tests own it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable
from datetime import UTC, datetime
from typing import Protocol, TypeVar

Value = TypeVar("Value")


class Clock(Protocol):
    """Wall time for what people read, monotonic time for spans, and waiting."""

    def now(self) -> str:
        """RFC 3339 in UTC with whole seconds, as Kubernetes writes times."""

    def monotonic_s(self) -> float:
        """Seconds that never go backwards; only differences mean something."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> str:
        """RFC 3339 in UTC with whole seconds."""
        return rfc3339(time.time())

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        await asyncio.sleep(seconds)


async def within(work: Awaitable[Value], seconds: float) -> Value:
    """What the work gives, for which it has so long.

    `asyncio.wait_for` of Python 3.11 goes on where it is cancelled just as the work ends; this is cancelled then.

    Raises:
        TimeoutError: it took longer.
    """
    async with asyncio.timeout(seconds):
        return await work


def since_boot_s() -> float:
    """Seconds since the machine started, its sleep included: a promise to others runs out while it sleeps, too."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def rfc3339(epoch_s: float) -> str:
    """An epoch time as Kubernetes writes it.

    >>> rfc3339(0)
    '1970-01-01T00:00:00Z'
    """
    return datetime.fromtimestamp(int(epoch_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def epoch_s(text: str) -> float:
    """An RFC 3339 time as epoch seconds, with any offset and fraction. Raises ValueError for anything else.

    >>> epoch_s("1970-01-01T01:00:00+01:00")
    0.0
    """
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError(f"{text!r} has no time zone")
    return moment.timestamp()
