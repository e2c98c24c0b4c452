"""How long a watch waits before it is opened again.

One that lived until its time was up goes on at once, so that nothing is seen later than it need be. One that ends
early, expires or fails each time is asked for ever more rarely: each costs its API server, and everybody between, work.
Source: design#promise-6.
"""

from __future__ import annotations

import random
from typing import Final

LIVED_S: Final = 30.0
"""A stream that lived so long was a watch, whatever ended it."""
EARLY_ENDS: Final = 3
"""So many early ends in a row are no accident, such as the restart of a proxy."""
_PAUSE_MIN_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0


class BackOff:
    """The early ends in a row of one watch. `jitter` spreads the watches of a cluster that ended together."""

    def __init__(self, jitter: random.Random) -> None:
        """Nothing has ended yet."""
        self._jitter = jitter
        self._ends = 0

    @property
    def is_restless(self) -> bool:
        """Whether the watch keeps ending early."""
        return self._ends >= EARLY_ENDS

    def lived(self) -> None:
        """The stream lived: what was before it counts no more."""
        self._ends = 0

    def ended_early_s(self, *, has_told: bool = False, has_failed: bool = False) -> float:
        """Seconds until the next try. The first end costs nothing, unless it was a failure.

        `has_told`: it told of changes before it ended, so that waiting longer each time would be paid in freshness.
        """
        self._ends = min(self._ends + 1, EARLY_ENDS) if has_told else self._ends + 1
        doublings = 0 if has_told else max(0, self._ends - 1 - (not has_failed))
        if self._ends == 1 and not has_failed:
            return 0.0
        return min(_PAUSE_MAX_S, _PAUSE_MIN_S * 2.0 ** min(doublings, 16)) * self._jitter.uniform(0.5, 1.0)
