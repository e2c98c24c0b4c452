"""Pauses between tries of what fails again and again: each is twice as long as the one before, up to a bound."""

from __future__ import annotations

from msgspec import Struct


class BackOff(Struct, frozen=True, kw_only=True):
    """The shortest and the longest pause, in seconds."""

    least_s: float
    most_s: float

    def after(self, pause_s: float) -> float:
        """The pause that follows one of so many seconds; 0: it is the first.

        >>> [BackOff(least_s=2, most_s=300).after(pause_s) for pause_s in (0, 2, 4, 256)]
        [2, 4, 8, 300]
        """
        return min(self.most_s, max(self.least_s, pause_s * 2))
