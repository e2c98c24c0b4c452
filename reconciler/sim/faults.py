"""Faults between a client and a cluster: seeded chances, and faults ordered for particular requests."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from enum import StrEnum

from msgspec import Struct

from reconciler.sim.api.http import Request


class FaultKind(StrEnum):
    """The faults by name."""

    THROTTLED = "throttled"
    """429 with Retry-After; nothing was done."""
    INTERNAL = "internal"
    """500; nothing was done."""
    UNAVAILABLE = "unavailable"
    """503; nothing was done."""
    RESET = "reset"
    """The connection breaks before the request is handled."""
    LOST_RESPONSE = "lost-response"
    """The request is handled, then the connection breaks."""
    TRUNCATED = "truncated"
    """The answer breaks off in the middle of its body."""
    PARTIAL_LIST = "partial-list"
    """A list without its second half and without any sign of that."""
    EMPTY_LIST = "empty-list"
    """A list without any item."""
    EXPIRED = "expired"
    """410: the list or watch starts too far back."""
    HTML = "html"
    """200 with a page of some proxy."""
    HANGING = "hanging"
    """The connection stays open and no answer comes, until the faults are cleared; then it breaks."""
    WATCH_ENDS = "watch-ends"
    """A watch that is over as soon as it begins, as behind some load balancers."""
    WATCH_SILENT = "watch-silent"
    """A watch without events and bookmarks, until the faults are cleared."""
    FORBIDDEN = "forbidden"
    """403 of a revoked permission."""
    NO_ACCOUNT = "no-account"
    """403 of a pod in a namespace whose account `default` its controller has not made yet."""
    UNKNOWN = "unknown"
    """404 in plain text, as an API server answers paths that it does not know."""
    NOT_ALLOWED = "not-allowed"
    """405 of a kind that cannot be asked so."""
    UNAUTHORIZED = "unauthorized"
    """401 of an expired token."""


class Fault(Struct, frozen=True, kw_only=True):
    """One fault as it strikes."""

    kind: FaultKind
    retry_after_s: int | None = 1
    """Retry-After of a THROTTLED or UNAVAILABLE answer; None: without the header."""


class _Order(Struct):
    fault: Fault
    matches: Callable[[Request], bool]
    times: int


def any_request(request: Request) -> bool:
    """Every request."""
    return True


def is_write(request: Request) -> bool:
    """POST, PUT, PATCH, DELETE."""
    return request.method not in ("GET", "HEAD")


_LIST_ONLY = frozenset({FaultKind.PARTIAL_LIST, FaultKind.EMPTY_LIST, FaultKind.EXPIRED})
_WRITE_ONLY = frozenset({FaultKind.LOST_RESPONSE})
_WATCH_ONLY = frozenset({FaultKind.WATCH_ENDS, FaultKind.WATCH_SILENT})


class Faults:
    """The faults of one cluster. The same seed and the same requests give the same faults."""

    def __init__(self, *, seed: int = 0) -> None:
        """No faults until some are asked for."""
        self.latency_s: tuple[float, float] = (0.0, 0.0)
        """Every answer waits at least and at most so long."""
        self.write_latency_s = 0.0
        """Every write waits so much longer before it is handled, as behind an admission webhook that takes its time."""
        self.rates: dict[FaultKind, float] = {}
        """Chance of each fault per request that it can strike."""
        self.struck: list[tuple[FaultKind, str, str]] = []
        """(fault, method, path) of everything that went wrong."""
        self._rng = random.Random(seed)  # noqa: S311  faults must repeat with the seed; nothing secret
        self._orders: list[_Order] = []
        self.over = asyncio.Event()
        """Set when the faults are cleared: what hung until then hangs no longer."""

    def order(self, fault: Fault, *, when: Callable[[Request], bool] = any_request, times: int = 1) -> None:
        """Let a fault strike the next requests that match."""
        self._orders.append(_Order(fault, when, times))

    def clear(self) -> None:
        """No more faults."""
        self.rates.clear()
        self._orders.clear()
        self.latency_s = (0.0, 0.0)
        self.write_latency_s = 0.0
        self.over.set()
        self.over = asyncio.Event()

    def delay_s(self, request: Request) -> float:
        """Return the delay of the answer to this request."""
        low, high = self.latency_s
        more_s = self.write_latency_s if is_write(request) else 0.0
        return more_s + (self._rng.uniform(low, high) if high else low)

    def draw(self, request: Request) -> Fault | None:
        """The fault that strikes a request, if any."""
        fault = self._ordered(request) or self._by_chance(request)
        if fault is not None:
            self.struck.append((fault.kind, request.method, request.path))
        return fault

    def _ordered(self, request: Request) -> Fault | None:
        for order in self._orders:
            if order.matches(request):
                order.times -= 1
                if order.times <= 0:
                    self._orders.remove(order)
                return order.fault
        return None

    def _by_chance(self, request: Request) -> Fault | None:
        for kind in sorted(self.rates):
            if (kind in _WRITE_ONLY and not is_write(request)) or (kind in _LIST_ONLY and is_write(request)):
                continue
            if kind in _WATCH_ONLY and "watch" not in request.query:
                continue
            if self._rng.random() < self.rates[kind]:
                return Fault(kind=kind)
        return None
