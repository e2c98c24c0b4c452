"""The caches that rounds share: synced versions, the retry queue, and those of other modules; collection of garbage.

An event with exactly the synced version of a copy is an echo of our own write.

A fleet of 10,000 workloads is more than a million objects, which the collector would walk through again and again. So
garbage is freed while the process is idle, and live objects are frozen; a thorough collection now and then finds frozen
cycles that died. Memory of a round over everything is returned to the system.
"""

from __future__ import annotations

import ctypes
import gc
import os
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from reconciler.api.clusters import LiveObject, NotRead, Read
from reconciler.api.plan import Action, Change, Engine
from reconciler.api.refs import Copy, Identity
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.inbox import Inbox
from reconciler.controller.retries.conflicts import WriteConflicts
from reconciler.controller.retries.health_cache import HealthCache
from reconciler.controller.retries.kind_faults import KindFaults, UnreachableClusters
from reconciler.controller.retries.restores import Restores, VersionDecrease
from reconciler.controller.retries.workers import ClusterWorkers
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.tasks import WorkQueue
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.planner import Round, is_held_by_guard

_GROWN_BYTES: Final = 8 * 1024 * 1024
"""Free memory is given back when the process has grown by so much since the last time: that costs milliseconds."""

_STATM = Path("/proc/self/statm")


