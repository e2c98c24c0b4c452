"""What rounds leave for later ones: changes that wait, changes that a person must confirm, and those to try again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from reconciler.model.plan import Change
from reconciler.model.refs import Identity
from reconciler.stages.deletion import is_held_by_guard

_RETRY_MIN_S = 2.0
_RETRY_MAX_S = 300.0


Copy = tuple[str, Identity]
"""An object in a cluster: what is tried again."""


class Unfinished:
    """What waits, by identity, and what is tried again, by copy. All times are monotonic seconds."""

    def __init__(self) -> None:
        """Nothing is left."""
        self._waiting: set[Identity] = set()
        self._confirming: set[Identity] = set()
        self._retries: dict[Copy, tuple[float, float]] = {}
        self._looks: dict[Identity, float] = {}

    @property
    def confirming(self) -> frozenset[Identity]:
        """What a guard holds: every round looks at all of it, or the digest to confirm would change."""
        return frozenset(self._confirming)

    @property
    def waiting(self) -> frozenset[Identity]:
        """What is held for another reason: something in the clusters, or an order."""
        return frozenset(self._waiting)

    @property
    def all(self) -> frozenset[Identity]:
        """Everything that is left."""
        return self.held.union(identity for _, identity in self._retries)

    @property
    def held(self) -> frozenset[Identity]:
        """What waits for anything, somewhere."""
        return frozenset({*self._waiting, *self._confirming})

    def waits(self, cluster: str, identity: Identity) -> bool:
        """Whether a change waits for something in the clusters, or is tried again in this one."""
        return self.is_held(identity) or (cluster, identity) in self._retries

    def is_to_retry(self, cluster: str, identity: Identity) -> bool:
        """Whether a time is set at which it is tried again."""
        return (cluster, identity) in self._retries

    def is_held(self, identity: Identity) -> bool:
        """Whether a change waits for something in the clusters."""
        return identity in self._waiting

    def next_retry_s(self) -> float:
        """When something is tried again."""
        retries = (due_s for due_s, _ in self._retries.values())
        return min((*retries, *self._looks.values()), default=float("inf"))

    def due(self, now_s: float) -> list[Identity]:
        """What is to be looked at again now, wherever it is."""
        return sorted(identity for identity, due_s in self._looks.items() if now_s >= due_s)

    def due_copies(self, now_s: float) -> list[Copy]:
        """What is to be tried again now."""
        return sorted(copy for copy, (due_s, _) in self._retries.items() if now_s >= due_s)

    def follow(
        self,
        concerned: Collection[Identity],
        changes: Iterable[Change],
        pending: Collection[Copy],
        is_asked: Callable[[str, Identity], bool],
    ) -> None:
        """Forget what the round looked at; remember what it held.

        `pending`: what failed or is being written. `is_asked`: whether it looked at a copy.
        """
        for identity in concerned:
            self._waiting.discard(identity)
            self._confirming.discard(identity)
            self._looks.pop(identity, None)
        for copy in [copy for copy in self._retries if copy not in pending and is_asked(*copy)]:
            del self._retries[copy]
        for change in changes:
            if change.held is not None:
                (self._confirming if is_held_by_guard(change) else self._waiting).add(change.identity)

    def retry(self, cluster: str, identity: Identity, now_s: float) -> None:
        """Try again; each failure in a row doubles the pause."""
        _, pause_s = self._retries.get((cluster, identity), (0.0, _RETRY_MIN_S / 2))
        pause_s = min(_RETRY_MAX_S, pause_s * 2)
        self._retries[cluster, identity] = (now_s + pause_s, pause_s)

    def is_tried(self, cluster: str, identity: Identity) -> None:
        """It is being written: no other try is due before its results are in, and the pauses go on from there."""
        if (cluster, identity) in self._retries:
            self._retries[cluster, identity] = (float("inf"), self._retries[cluster, identity][1])

    def made(self, cluster: str, identity: Identity) -> None:
        """It was written."""
        self._retries.pop((cluster, identity), None)

    def put_off(self, cluster: str, identity: Identity, now_s: float, pause_s: float) -> None:
        """Look again after the pause."""
        self._retries[cluster, identity] = (now_s + pause_s, pause_s)

    def read_at(self, identity: Identity, due_s: float) -> None:
        """Look again at that time, though nothing tells of it: a move may have waited for too long then."""
        self._looks[identity] = min(due_s, self._looks.get(identity, due_s))
