"""Garbage collection of a process with a large fleet: while it is idle, and nothing is frozen for ever.

A fleet of 10,000 workloads is more than a million objects, which the collector would walk through again and again. So
live objects are frozen after a round; garbage is freed before that. A frozen cycle that dies later is found by the
thorough collection. Memory of a round over everything is returned to the system.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Final

from reconciler import heap
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.inbox import Inbox
from reconciler.controller.retries.conflicts import WriteConflicts
from reconciler.controller.retries.health_cache import HealthCache
from reconciler.controller.retries.kind_faults import KindFaults, UnreachableClusters
from reconciler.controller.retries.restores import Restores
from reconciler.controller.retries.retry_queue import RetryQueue, SyncedVersions
from reconciler.controller.retries.workers import ClusterWorkers

_GROWN_BYTES: Final = 8 * 1024 * 1024
"""Free memory is given back when the process has grown by so much since the last time: that costs milliseconds."""


class Garbage:
    """The times of collections. All times are monotonic seconds."""

    def __init__(
        self, resident_bytes: Callable[[], int] = heap.resident_bytes, give_back: Callable[[], object] = heap.give_back
    ) -> None:
        self._resident_bytes = resident_bytes
        self._give_back = give_back
        self._least_bytes = 0
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
            self._thorough_s = now_s + timing.THOROUGH_S
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        taken = self._resident_bytes()
        if taken > self._least_bytes + _GROWN_BYTES:
            self._give_back()
            self._least_bytes = self._resident_bytes()


class RoundCaches:
    """The shared caches of the control loop's steps."""

    def __init__(self, clock: Clock, inbox: Inbox) -> None:
        """Nothing is known. `inbox`: is sent what comes to be known beside the rounds."""
        self.lanes, self.healths = ClusterWorkers(inbox), HealthCache(inbox)
        self.beliefs, self.fights, self.restores = SyncedVersions(), WriteConflicts(), Restores()
        self.unfinished = RetryQueue(clock)
        self.doubted: set[str] = set()
        """Clusters of which a watch or a poll failed, and that no round has asked since whether they answer."""
        self.contacts: dict[str, str] = {}
        """The time of the last answer of each cluster (RFC 3339)."""
        self.away, self.kind_faults = UnreachableClusters(clock), KindFaults(clock)