def resident_bytes() -> int:
    """The memory of this process; 0 where the system does not say it."""
    try:
        return int(_STATM.read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0


class Garbage:
    """The times of collections. All times are monotonic seconds."""

    def __init__(self) -> None:
        self._least_bytes = 0
        self.is_due = False
        """There may be garbage."""
        self._thorough_s: float | None = None

    def idle(self, now_s: float) -> None:
        """Nobody waits: collect."""
        if not self.is_due:
            return
        self.is_due = False
        if self._thorough_s is None or now_s >= self._thorough_s:
            self._thorough_s = now_s + timing.THOROUGH_S
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        if resident_bytes() > self._least_bytes + _GROWN_BYTES:
            # The C library's heap, where it has a function for that (glibc).
            with suppress(OSError, AttributeError):
                ctypes.CDLL(None).malloc_trim(0)
            self._least_bytes = resident_bytes()


class SyncedVersions:
    """(cluster, identity) to the version that was found as wanted."""

    def __init__(self) -> None:
        self._versions: dict[str, dict[Identity, tuple[str, str]]] = {}
        self._since_list: dict[str, dict[tuple[str, str], set[Identity]]] = {}

    def list_begins(self, cluster: str, group_kind: tuple[str, str]) -> None:
        """Begin a list: versions of the kind synced from now on may be missing in it."""
        self._since_list.setdefault(cluster, {})[group_kind] = set()

    def confirm(self, cluster: str, identity: Identity, uid: str, resource_version: str) -> None:
        """The copy is as wanted in this version."""
        self._versions.setdefault(cluster, {})[identity] = (uid, resource_version)
        fresh = self._since_list.get(cluster, {}).get(identity[:2])
        if fresh is not None:
            fresh.add(identity)

    def invalidate(self, cluster: str, identity: Identity) -> None:
        """Nothing is believed of the copy any more."""
        self._versions.get(cluster, {}).pop(identity, None)

    def forget(self, cluster: str) -> None:
        """Nothing is believed of a cluster any more."""
        self._versions.pop(cluster, None)
        self._since_list.pop(cluster, None)

    def mark_synced(self, planned: Round, snapshot: FleetSnapshot) -> None:
        """Mark objects that were read and need no change as synced."""
        due = {change.copy for change in planned.plan.changes}
        for name, member in snapshot.members.items():
            if isinstance(member, NotRead):
                self.forget(name)
            elif isinstance(member, Read):
                for identity, live in member.objects.items():
                    if (name, identity) not in due:
                        self.confirm(name, identity, live.uid, live.resource_version)

    def mark_written(self, results: Iterable[ChangeResult]) -> None:
        """Mark written objects, also altered ones, as synced in the acknowledged version: that is no news."""
        for result in results:
            change = result.change
            if (result.error and not result.altered) or change.action in (Action.DELETE, Action.RELEASE):
                self.invalidate(change.cluster, change.identity)
            else:
                self.confirm(change.cluster, change.identity, result.uid, result.resource_version)

    def holds(self, cluster: str, live: LiveObject) -> bool:
        """Return whether the object is in its synced version."""
        return self._versions.get(cluster, {}).get(live.identity) == (live.uid, live.resource_version)

    def doubtful(self, cluster: str, group_kind: tuple[str, str], listed: Iterable[LiveObject]) -> set[Identity]:
        """Return the contradictions of a complete list of a kind: other versions, unknown objects, missing ones.

        An object synced since the list was requested is left out if the list is older; the watch reports the rest.
        """
        there = {live.identity: live for live in listed}
        believed = self._versions.get(cluster, {})
        gone = {identity for identity in believed if identity[:2] == group_kind and identity not in there}
        contrary = gone | {identity for identity, live in there.items() if not self.holds(cluster, live)}
        fresh = self._since_list.get(cluster, {}).pop(group_kind, set())
        # For newer objects the list is the only report: the watch begins behind it.
        return {
            identity
            for identity in contrary
            if identity not in fresh or (identity in there and self._is_newer(cluster, there[identity]))
        }

    def _is_newer(self, cluster: str, live: LiveObject) -> bool:
        """Return whether it is later than the synced version. Source: Kubernetes, versions are numbers that grow."""
        _, believed = self._versions.get(cluster, {}).get(live.identity, ("", ""))
        is_number = believed.isdecimal() and live.resource_version.isdecimal()
        return not is_number or int(live.resource_version) > int(believed)


class RetryQueue:
    """Waiting changes, by identity, and retries, by copy."""

    def __init__(self, clock: Clock) -> None:
        self.waiting: set[Identity] = set()
        """Objects held for another reason than a guard: something in the clusters, or an order."""
        self.confirming: set[Identity] = set()
        """Guarded objects: every round evaluates all of them, or the digest to confirm would change."""
        self.retries = WorkQueue[Copy](timing.RETRY_BACK_OFF, clock)
        """Copies to write again; one that is being written is taken out until its results are in."""
        self._paced: dict[Copy, str] = {}
        """The digest of what failed and is not written before its pause is over."""
        self._failed: set[Copy] = set()
        """Those of the retries whose last write was sent and failed; the others could not be sent, or are put off."""
        self.looks = WorkQueue[Identity](timing.RETRY_BACK_OFF, clock)
        """Objects to evaluate again even without an event: a move may be overdue then."""
        self._replacing: set[Copy] = set()

    @property
    def held(self) -> frozenset[Identity]:
        """Return objects that wait for anything, anywhere."""
        return frozenset({*self.waiting, *self.confirming})

    def waits(self, cluster: str, identity: Identity) -> bool:
        """Return whether a change waits for something in the clusters, or is retried in this one."""
        return identity in self.waiting or (cluster, identity) in self.retries

    def is_asked_first(self, change: Change) -> bool:
        """Tell whether a dry run comes before the change: its last write failed, or it has to be a replacement.

        While its pause lasts, nothing is asked: behind a webhook that hangs each question would hold up the round.
        """
        copy = change.copy
        return copy in self._replacing or (copy in self._failed and not self.is_too_early(change))

    def follow(
        self,
        concerned: Collection[Identity],
        changes: Iterable[Change],
        pending: Collection[Copy],
        is_asked: Callable[[str, Identity], bool],
    ) -> None:
        """Replace entries of evaluated objects. `pending`: failed or being written; `is_asked`: the copy was read."""
        for identity in concerned:
            self.waiting.discard(identity)
            self.confirming.discard(identity)
            self.looks.forget(identity)
        for copy in [copy for copy in self.retries.keys if copy not in pending and is_asked(*copy)]:
            self.written(*copy)
        self._replacing = {copy for copy in self._replacing if not is_asked(*copy)}
        for change in changes:
            if change.held is not None and change.action is Action.REPLACE and change.engine is Engine.SERVER_SIDE:
                self._replacing.add(change.copy)
            if change.held is not None:
                (self.confirming if is_held_by_guard(change) else self.waiting).add(change.identity)

    def retry(self, change: Change, *, is_paced: bool, is_sent: bool = True) -> None:
        """Try again; each failure in a row doubles the pause.

        `is_paced`: whatever is seen of the object before that, the same is not written earlier: it would fail again.
        `is_sent`: it was tried; False: it could not even be sent, which says nothing of the change.
        """
        copy = change.copy
        self.retries.requeue_rate_limited(copy)
        self._paced.pop(copy, None)
        (self._failed.add if is_sent else self._failed.discard)(copy)
        if is_paced:
            self._paced[copy] = change.manifest_digest

    def is_too_early(self, change: Change) -> bool:
        """Return whether the same change has failed, and its pause is not over."""
        copy = change.copy
        return self._paced.get(copy) == change.manifest_digest and self.retries.is_waiting(copy)

    def forgive(self, clusters: Collection[str]) -> None:
        """Let failed changes be written at the next look: these clusters are back, or a person asks for it."""
        self._paced = {copy: digest for copy, digest in self._paced.items() if copy[0] not in clusters}

    def written(self, cluster: str, identity: Identity) -> None:
        """It was written."""
        self.retries.forget((cluster, identity))
        self._failed.discard((cluster, identity))
        self._paced.pop((cluster, identity), None)

    def requeue_change(self, cluster: str, identity: Identity, pause_s: float) -> None:
        """Look again after the pause."""
        self.retries.requeue_after((cluster, identity), pause_s)
        self._paced.pop((cluster, identity), None)


class RoundCaches:
    """The shared caches of the control loop's steps."""

    def __init__(self, clock: Clock, inbox: Inbox) -> None:
        """Nothing is known. `inbox`: is sent what comes to be known beside the rounds."""
        self.workers, self.healths = ClusterWorkers(inbox, clock), HealthCache(inbox)
        self.synced, self.fights, self.restores = SyncedVersions(), WriteConflicts(), Restores()
        self.unfinished = RetryQueue(clock)
        self.doubted: set[str] = set()
        """Clusters of which a watch or a poll failed, and that no round has asked since whether they answer."""
        self.contacts: dict[str, str] = {}
        """The time of the last answer of each cluster (RFC 3339)."""
        self.away, self.kind_faults = UnreachableClusters(clock), KindFaults(clock)

    def suspect_older(self, cluster: str, objects: Iterable[LiveObject]) -> None:
        """Suspect a cluster of having been restored if one of the objects is older than seen before."""
        for live, version in self.healths.older(cluster, objects):
            self.restores.suspect(cluster, VersionDecrease(live.gvk, *live.identity[2:], version))
