"""The work queue of what is tried again: keys, the time from which each is due, and its failures in a row.

Modelled on the rate-limited work queue of client-go (`k8s.io/client-go/util/workqueue`). One task uses it, and looks
for itself at what is due. All times are seconds of the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import inf
from typing import Generic, TypeVar

from msgspec import Struct

from reconciler.clock import BackOff, Clock

Key = TypeVar("Key")


class _Item(Struct):
    """The due time of a key, its failures in a row, and whether it is being processed."""

    due_s: float
    failures: int = 0
    is_taken: bool = False


class WorkQueue(Generic[Key]):
    """Keys by when they are due. A key stays, and its failures count, until it is forgotten."""

    def __init__(
        self,
        back_off: BackOff,
        clock: Clock,
        *,
        jitter: Callable[[], float] | None = None,
        per_second_max: float = inf,
    ) -> None:
        """Begin empty. `jitter`: as of a back-off. `per_second_max`: where more keys fail, each waits longer."""
        self._back_off, self._clock = back_off, clock
        self._jitter, self._per_second_max = jitter, per_second_max
        self._items: dict[Key, _Item] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._items

    @property
    def keys(self) -> Collection[Key]:
        """All keys, due or not."""
        return self._items.keys()

    @property
    def next_s(self) -> float:
        """The time at which a key is due next; endless: none is."""
        return min((item.due_s for item in self._items.values() if not item.is_taken), default=inf)

    def due(self) -> list[Key]:
        """Return the keys that are due and not being worked on, that which waits longest first."""
        now_s = self._clock.monotonic_s()
        due = [(key, item.due_s) for key, item in self._items.items() if not item.is_taken and now_s >= item.due_s]
        return [key for key, _ in sorted(due, key=lambda each: each[1])]

    def is_waiting(self, key: Key) -> bool:
        """Tell whether the pause of a key is not over."""
        return key in self._items and self._clock.monotonic_s() < self._items[key].due_s

    def add(self, key: Key) -> None:
        """Have a key be due now."""
        self.requeue_after(key, 0.0)

    def add_after(self, key: Key, pause_s: float) -> None:
        """Have a key be due after the pause at the latest: an earlier time stays."""
        item = self._items.setdefault(key, _Item(inf))
        item.due_s, item.is_taken = min(item.due_s, self._clock.monotonic_s() + pause_s), False

    def requeue_after(self, key: Key, pause_s: float) -> None:
        """Have a key be due after just this pause, which counts as no failure."""
        item = self._items.setdefault(key, _Item(inf))
        item.due_s, item.is_taken = self._clock.monotonic_s() + pause_s, False

    def requeue_rate_limited(self, key: Key) -> None:
        """Count a failure of a key, and have it be due after the pause that follows so many."""
        item = self._items.setdefault(key, _Item(inf))
        item.failures += 1
        pause_s = self._back_off.pause_s(item.failures, self._jitter)
        self.requeue_after(key, max(pause_s, len(self._items) / self._per_second_max))

    def take(self, key: Key) -> None:
        """Have a key of the queue be worked on: it is not due before it is put back."""
        if key in self._items:
            self._items[key].is_taken = True

    def reset(self, key: Key) -> None:
        """Count the failures of a key no more; when it is due stays."""
        if key in self._items:
            self._items[key].failures = 0

    def forget(self, key: Key) -> None:
        """Take a key out with its failures."""
        self._items.pop(key, None)

    def keep(self, keys: Collection[Key]) -> None:
        """Forget all keys but these."""
        self._items = {key: item for key, item in self._items.items() if key in keys}
