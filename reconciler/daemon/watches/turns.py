"""When each cluster is listed, where nothing is watched: once in an interval, each at a moment of its own.

The moment is made of the name, so that the clusters are spread over the interval, in the same way after every start.
"""

from __future__ import annotations

from collections.abc import Collection
from hashlib import sha256
from typing import Final

from msgspec import Struct

HURRY_S: Final = 30.0
"""How often at least a cluster is listed in which the gate of a Rollout is being judged."""
_PARTS: Final = 2**64


class _Turn(Struct):
    last_s: float
    next_s: float


class Turns:
    """The next turn of each cluster. All times are monotonic seconds."""

    def __init__(self, interval_s: float) -> None:
        """No cluster has a turn yet."""
        self._interval_s = interval_s
        self._turns: dict[str, _Turn] = {}

    def begin(self, cluster: str, now_s: float) -> None:
        """A cluster has turns from now on. It was read just now; one that has turns keeps them."""
        if cluster not in self._turns:
            self._turns[cluster] = _Turn(now_s, moment_after(cluster, self._interval_s, now_s))

    def drop(self, cluster: str) -> None:
        """A cluster has no turns any more."""
        self._turns.pop(cluster, None)

    def every(self, interval_s: float, now_s: float) -> None:
        """Have each cluster's turn come so often from now on."""
        if interval_s == self._interval_s:
            return
        self._interval_s = interval_s
        for cluster, turn in self._turns.items():
            turn.next_s = moment_after(cluster, interval_s, now_s)

    def due(self, now_s: float, hurried: Collection[str]) -> list[str]:
        """The clusters whose turn has come, each once. `hurried`: their turns come every `HURRY_S` at least."""
        due = [
            name
            for name, turn in sorted(self._turns.items())
            if now_s >= turn.next_s or (name in hurried and now_s >= turn.last_s + HURRY_S)
        ]
        for name in due:
            turn = self._turns[name]
            turn.last_s = now_s
            if now_s >= turn.next_s:
                turn.next_s = moment_after(name, self._interval_s, now_s)
        return due


def moment_after(cluster: str, interval_s: float, now_s: float) -> float:
    """The first moment after now at which it is the cluster's turn: at most an interval away."""
    part = int.from_bytes(sha256(cluster.encode()).digest()[:8], "big") / _PARTS
    wait_s = (part * interval_s - now_s) % interval_s
    return now_s + (wait_s or interval_s)
