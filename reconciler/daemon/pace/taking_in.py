"""When what lanes have written is taken in: at once where that is little, and else no more often than it is cheap.

Each time costs as much as the fleet is large. Of many clusters that are written to, one is done at any moment.
"""

from __future__ import annotations

from typing import Final

from reconciler.adapters.clock import Clock
from reconciler.daemon.pace.lanes import Lanes

_EVERY_S: Final = 1.0
"""How often what was written is taken in while much is: neither results nor events of it are to pile up."""
_SHARE: Final = 10
"""So many times as long as that took, the next time is put off: it looks at all that is due still."""


class TakingIn:
    """The times at which it is due. All of them are monotonic seconds."""

    def __init__(self, lanes: Lanes, clock: Clock) -> None:
        """Nothing was taken in yet."""
        self._lanes, self._clock = lanes, clock
        self._next_part_s = self._next_end_s = 0.0

    def took(self, begun_s: float) -> None:
        """It was taken in just now, which began then."""
        ends_s = self._clock.monotonic_s()
        self._next_end_s = ends_s + (ends_s - begun_s) * _SHARE
        self._next_part_s = max(ends_s + _EVERY_S, self._next_end_s)

    @property
    def is_part_due(self) -> bool:
        """Whether lanes that go on have made something that is to be taken in now."""
        return self._lanes.has_results and self._clock.monotonic_s() >= self._next_part_s

    @property
    def is_end_due(self) -> bool:
        """Whether lanes have ended that are to be taken in now, without a round that does so in any case."""
        if not self._lanes.has_ended:
            return False
        is_time = self._clock.monotonic_s() >= self._next_end_s
        return is_time or not self._lanes.is_open or self._lanes.has_failed

    @property
    def pause_s(self) -> float:
        """How long nothing of this is due, while lanes are busy."""
        left_s = self._next_end_s - self._clock.monotonic_s() if self._lanes.has_ended else _EVERY_S
        return max(0.0, min(left_s, _EVERY_S))
