"""The garbage of a process that keeps a large fleet: collected while it is idle, and never made permanent.

A fleet of 10,000 workloads is more than a million objects, which the collector would walk through again and again.
So what is alive after a round is set aside; what is garbage by then is freed first. A cycle that was alive then and
died later is found by the thorough collection.
"""

from __future__ import annotations

import gc
from typing import Final

_THOROUGH_S: Final = 3600.0
"""How often what was set aside is looked through too: about half a second for 10,000 workloads."""


class Garbage:
    """When to collect what. All times are monotonic seconds."""

    def __init__(self) -> None:
        """Nothing was set aside."""
        self._is_due = False
        self._thorough_s: float | None = None

    def round_ended(self) -> None:
        """There may be garbage."""
        self._is_due = True

    def idle(self, now_s: float) -> None:
        """Nobody waits: collect."""
        if not self._is_due:
            return
        self._is_due = False
        if self._thorough_s is None or now_s >= self._thorough_s:
            self._thorough_s = now_s + _THOROUGH_S
            gc.unfreeze()
        gc.collect()
        gc.freeze()
