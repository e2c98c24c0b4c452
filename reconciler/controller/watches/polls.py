"""Polling instead of watches: each cluster is listed periodically, and each unhealthy copy read.

A list has only metadata. An object in another version than last seen is read in full, and handled as an event of a
watch would be; a missing one is read by name by a round, so that a list that lacks items makes nothing absent. A
cluster must have its identity before anything of it is trusted.

Source: design#events-are-nudges; design#absent-from-the-list; Kubernetes API Concepts, resourceVersion of lists.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from hashlib import sha256
from typing import Final, Protocol

from msgspec import Struct

from reconciler.api.clusters import LiveObject
from reconciler.api.fleet import FleetSettings
from reconciler.api.refs import GVK, Identity, ResourceRef
from reconciler.clock import Clock
from reconciler.containment import fault_fields, try_await
from reconciler.controller import timing
from reconciler.controller.tasks import ended, start
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.work_queue import WorkQueue
from reconciler.errors import ClusterUnreachable, Forbidden, KindFault, MemberClusterError, ObjectNotFound
from reconciler.kube.client import MemberCluster
from reconciler.kube.connection.shared_slots import SharedSlots
from reconciler.kube.watch_stream import WatchEvent

log = logging.getLogger("reconciler")

Copy = tuple[str, Identity]
"""An object in a cluster."""

_PARTS: Final = 2**64
_AT_ONCE: Final = 16
"""So many clusters are listed side by side, however many are due."""
_BY_NAME_MAX: Final = 8
"""Above so many objects of one kind, one list is cheaper than a read of each."""


class PollJudge(Protocol):
    """The event handler of polls, with the earlier observations."""

    async def is_as_known(self, member: MemberCluster) -> bool:
        """Return whether a cluster has its recorded identity, and nobody else owns the fleet in it."""
        ...

    def is_served_as_known(self, cluster: str, served: Collection[GVK], silent: Collection[str]) -> bool:
        """Return whether a cluster serves the same as before. `silent`: group versions without an answer."""
        ...

    def doubted(self, cluster: str) -> None:
        """Everything in a cluster has to be looked at."""
        ...

    def answered(self, cluster: str) -> None:
        """A cluster was listed to the end."""
        ...

    def asked(self, cluster: str, gvk: GVK) -> None:
        """A list is asked for."""
        ...

    def unlisted(self, cluster: str, gvk: GVK) -> None:
        """A kind could not be listed."""
        ...

    def as_of(self, cluster: str, gvk: GVK, version: str) -> None:
        """A list is as of this version."""
        ...

    def polled(self, cluster: str, gvk: GVK, objects: tuple[LiveObject, ...]) -> Collection[Identity]:
        """Return the objects of a complete metadata list to read in full."""
        ...

    def seen(self, cluster: str, event: WatchEvent) -> None:
        """An object was read in full."""
        ...

    def missed(self, cluster: str, identity: Identity) -> None:
        """An object was read by name, and is not there."""
        ...

    def trouble(self, cluster: str, error: MemberClusterError) -> None:
        """A cluster does not answer."""
        ...

    def applied(self, cluster: str) -> Mapping[Identity, GVK]:
        """Return the applied objects of a cluster."""
        ...

    def unhealthy(self) -> Iterable[Copy]:
        """Yield applied, unhealthy copies in reachable clusters."""
        ...

    def hurried(self) -> Collection[str]:
        """The clusters in which a gate of a Rollout is being judged."""
        ...


class _PolledState(Struct, frozen=True):
    member: MemberCluster
    kinds: frozenset[GVK]
    selector: str


class Polls:
    """The polled clusters. One task begins due polls; each cluster is asked by itself."""

    def __init__(self, judge: PollJudge, clock: Clock) -> None:
        """No cluster is listed before `keep`."""
        self._judge = judge
        self._clock = clock
        self._kept: dict[str, _PolledState] = {}
        self._turns, self._looks = PollSchedule(FleetSettings().resync_s), Looks(clock)
        self._slots = SharedSlots(_AT_ONCE, timing.SLOW_S)
        self._lists: dict[str, asyncio.Task[None]] = {}
        self._reads: dict[str, asyncio.Task[None]] = {}
        self._told = Transitions(log)

    def every(self, interval_s: float) -> None:
        """List each cluster so often."""
        self._turns.every(interval_s, self._clock.monotonic_s())

    def keep(self, member: MemberCluster, kinds: frozenset[GVK], selector: str) -> None:
        """List exactly these kinds of a cluster from now on; it was read just now."""
        kept = self._kept.get(member.name)
        if kept is not None and kept.member is not member:
            self.drop(member.name)  # What is asked may be asked of another cluster.
        self._kept[member.name] = _PolledState(member, kinds, selector)
        self._turns.begin(member.name, self._clock.monotonic_s())

    def drop(self, cluster: str) -> None:
        """Ask a cluster nothing any more."""
        self._kept.pop(cluster, None)
        self._turns.drop(cluster)
        for tasks in (self._lists, self._reads):
            if cluster in tasks:
                tasks.pop(cluster).cancel()

    async def close(self) -> None:
        """Cancel running polls."""
        tasks = [*self._lists.values(), *self._reads.values()]
        self._kept.clear()
        await ended(tasks)

    async def run(self) -> None:
        """Begin due polls for ever. None are due without clusters."""
        while True:
            await self._clock.sleep(timing.TICK_S)
            if self._kept:
                self._begin_due(self._clock.monotonic_s())

    def _begin_due(self, now_s: float) -> None:
        self._lists = {name: task for name, task in self._lists.items() if not task.done()}
        self._reads = {name: task for name, task in self._reads.items() if not task.done()}
        for name in self._turns.due(now_s, self._judge.hurried()):
            if name not in self._lists:
                kept = self._kept[name]
                self._lists[name] = start(self._asked(kept, partial(self._list, kept)), f"listing {name}")
        copies: defaultdict[str, list[Identity]] = defaultdict(list)
        free = self._kept.keys() - self._reads.keys()
        for cluster, identity in self._looks.due(copy for copy in self._judge.unhealthy() if copy[0] in free):
            copies[cluster].append(identity)
        for name, identities in copies.items():
            kept = self._kept[name]
            looking = self._asked(kept, partial(self._look, kept, identities))
            self._reads[name] = start(looking, f"looking at {name}")

    async def _asked(self, kept: _PolledState, ask: Callable[[], Awaitable[None]]) -> None:
        """Run one poll within the error boundary of its cluster: a failure is no news, and the next poll comes."""
        name = kept.member.name
        async with self._slots.slot():
            asked = await try_await(ask())
        if isinstance(asked.fault, TimeoutError):
            self._judge.trouble(name, ClusterUnreachable(name, f"no answer within {timing.PROMPT_S:g} s"))
        elif isinstance(asked.fault, MemberClusterError):
            self._judge.trouble(name, asked.fault)
        elif asked.fault is not None:
            text = "a cluster could not be polled by a fault of this program; it is tried again at its next turn"
            self._told.fault(name, asked.fault, text, **fault_fields(name))
        else:
            self._told.leave(name, "a cluster is polled again", event="PollMended", cluster=name)

    async def _list(self, kept: _PolledState) -> None:
        """Compare all of our objects in a cluster with the last seen ones."""
        member = kept.member
        async with asyncio.timeout(timing.PROMPT_S):
            is_known = await self._judge.is_as_known(member)
        if not is_known:
            self._judge.doubted(member.name)
            return
        discovery = await member.discover(refresh=True)
        served = discovery.served()
        if not self._judge.is_served_as_known(member.name, served, discovery.stale):
            self._judge.doubted(member.name)
        # One after the other: a list is large, and nobody waits for it.
        for gvk in sorted(gvk for gvk in kept.kinds if gvk in served):
            await self._list_kind(kept, gvk)
        self._judge.answered(member.name)

    async def _list_kind(self, kept: _PolledState, gvk: GVK) -> None:
        member, judge = kept.member, self._judge
        judge.asked(member.name, gvk)
        try:
            listing = await member.list_metadata(gvk, label_selector=kept.selector, is_cached=True)
        except Forbidden:
            # What was applied can be read by name; of all else nothing is known, and nothing follows.
            judge.unlisted(member.name, gvk)
            applied = judge.applied(member.name).items()
            refs = [_ref(identity, gvk) for identity, found in applied if found == gvk]
            await asyncio.gather(*(self._read(member, ref) for ref in refs))
            return
        except KindFault:
            judge.unlisted(member.name, gvk)
            return
        judge.as_of(member.name, gvk, listing.resource_version)
        unseen = judge.polled(member.name, gvk, listing.objects)
        await self._read_all(kept, [_ref(identity, gvk) for identity in sorted(unseen)])

    async def _look(self, kept: _PolledState, identities: Collection[Identity]) -> None:
        applied = self._judge.applied(kept.member.name)
        refs = [_ref(identity, applied[identity]) for identity in identities if identity in applied]
        await self._read_all(kept, refs)

    async def _read_all(self, kept: _PolledState, refs: Iterable[ResourceRef]) -> None:
        """Read these in full: one by one, or where there are many of a kind, those of its list first."""
        by_kind: defaultdict[GVK, list[ResourceRef]] = defaultdict(list)
        for ref in refs:
            by_kind[ref.gvk].append(ref)
        for gvk, wanted in sorted(by_kind.items()):
            left = wanted
            if len(wanted) > _BY_NAME_MAX:
                left = await self._read_list(kept, gvk, {ref.identity: ref for ref in wanted})
            await asyncio.gather(*(self._read(kept.member, ref) for ref in left))

    async def _read_list(
        self, kept: _PolledState, gvk: GVK, wanted: Mapping[Identity, ResourceRef]
    ) -> list[ResourceRef]:
        """Those that a list of the kind did not show."""
        try:
            listing = await kept.member.list_objects(gvk, label_selector=kept.selector)
        except Forbidden:
            return list(wanted.values())
        except KindFault:
            return []
        there = [live for live in listing.objects if live.identity in wanted]
        for live in there:
            self._saw(kept.member.name, live)
        return [wanted[identity] for identity in sorted(wanted.keys() - {live.identity for live in there})]

    async def _read(self, member: MemberCluster, ref: ResourceRef) -> None:
        try:
            live = await member.get(ref.gvk, ref.namespace, ref.name)
        except ObjectNotFound:
            self._judge.missed(member.name, ref.identity)
        except KindFault:
            return
        else:
            self._saw(member.name, live)

    def _saw(self, cluster: str, live: LiveObject) -> None:
        self._looks.saw((cluster, live.identity), live.resource_version)
        self._judge.seen(cluster, WatchEvent(type="MODIFIED", object=live))


class Looks:
    """The next look at each copy: a changing one every few seconds, an unchanged one ever more rarely."""

    def __init__(self, clock: Clock) -> None:
        """Everything is well."""
        self._queue = WorkQueue[Copy](timing.QUESTION_BACK_OFF, clock)
        self._versions: dict[Copy, str] = {}

    def due(self, ailing: Iterable[Copy]) -> list[Copy]:
        """Those of the copies that are not well whose time has come, each once; all others are forgotten."""
        unwell = dict.fromkeys(ailing)
        self._queue.keep(unwell.keys())
        self._versions = {copy: version for copy, version in self._versions.items() if copy in unwell}
        due = self._queue.due()
        for copy in (*due, *(copy for copy in unwell if copy not in self._queue)):
            self._queue.requeue_rate_limited(copy)
        return due

    def saw(self, copy: Copy, version: str) -> None:
        """A look showed a copy in this version; in another one than before, it goes on, and is looked at soon again."""
        if copy in self._queue and self._versions.get(copy) != version:
            self._versions[copy] = version
            self._queue.forget(copy)
            self._queue.requeue_rate_limited(copy)


class _ScheduledPoll(Struct):
    last_s: float
    next_s: float


class PollSchedule:
    """The next turn of each cluster, once in an interval. All times are monotonic seconds.

    Each has a moment of its own, made of its name: clusters are spread over the interval, the same after every start.
    """

    def __init__(self, interval_s: float) -> None:
        """No cluster has a turn yet."""
        self._interval_s = interval_s
        self._turns: dict[str, _ScheduledPoll] = {}

    def begin(self, cluster: str, now_s: float) -> None:
        """A cluster has turns from now on. It was read just now; one that has turns keeps them."""
        if cluster not in self._turns:
            self._turns[cluster] = _ScheduledPoll(now_s, moment_after(cluster, self._interval_s, now_s))

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
        """The clusters whose turn has come, each once. `hurried`: their turns come every `timing.HURRY_S` at least."""
        due = [
            name
            for name, turn in sorted(self._turns.items())
            if now_s >= turn.next_s or (name in hurried and now_s >= turn.last_s + timing.HURRY_S)
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


def _ref(identity: Identity, gvk: GVK) -> ResourceRef:
    return ResourceRef(gvk, identity.namespace, identity.name)
