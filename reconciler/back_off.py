"""Pauses between tries of what fails again and again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

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
