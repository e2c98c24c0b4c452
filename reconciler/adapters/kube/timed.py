"""The time until answers of API servers begin, reported to a callback."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from reconciler.adapters.clock import Clock
from reconciler.adapters.kube.requests import Request

Answered = Callable[[str, str, str, float], None]
"""Told of each request: cluster, verb, class of the answer's status (`2xx`, `none`), seconds until that began."""


def nobody(cluster: str, verb: str, code: str, seconds: float) -> None:
    """Do nothing."""


@asynccontextmanager
async def timed(
    request: Request, cluster: str, answered: Answered, clock: Clock
) -> AsyncIterator[Callable[[int], None]]:
    """Yield a function to call with the status once known; a missing answer is reported automatically.

    A request that we cancel is not reported.
    """
    begun_s, is_told = clock.monotonic_s(), False

    def tell(status: int) -> None:
        nonlocal is_told
        is_told = True
        verb = "watch" if "watch" in request.query else str(request.purpose)
        answered(cluster, verb, f"{status // 100}xx" if status else "none", clock.monotonic_s() - begun_s)

    try:
        yield tell
    except Exception:
        if not is_told:
            tell(0)
        raise
