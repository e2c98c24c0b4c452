"""The retry queue between rounds: waiting changes, changes for a person to confirm, and failed ones."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from reconciler.adapters.clock import Clock
from reconciler.daemon import timing
from reconciler.daemon.work_queue import WorkQueue
from reconciler.model.plan import Action, Change, Engine
from reconciler.model.refs import Identity
from reconciler.stages.deletion import is_held_by_guard

Copy = tuple[str, Identity]
"""An object in a cluster: the unit of retries."""


class Unfinished:
    """Waiting changes, by identity, and retries, by copy."""

    def __init__(self, clock: Clock) -> None:
        """Nothing is left."""
        self._waiting: set[Identity] = set()
        self._confirming: set[Identity] = set()
        self._retries = WorkQueue[Copy](timing.RETRY_BACK_OFF, clock)
        self._paced: dict[Copy, str] = {}
        """The digest of what failed and is not written before its pause is over."""
        self._failed: set[Copy] = set()
        """Those of the retries whose last write was sent and failed; the others could not be sent, or are put off."""
        self._looks = WorkQueue[Identity](timing.RETRY_BACK_OFF, clock)
        self._replacing: set[Copy] = set()

    @property
    def confirming(self) -> frozenset[Identity]:
        """Return guarded objects: every round evaluates all of them, or the digest to confirm would change."""
        return frozenset(self._confirming)

    @property
    def waiting(self) -> frozenset[Identity]:
        """Return objects held for another reason: something in the clusters, or an order."""
        return frozenset(self._waiting)

    @property
    def all(self) -> frozenset[Identity]:
        """Everything that is left."""
        return self.held.union(identity for _, identity in self._retries.keys)

    @property
    def held(self) -> frozenset[Identity]:
        """Return objects that wait for anything, anywhere."""
        return frozenset({*self._waiting, *self._confirming})

    def waits(self, cluster: str, identity: Identity) -> bool:
        """Return whether a change waits for something in the clusters, or is retried in this one."""
        return self.is_held(identity) or (cluster, identity) in self._retries

    def is_asked_first(self, change: Change) -> bool:
        """Tell whether a dry run comes before the change: its last write failed, or it has to be a replacement.

        Else an update that no table knows to be impossible would fail in every round. While its pause lasts, nothing is
        sent, and nothing asked: behind a webhook that hangs each question would hold up the round.
        """
        copy = (change.cluster, change.identity)
        return copy in self._replacing or (copy in self._failed and not self.is_too_early(change))

    def is_held(self, identity: Identity) -> bool:
        """Return whether a change waits for something in the clusters."""
        return identity in self._waiting

    def next_retry_s(self) -> float:
        """Return the time of the next retry."""
        return min(self._retries.next_s, self._looks.next_s)

    def due(self) -> list[Identity]:
        """Return the objects to evaluate now, in any cluster."""
        return self._looks.due()

    def due_copies(self) -> list[Copy]:
        """Return the copies to retry now."""
        return self._retries.due()

    def follow(
        self,
        concerned: Collection[Identity],
        changes: Iterable[Change],
        pending: Collection[Copy],
        is_asked: Callable[[str, Identity], bool],
    ) -> None:
        """Replace the entries of evaluated objects by the present holds.

        `pending`: failed or being written. `is_asked`: whether the round read a copy.
        """
        for identity in concerned:
            self._waiting.discard(identity)
            self._confirming.discard(identity)
            self._looks.forget(identity)
        for copy in [copy for copy in self._retries.keys if copy not in pending and is_asked(*copy)]:
            self.made(*copy)
        self._replacing = {copy for copy in self._replacing if not is_asked(*copy)}
        for change in changes:
            if change.held is not None and change.action is Action.REPLACE and change.engine is Engine.SERVER_SIDE:
                self._replacing.add((change.cluster, change.identity))
            if change.held is not None:
                (self._confirming if is_held_by_guard(change) else self._waiting).add(change.identity)

    def retry(self, change: Change, *, is_paced: bool, is_sent: bool = True) -> None:
        """Try again; each failure in a row doubles the pause.

        `is_paced`: whatever is seen of the object before that, the same is not written earlier: it would fail again.
        `is_sent`: it was tried; False: it could not even be sent, which says nothing of the change.
        """
        copy = (change.cluster, change.identity)
        self._retries.requeue_rate_limited(copy)
        self._paced.pop(copy, None)
        (self._failed.add if is_sent else self._failed.discard)(copy)
        if is_paced:
            self._paced[copy] = change.manifest_digest

    def is_too_early(self, change: Change) -> bool:
        """Return whether the same change has failed, and its pause is not over."""
        copy = (change.cluster, change.identity)
        return self._paced.get(copy) == change.manifest_digest and self._retries.is_waiting(copy)

    def forgive(self, clusters: Collection[str]) -> None:
        """Let failed changes be written at the next look: these clusters are back, or a person asks for it."""
        self._paced = {copy: digest for copy, digest in self._paced.items() if copy[0] not in clusters}

    def is_tried(self, cluster: str, identity: Identity) -> None:
        """It is being written: no other try is due before its results are in, and the pauses go on from there."""
        self._retries.take((cluster, identity))

    def made(self, cluster: str, identity: Identity) -> None:
        """It was written."""
        self._retries.forget((cluster, identity))
        self._failed.discard((cluster, identity))
        self._paced.pop((cluster, identity), None)

    def put_off(self, cluster: str, identity: Identity, pause_s: float) -> None:
        """Look again after the pause."""
        self._retries.requeue_after((cluster, identity), pause_s)
        self._paced.pop((cluster, identity), None)

    def look_after(self, identity: Identity, pause_s: float) -> None:
        """Evaluate again after the pause, even without an event: a move may be overdue then."""
        self._looks.add_after(identity, pause_s)
