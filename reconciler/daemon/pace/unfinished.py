"""What rounds leave for later ones: changes that wait, changes that a person must confirm, and those to try again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from math import inf

from msgspec import Struct
from msgspec.structs import replace

from reconciler.daemon.pace.back_off import BackOff
from reconciler.model.plan import Action, Change, Engine
from reconciler.model.refs import Identity
from reconciler.stages.deletion import is_held_by_guard

PAUSES = BackOff(least_s=2.0, most_s=300.0)


Copy = tuple[str, Identity]
"""An object in a cluster: what is tried again."""


class _Retry(Struct, frozen=True):
    """When a copy is looked at again, and from when on what failed may be written again.

    `due_s`: endless while it is being written. `tried`: the digest of what failed; None: whatever a look finds due may
    be written.
    """

    due_s: float
    pause_s: float = 0.0
    tried: str | None = None
    not_before_s: float = 0.0


class Unfinished:
    """What waits, by identity, and what is tried again, by copy. All times are monotonic seconds."""

    def __init__(self) -> None:
        """Nothing is left."""
        self._waiting: set[Identity] = set()
        self._confirming: set[Identity] = set()
        self._retries: dict[Copy, _Retry] = {}
        self._looks: dict[Identity, float] = {}
        self._replacing: set[Copy] = set()

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

    def is_asked_first(self, change: Change, now_s: float) -> bool:
        """Tell whether a dry run comes before the change: its last write failed, or it has to be a replacement.

        Else an update that no table knows to be impossible would fail in every round. While its pause lasts, nothing is
        sent, and nothing asked: behind a webhook that hangs each question would hold up the round.
        """
        copy = (change.cluster, change.identity)
        return copy in self._replacing or (copy in self._retries and not self.is_too_early(change, now_s))

    def is_held(self, identity: Identity) -> bool:
        """Whether a change waits for something in the clusters."""
        return identity in self._waiting

    def next_retry_s(self) -> float:
        """When something is tried again."""
        retries = (retry.due_s for retry in self._retries.values())
        return min((*retries, *self._looks.values()), default=inf)

    def due(self, now_s: float) -> list[Identity]:
        """What is to be looked at again now, wherever it is."""
        return sorted(identity for identity, due_s in self._looks.items() if now_s >= due_s)

    def due_copies(self, now_s: float) -> list[Copy]:
        """What is to be tried again now."""
        return sorted(copy for copy, retry in self._retries.items() if now_s >= retry.due_s)

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
        self._replacing = {copy for copy in self._replacing if not is_asked(*copy)}
        for change in changes:
            if change.held is not None and change.action is Action.REPLACE and change.engine is Engine.SERVER_SIDE:
                self._replacing.add((change.cluster, change.identity))
            if change.held is not None:
                (self._confirming if is_held_by_guard(change) else self._waiting).add(change.identity)

    def retry(self, change: Change, now_s: float, *, is_paced: bool) -> None:
        """Try again; each failure in a row doubles the pause.

        `is_paced`: whatever is seen of the object before that, the same is not written earlier: it would fail again.
        """
        copy = (change.cluster, change.identity)
        before = self._retries.get(copy)
        pause_s = PAUSES.after(before.pause_s if before is not None else 0.0)
        tried = change.manifest_digest if is_paced else None
        self._retries[copy] = _Retry(now_s + pause_s, pause_s, tried, now_s + pause_s)

    def is_too_early(self, change: Change, now_s: float) -> bool:
        """Whether just this failed, and its pause is not over."""
        retry = self._retries.get((change.cluster, change.identity))
        return retry is not None and now_s < retry.not_before_s and retry.tried == change.manifest_digest

    def forgive(self, clusters: Collection[str]) -> None:
        """What failed may be written as soon as it is looked at: these clusters are back, or a person asks for it."""
        for copy, retry in self._retries.items():
            if copy[0] in clusters:
                self._retries[copy] = replace(retry, tried=None)

    def is_tried(self, cluster: str, identity: Identity) -> None:
        """It is being written: no other try is due before its results are in, and the pauses go on from there."""
        if (cluster, identity) in self._retries:
            self._retries[cluster, identity] = replace(self._retries[cluster, identity], due_s=inf)

    def made(self, cluster: str, identity: Identity) -> None:
        """It was written."""
        self._retries.pop((cluster, identity), None)

    def put_off(self, cluster: str, identity: Identity, now_s: float, pause_s: float) -> None:
        """Look again after the pause."""
        self._retries[cluster, identity] = _Retry(now_s + pause_s, pause_s)

    def read_at(self, identity: Identity, due_s: float) -> None:
        """Look again at that time, though nothing tells of it: a move may have waited for too long then."""
        self._looks[identity] = min(due_s, self._looks.get(identity, due_s))
