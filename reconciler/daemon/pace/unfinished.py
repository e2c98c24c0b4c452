"""What rounds leave for later ones: changes that wait, changes that a person must confirm, and those to try again."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from reconciler.model.plan import Change
from reconciler.model.refs import Identity
from reconciler.stages.deletion import is_held_by_guard

_RETRY_MIN_S = 2.0
_RETRY_MAX_S = 300.0


class Unfinished:
    """By identity. All times are monotonic seconds."""

    def __init__(self) -> None:
        """Nothing is left."""
        self._waiting: set[Identity] = set()
        self._confirming: set[Identity] = set()
        self._retries: dict[Identity, tuple[float, float]] = {}
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
        return frozenset({*self._waiting, *self._confirming, *self._retries})

    def waits(self, identity: Identity) -> bool:
        """Whether a change waits for something in the clusters, or is tried again."""
        return self.is_held(identity) or identity in self._retries

    def is_held(self, identity: Identity) -> bool:
        """Whether a change waits for something in the clusters."""
        return identity in self._waiting

    def next_retry_s(self) -> float:
        """When something is tried again."""
        retries = (due_s for due_s, _ in self._retries.values())
        return min((*retries, *self._looks.values()), default=float("inf"))

    def due(self, now_s: float) -> list[Identity]:
        """What is to be tried again now."""
        retries = {identity for identity, (due_s, _) in self._retries.items() if now_s >= due_s}
        return sorted(retries | {identity for identity, due_s in self._looks.items() if now_s >= due_s})

    def follow(self, concerned: Iterable[Identity], changes: Iterable[Change], pending: Collection[Identity]) -> None:
        """Forget what the round looked at; remember what it held. `pending`: what failed or is being written."""
        for identity in concerned:
            self._waiting.discard(identity)
            self._confirming.discard(identity)
            self._looks.pop(identity, None)
            if identity not in pending:
                self._retries.pop(identity, None)
        for change in changes:
            if change.held is not None:
                (self._confirming if is_held_by_guard(change) else self._waiting).add(change.identity)

    def retry(self, identity: Identity, now_s: float) -> None:
        """Try again; each failure in a row doubles the pause."""
        _, pause_s = self._retries.get(identity, (0.0, _RETRY_MIN_S / 2))
        pause_s = min(_RETRY_MAX_S, pause_s * 2)
        self._retries[identity] = (now_s + pause_s, pause_s)

    def is_tried(self, identity: Identity) -> None:
        """It is being written: no other try is due before its results are in, and the pauses go on from there."""
        if identity in self._retries:
            self._retries[identity] = (float("inf"), self._retries[identity][1])

    def made(self, identity: Identity) -> None:
        """It was written."""
        self._retries.pop(identity, None)

    def read_at(self, identity: Identity, due_s: float) -> None:
        """Look again at that time, though nothing tells of it: a move may have waited for too long then."""
        self._looks[identity] = min(due_s, self._looks.get(identity, due_s))

    def put_off(self, identity: Identity, now_s: float, pause_s: float) -> None:
        """Look again after the pause."""
        self._retries[identity] = (now_s + pause_s, pause_s)
