"""The time of the world, injected wherever it matters so that tests own it.

Times and spans as people write them: `2h`, `1h30m`, `2026-11-21T18:00:00Z`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from datetime import UTC, datetime
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from reconciler.errors import ConfigurationError
from reconciler.regex import regex

Value = TypeVar("Value")

_ADJUSTED_S: Final = 120.0
"""By so much a wall clock is adjusted; more is a jump."""
_BELIEVED_AFTER_S: Final = 300.0
"""Duration after which a large jump is adopted."""


class Clock(Protocol):
    """Wall time for people, monotonic time for spans, and waiting."""

    def now(self) -> str:
        """RFC 3339 in UTC with whole seconds, as Kubernetes writes times."""

    def monotonic_s(self) -> float:
        """Seconds that never go backwards; only differences mean something."""

    async def sleep(self, seconds: float) -> None:
        """Wait."""


def since_boot_s() -> float:
    """Seconds since the machine started, its sleep included: a promise to others runs out while it sleeps, too."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class TimeOfDay:
    """The wall clock for timers: it ignores short jumps of the machine's clock.

    Between looks it advances with the time since boot. A small deviation of the wall clock is adopted at once (a clock
    that is adjusted). A large jump is adopted after the shortest usual toleration: a clock that is set wrong and right
    again within that time moves nothing, and one that was wrong before does not stay so for hours. A process that
    starts trusts the present clock.
    """

    def __init__(self, wall_s: Callable[[], float] = time.time, boot_s: Callable[[], float] = since_boot_s) -> None:
        """Believe the wall clock as it is now. `wall_s`: epoch seconds; `boot_s`: seconds since boot."""
        self._wall_s = wall_s
        self._boot_s = boot_s
        self._offset_s = wall_s() - self._boot_s()
        self._doubted: tuple[float, float] | None = None
        """The other offset, and since when the wall clock has had it."""

    def epoch_s(self) -> float:
        """Epoch seconds."""
        boot_s = self._boot_s()
        offset_s = self._wall_s() - boot_s
        if abs(offset_s - self._offset_s) <= _ADJUSTED_S:
            self._offset_s, self._doubted = offset_s, None
        elif self._doubted is None or abs(offset_s - self._doubted[0]) > _ADJUSTED_S:
            self._doubted = (offset_s, boot_s)
        elif boot_s - self._doubted[1] >= _BELIEVED_AFTER_S:
            self._offset_s, self._doubted = offset_s, None
        return boot_s + self._offset_s


class SystemClock:
    """The machine's clock."""

    def now(self) -> str:
        """RFC 3339 in UTC with whole seconds."""
        return rfc3339(_TIME_OF_DAY.epoch_s())

    def monotonic_s(self) -> float:
        """Seconds since an arbitrary moment."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the event loop."""
        await asyncio.sleep(seconds)


async def within(work: Awaitable[Value], seconds: float) -> Value:
    """Await the work with a time limit; return its result.

    `asyncio.wait_for` of Python 3.11 ignores a cancellation at the moment when the work ends; this one does not.
    Raises TimeoutError: it took longer.
    """
    async with asyncio.timeout(seconds):
        return await work


async def wait_for(event: asyncio.Event, seconds: float, clock: Clock) -> bool:
    """Return whether the event came within the time."""
    waiting = asyncio.ensure_future(event.wait())
    sleeping = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({waiting, sleeping}, return_when=asyncio.FIRST_COMPLETED)
        return event.is_set()
    finally:
        for task in (waiting, sleeping):
            task.cancel()
        await asyncio.gather(waiting, sleeping, return_exceptions=True)


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


_TIME_OF_DAY: Final = TimeOfDay()
"""Of this process: it has one idea of the time."""

_UNIT_S = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_SPAN = regex(r"(?:[0-9]{1,6}[smhdw])+")
_PART = regex(r"([0-9]+)([smhdw])")


def seconds_in(text: str) -> int:
    """Return the seconds of a span. Raises ConfigurationError: it is none."""
    if not _SPAN.fullmatch(text):
        raise ConfigurationError(f"{text!r} is no span of time; write 30m, 2h, 1h30m or 2d")
    return sum(int(count) * _UNIT_S[unit] for count, unit in _PART.findall(text))


def instant(text: str) -> str:
    """Return an RFC 3339 time in UTC. Raises ConfigurationError: it is none, or has no time zone."""
    try:
        return rfc3339(epoch_s(text))
    except (ValueError, OverflowError) as error:
        raise ConfigurationError(f"{text!r} is no time; write it like 2026-11-21T18:00:00Z") from error


def moment(text: str, now: str) -> str:
    """Return an RFC 3339 time in UTC, which must be after `now`.

    Raises ConfigurationError: it is none, has no time zone, or has passed.
    """
    parsed = instant(text)
    if epoch_s(parsed) <= epoch_s(now):
        raise ConfigurationError(f"{text} has passed; now it is {now}")
    return parsed


_DOUBLINGS_MAX: Final = 64


class BackOff(Struct, frozen=True, kw_only=True):
    """The shortest and the longest pause, in seconds: each is twice as long as the one before."""

    least_s: float
    most_s: float

    def pause_s(self, failures: int, jitter: Callable[[], float] | None = None) -> float:
        """Return the seconds to wait after so many failures in a row, the first being 1.

        `jitter`: a number from 0 to 1, which takes up to half of the pause away, so that what failed together is not
        tried together.

        >>> [BackOff(least_s=2, most_s=300).pause_s(failures) for failures in (1, 2, 3, 8, 9, 10_000)]
        [2.0, 4.0, 8.0, 256.0, 300, 300]
        """
        pause_s = min(self.most_s, self.least_s * 2.0 ** min(max(failures - 1, 0), _DOUBLINGS_MAX))
        return pause_s * (1 - jitter() / 2) if jitter is not None else pause_s


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
