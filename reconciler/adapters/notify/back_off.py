"""The delay before a request is repeated."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from reconciler.adapters.clock import epoch_s

FIRST_S: Final = 1.0
MAX_S: Final = 300.0
ASKED_MAX_S: Final = 3600.0
"""A receiver may ask for this long and no longer."""
_DOUBLINGS_MAX: Final = 20


def pause_s(attempt: int, headers: Mapping[str, str], now: str, jitter: Callable[[], float] = random.random) -> float:
    """Return the seconds to wait after the nth failure in a row, the first being 1.

    Doubled each time up to `MAX_S`, less up to half by chance; at least the receiver's own delay, within bounds.
    `headers`: of its answer, names in lower case; `now`: RFC 3339. Source: RFC 9110, 10.2.3.
    """
    own_s = min(FIRST_S * 2.0 ** min(attempt - 1, _DOUBLINGS_MAX), MAX_S) * (1 - jitter() / 2)
    return max(own_s, min(_asked_s(headers, epoch_s(now)), ASKED_MAX_S))


def _asked_s(headers: Mapping[str, str], now_s: float) -> float:
    text = headers.get("retry-after", "").strip()
    if text.isdecimal() and text.isascii():
        return float(text[:9])
    if text:
        try:
            return parsedate_to_datetime(text).timestamp() - now_s
        except (ValueError, TypeError, OverflowError):
            return 0.0
    # GitHub sends the time of its next rate limit window.
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal() and reset.isascii():
        return float(reset[:12]) - now_s
    return 0.0
