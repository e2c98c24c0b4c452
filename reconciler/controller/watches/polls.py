"""Polling instead of watches: each cluster is listed periodically, and each unhealthy copy read.

A list has only metadata. An object in another version than last seen is read in full, as an event; a missing one is
read by name by a round. A cluster must have its identity before anything of it is trusted.
Source: design#events-are-nudges; design#absent-from-the-list; Kubernetes API Concepts, resourceVersion of lists.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from functools import partial
from hashlib import sha256
from typing import Final

from reconciler.api.clusters import LiveObject
from reconciler.api.fleet import FleetSettings
from reconciler.api.refs import GVK, Copy, Identity, ResourceRef
from reconciler.clock import Clock, SharedSlots
from reconciler.containment import fault_fields, try_await
from reconciler.controller import timing
from reconciler.controller.event_handler import EventHandler
from reconciler.controller.tasks import WorkQueue
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.watches.handlers import ClusterTasks, PerClient
from reconciler.errors import ClusterUnreachable, Forbidden, KindFault, MemberClusterError, ObjectNotFound
from reconciler.kube.client import MemberCluster
from reconciler.kube.watch_stream import WatchEvent

_PARTS: Final = 2**64
_AT_ONCE: Final = 16
"""So many clusters are listed side by side, however many are due."""
_BY_NAME_MAX: Final = 8
"""Above so many objects of one kind, one list is cheaper than a read of each."""


class Polls(PerClient["ClusterPolls"]):
    """The polled clusters, and what they share. One task begins due polls; each cluster is asked by itself."""

    def __init__(self, handler: EventHandler, clock: Clock) -> None:
        """No cluster is listed before `keep`."""
        super().__init__(lambda member: ClusterPolls(member, self))
        self.handler, self.clock, self.interval_s = handler, clock, float(FleetSettings().resync_s)
        self.looks, self.slots = PollSchedule(clock), SharedSlots(_AT_ONCE, timing.SLOW_S)
        self.transitions = Transitions()

    def every(self, interval_s: float) -> None:
        """List each cluster so often."""
        if interval_s != self.interval_s:
            self.interval_s = interval_s
            for polled in self.clusters.values():
                polled.turn.every(interval_s, self.clock.monotonic_s())

    async def run(self) -> None:
        """Begin due polls for ever. None are due without clusters."""
        while True:
            await self.clock.sleep(timing.TICK_S)
            if self.clusters:
                self._begin_due(self.clock.monotonic_s())

    def _begin_due(self, now_s: float) -> None:
        hurried = self.handler.hurried()
        for name, polled in sorted(self.clusters.items()):
            if polled.turn.take(now_s, is_hurried=name in hurried):
                polled.begin("list", partial(polled.poll, polled.list), f"listing {name}")
        copies: defaultdict[str, list[Identity]] = defaultdict(list)
        free = {name for name, polled in self.clusters.items() if not polled.is_running("look")}
        for cluster, identity in self.looks.due(copy for copy in self.handler.unhealthy() if copy[0] in free):
            copies[cluster].append(identity)
        for name, identities in copies.items():
            polled = self.clusters[name]
            look = partial(polled.poll, partial(polled.read_in_full, identities))
            polled.begin("look", look, f"looking at {name}")


class ClusterPolls(ClusterTasks[str]):
    """The polls of one cluster over one client: at most one list, and one look at single objects, at a time."""

    def __init__(self, member: MemberCluster, shared: Polls) -> None:
        super().__init__(member)
        self.turn = ClusterPollTime(member.name, shared.interval_s, shared.clock.monotonic_s())
        self._shared, self._handler = shared, shared.handler

    async def poll(self, ask: Callable[[], Awaitable[None]]) -> None:
        """Run one poll within the error boundary of its cluster: a failure is no news, and the next poll comes."""
        name, transitions = self.member.name, self._shared.transitions
        async with self._shared.slots.slot():
            answer = await try_await(ask())
        if isinstance(answer.fault, TimeoutError):
            self._handler.trouble(name, ClusterUnreachable(name, f"no answer within {timing.PROMPT_S:g} s"))
        elif isinstance(answer.fault, MemberClusterError):
            self._handler.trouble(name, answer.fault)
        elif answer.fault is not None:
            text = "a cluster could not be polled by a fault of this program; it is tried again at its next turn"
            transitions.fault(name, answer.fault, text, **fault_fields(name))
        else:
            transitions.leave(name, "a cluster is polled again", event="PollMended", cluster=name)

    async def list(self) -> None:
        """Compare all of our objects in the cluster with the last seen ones."""
        member, kinds = self.member, self.kinds
        async with asyncio.timeout(timing.PROMPT_S):
            is_known = await self._handler.is_as_known(member)
        if not is_known:
            self._handler.doubted(member.name)
            return
        discovery = await member.discover(refresh=True)
        served = discovery.served()
        if not self._handler.is_served_as_known(member.name, served, discovery.stale):
            self._handler.doubted(member.name)
        # One after the other: a list is large, and nobody waits for it.
        for gvk in sorted(gvk for gvk in kinds if gvk in served):
            await self._list_kind(gvk)
        self._handler.answered(member.name)

    async def _list_kind(self, gvk: GVK) -> None:
        name, handler = self.member.name, self._handler
        handler.list_requested(name, gvk)
        try:
            listing = await self.member.list_metadata(gvk, label_selector=self.selector, is_cached=True)
        except Forbidden:
            # What was applied can be read by name; of all else nothing is known, and nothing follows.
            handler.unlisted(name, gvk)
            refs = [_ref(identity, gvk) for identity, kind in handler.applied(name).items() if kind == gvk]
            await asyncio.gather(*map(self._read, refs))
            return
        except KindFault:
            handler.unlisted(name, gvk)
            return
        handler.as_of(name, gvk, listing.resource_version)
        unseen = handler.polled(name, gvk, listing.objects)
        await self._read_all([_ref(identity, gvk) for identity in sorted(unseen)])

    async def read_in_full(self, identities: Collection[Identity]) -> None:
        """Read these in full."""
        applied = self._handler.applied(self.member.name)
        await self._read_all([_ref(identity, applied[identity]) for identity in identities if identity in applied])

    async def _read_all(self, refs: Iterable[ResourceRef]) -> None:
        by_kind: defaultdict[GVK, list[ResourceRef]] = defaultdict(list)
        for ref in refs:
            by_kind[ref.gvk].append(ref)
        for gvk, wanted in sorted(by_kind.items()):
            left: Iterable[ResourceRef] = wanted
            if len(wanted) > _BY_NAME_MAX:
                left = await self._read_list(gvk, {ref.identity: ref for ref in wanted})
            await asyncio.gather(*map(self._read, left))

    async def _read_list(self, gvk: GVK, wanted: Mapping[Identity, ResourceRef]) -> Iterable[ResourceRef]:
        try:
            listing = await self.member.list_objects(gvk, label_selector=self.selector)
        except Forbidden:
            return wanted.values()
        except KindFault:
            return []
        there = [live for live in listing.objects if live.identity in wanted]
        for live in there:
            self._saw(live)
        return [wanted[identity] for identity in sorted(wanted.keys() - {live.identity for live in there})]

    async def _read(self, ref: ResourceRef) -> None:
        try:
            live = await self.member.get(ref.gvk, ref.namespace, ref.name)
        except ObjectNotFound:
            self._handler.missed(self.member.name, ref.identity)
        except KindFault:
            return
        else:
            self._saw(live)

    def _saw(self, live: LiveObject) -> None:
        self._shared.looks.saw((self.member.name, live.identity), live.resource_version)
        self._handler.object_changed(self.member.name, WatchEvent(type="MODIFIED", object=live))


class PollSchedule:
    """The next look at each copy: a changing one every few seconds, an unchanged one ever more rarely."""

    def __init__(self, clock: Clock) -> None:
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


class ClusterPollTime:
    """The turn of one cluster, once in an interval, at a moment made of its name. All times are monotonic seconds."""

    def __init__(self, cluster: str, interval_s: float, now_s: float) -> None:
        self._cluster, self._last_s = cluster, now_s
        self.every(interval_s, now_s)

    def every(self, interval_s: float, now_s: float) -> None:
        """Have the turn come so often from now on."""
        self._interval_s, self._next_s = interval_s, moment_after(self._cluster, interval_s, now_s)

    def take(self, now_s: float, *, is_hurried: bool) -> bool:
        """Return whether the turn has come, once. `is_hurried`: it comes every `timing.HURRY_S` at least."""
        if now_s < self._next_s and not (is_hurried and now_s >= self._last_s + timing.HURRY_S):
            return False
        self._last_s = now_s
        if now_s >= self._next_s:
            self._next_s = moment_after(self._cluster, self._interval_s, now_s)
        return True


def moment_after(cluster: str, interval_s: float, now_s: float) -> float:
    """The first moment after now at which it is the cluster's turn: at most an interval away."""
    part = int.from_bytes(sha256(cluster.encode()).digest()[:8], "big") / _PARTS
    wait_s = (part * interval_s - now_s) % interval_s
    return now_s + (wait_s or interval_s)


def _ref(identity: Identity, gvk: GVK) -> ResourceRef:
    return ResourceRef(gvk, identity.namespace, identity.name)
