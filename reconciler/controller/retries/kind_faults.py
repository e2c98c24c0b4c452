"""Clusters that could not be read, and kinds that could not be listed: each is retried by itself, beside the rounds.

A cluster that is away is asked every few seconds, over a new connection: an old one may be open on our side alone. A
kind, or discovery if a kind of the store is not served, is asked for ever more rarely; when it answers, its cluster is
read as a whole. Source: design#promise-3; design#promise-6; design#promise-7: a bad cluster fails by itself;
design#missing-right; design#kind-not-read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from reconciler.api.clusters import ClusterObservation, Listed, Member, Read, Unlisted, UnlistedCause
from reconciler.api.fleet import Fleet
from reconciler.api.problem import NOWHERE, Problem, warning
from reconciler.api.refs import GVK
from reconciler.clock import Clock, within
from reconciler.containment import try_await
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import Reachable, answered_by, why_unread
from reconciler.controller.inbox import ClusterChanged, ClusterScope, Inbox, Published
from reconciler.controller.loop_state import State
from reconciler.controller.tasks import WorkQueue, end_tasks, start
from reconciler.kube.client import MemberCluster
from reconciler.ownership import fleet_names, our_label
from reconciler.planner import RIGHT_MISSING, not_listed

_PER_SECOND: Final = 20
"""So many clusters are asked in a second at most: where more than that are away, each is asked less often."""


class UnreachableClusters:
    """Names of clusters, by when each is asked next."""

    def __init__(self, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self.queue = WorkQueue[str](timing.AWAY_BACK_OFF, clock, jitter=jitter, per_second_max=_PER_SECOND)
        self._tasks: dict[str, asyncio.Task[str | None]] = {}
        self._reasons: dict[str, str] = {}
        """The reason that each gave when it was asked last."""

    def was_not_read(self, name: str) -> None:
        """A round went without the cluster; each time in a row doubles the pause."""
        if not self.queue.is_waiting(name) and name not in self._tasks:
            self.queue.requeue_rate_limited(name)

    async def reconnected(
        self, members: Mapping[str, MemberCluster], uids: Mapping[str, str], reachable: Reachable
    ) -> list[str]:
        """Ask due clusters; return those that answered with their identity (`uids`), or not for another reason now.

        The others come later. `reachable`: with the reasons that are reported.
        """
        self._reasons = {name: why for name, why in self._reasons.items() if name in self.queue}
        for name in self.queue.due():
            if name in members and name not in self._tasks:
                # Counted from when it is asked: how long it is silent then is no pause.
                self.queue.requeue_rate_limited(name)
                self._tasks[name] = start(_why_away(name, members, uids), f"asking {name}")
        if self._tasks:
            await asyncio.wait(self._tasks.values(), timeout=timing.SLOW_S, return_when=asyncio.FIRST_COMPLETED)
        ended = {name: task for name, task in self._tasks.items() if task.done()}
        self._tasks = {name: task for name, task in self._tasks.items() if name not in ended}
        back = []
        for name, task in ended.items():
            if name in self.queue and not task.cancelled():
                why, before, reported = task.result(), self._reasons.get(name), reachable.get(name)
                self._reasons[name] = why or ""
                if why is None or (why not in {"", before} and isinstance(reported, str) and why not in reported):
                    back.append(name)
        return back

    async def close(self) -> None:
        """Ask nobody any more."""
        tasks, self._tasks = self._tasks, {}
        await end_tasks(tasks.values())


async def _why_away(name: str, members: Mapping[str, MemberCluster], uids: Mapping[str, str]) -> str | None:
    """Return why a cluster does not answer; empty: it is another one. None: it answers."""
    answer = await try_await(within(members[name].identity(is_anew=True), timing.PROMPT_S))
    if (uid := answer.value) is None:
        return why_unread(name, answer.fault)
    others = {uids.get(other) for other in members if other != name}
    return None if uids.get(name, uid) == uid and uid not in others else ""


Subject = tuple[str, Listed | None]
"""A list of a cluster; None: what the cluster serves."""
Wanted = frozenset[tuple[GVK, bool]]
"""Kinds of the store, with whether they are wanted in a namespace."""


class _Served(NamedTuple):
    """The last discovery of a cluster."""

    kinds: Mapping[GVK, bool]
    silent: frozenset[str]

    def lacks(self, wanted: Wanted) -> bool:
        """Return whether a kind is not served as wanted, as far as known."""
        return any(self.kinds.get(gvk) != scope or gvk.api_version in self.silent for gvk, scope in wanted)


class KindFaults:
    """By cluster what could not be listed the last time that it was asked for."""

    def __init__(self, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        self._faults: dict[str, tuple[Unlisted, ...]] = {}
        self._observed: dict[str, tuple[Unlisted, ...]] = {}
        self.unwatched_kinds: dict[tuple[str, GVK], Problem] = {}
        """The problems of kinds that may not be watched."""
        self._served: dict[str, _Served] = {}
        self._wanted: tuple[Fleet | None, Wanted] = (None, frozenset())
        self._answered: set[Subject] = set()
        self._clock = clock
        self._queue = WorkQueue[Subject](timing.QUESTION_BACK_OFF, clock, jitter=jitter)
        self._tasks: dict[Subject, asyncio.Task[bool]] = {}

    def record_reading(self, members: Mapping[str, Member]) -> set[str]:
        """Record a round's reading; return the clusters to read as a whole: a kind newly fails there."""
        clusters: set[str] = set()
        for name, member in members.items():
            if isinstance(member, Read) and member.served:
                self._served[name] = _Served(member.served, member.silent)
            if isinstance(member, Read) and (member.unlisted or name in self._faults):
                known = self._faults.get(name, ())
                # Retried by itself, or with those of all namespaces.
                left = (one for one in known
                        if not (member.is_whole or {one.what, Listed(one.what.gvk)} & member.listed))  # fmt: skip
                fresh = {one.what.gvk for one in member.unlisted} - {one.what.gvk for one in known}
                if fresh and not member.is_whole:
                    clusters.add(name)
                self._put(name, {*left, *member.unlisted})
        return clusters

    def keep(self, names: frozenset[str]) -> None:
        """Forget clusters that have left the fleet."""
        self._faults = {name: faults for name, faults in self._faults.items() if name in names}
        self._observed = {name: faults for name, faults in self._observed.items() if name in names}
        self._served = {name: served for name, served in self._served.items() if name in names}
        self.unwatched_kinds = {key: problem for key, problem in self.unwatched_kinds.items() if key[0] in names}

    def unwatched(self, cluster: str, gvk: GVK, why: str) -> bool:
        """Record that a kind may not be watched (`why` empty: it may); return whether that is news."""
        was = self.unwatched_kinds.pop((cluster, gvk), None)
        if why:
            text = f"{gvk.kind} may not be watched, so its changes are seen at the next resync only: {why}"
            self.unwatched_kinds[cluster, gvk] = warning(NOWHERE, "", RIGHT_MISSING, text, cluster)
        return (was is None) is bool(why)

    def of(self, cluster: str) -> tuple[Unlisted, ...]:
        """Return the kinds that could not be listed there."""
        return self._faults.get(cluster, ())

    @property
    def unlisted_by_cluster(self) -> Mapping[str, tuple[Unlisted, ...]]:
        """By cluster what could not be listed, also while free capacity was looked at."""
        names = self._faults.keys() | self._observed.keys()
        return {name: faults for name in sorted(names) if (faults := (*self.of(name), *self._observed.get(name, ())))}

    def is_known(self, cluster: str, gvk: GVK) -> bool:
        """Return whether a kind could not be listed the last time."""
        return any(one.what.gvk == gvk for one in self.of(cluster))

    def heard(self, cluster: str, gvk: GVK) -> bool:
        """A kind was listed by somebody else. Whether it could not be the last time: the next round asks for it."""
        subjects = {(cluster, one.what) for one in self.of(cluster) if one.what == Listed(gvk)}
        self._answered |= subjects
        return bool(subjects)

    def at_fault(self) -> dict[str, dict[GVK, Unlisted]]:
        """By cluster the kinds that gave no answer, and none since: rounds do not ask for them."""
        return {
            name: {one.what.gvk: one for one in faults if self._is_silent(name, one)}
            for name, faults in self._faults.items()
        }

    def is_at_fault(self, cluster: str, gvk: GVK) -> bool:
        """Return whether a kind is among them."""
        return any(one.what.gvk == gvk and self._is_silent(cluster, one) for one in self.of(cluster))

    def _is_silent(self, cluster: str, one: Unlisted) -> bool:
        is_silent = one.cause in (UnlistedCause.NOT_READ, UnlistedCause.THROTTLED) and not one.what.namespace
        return is_silent and (cluster, one.what) not in self._answered

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Return their problems."""
        return tuple(not_listed(name, one) for name, faults in self._faults.items() for one in faults)

    def _put(self, name: str, faults: Iterable[Unlisted]) -> None:
        before, after = self.of(name), tuple(sorted(faults))
        if after:
            self._faults[name] = after
        else:
            self._faults.pop(name, None)
        self._answered -= {(name, one.what) for one in (*before, *after)}

    def observed(self, clusters: Mapping[str, ClusterObservation]) -> None:
        """Record kinds that could not be listed for free capacity: the observation itself retries them."""
        self._observed |= {name: cluster.unlisted for name, cluster in clusters.items() if cluster.reachable}

    async def watch(self, latest: Published[State], inbox: Inbox) -> None:
        """Retry for ever; nothing waits for it. A new answer of a cluster is sent."""
        try:
            while True:
                await self._clock.sleep(timing.TICK_S)
                now, again = latest.value, self.answered()
                if now.fleet is not None:
                    selector = our_label(fleet_names(now.fleet.settings))
                    again |= self.ask(answered_by(now.reachable), now.fleet, selector)
                for name in again:
                    inbox.send(ClusterChanged(name, ClusterScope.ANSWERS_AGAIN))
        finally:
            await self.close()

    def ask(self, members: Mapping[str, MemberCluster], fleet: Fleet, selector: str) -> set[str]:
        """Begin due questions to the clusters that answer; return those with faults of kinds that left the store."""
        again: set[str] = set()
        if self._wanted[0] is not fleet:
            wanted = frozenset((each.gvk, bool(each.identity.namespace)) for each in fleet.templates.values())
            left = {gvk for gvk, _ in self._wanted[1] - wanted}
            again = {name for name in self._faults if any(self.is_known(name, gvk) for gvk in left)}
            self._wanted = fleet, wanted
        subjects: dict[Subject, None] = {}
        for name in sorted(members):
            retried = [one for one in self.of(name) if one.cause is not UnlistedCause.NOT_SERVED]
            served = self._served.get(name)
            if len(retried) < len(self.of(name)) or (served is not None and served.lacks(self._wanted[1])):
                subjects[name, None] = None
            subjects |= {(name, one.what): None for one in retried}
        self._queue.keep(subjects.keys())
        for subject in subjects:
            if subject not in self._queue:
                self._queue.requeue_rate_limited(subject)
        for subject in self._queue.due():
            if subject in self._tasks or subject in self._answered:
                continue
            self._queue.requeue_rate_limited(subject)
            name, what = subject
            asking = self._is_answered(members[name], what, selector)
            self._tasks[subject] = start(asking, f"asking {name} for {what.gvk.kind if what is not None else 'kinds'}")
        return again

    def answered(self) -> set[str]:
        """The clusters in which something that was asked for again has been answered since."""
        ended = {subject: task for subject, task in self._tasks.items() if task.done()}
        for subject in ended:
            del self._tasks[subject]
        answered = {subject for subject, task in ended.items() if not task.cancelled() and task.result()}
        self._answered |= {subject for subject in answered if subject[1] is not None}
        return {name for name, _ in answered}

    async def close(self) -> None:
        """Cancel running retries."""
        tasks, self._tasks = self._tasks, {}
        await end_tasks(tasks.values())

    async def _is_answered(self, member: MemberCluster, what: Listed | None, selector: str) -> bool:
        """Return whether a list and its first object can be read, or discovery has changed.

        API servers answer lists from a cache: an object that is read by name shows that stored ones can be converted.
        """
        if what is None:
            now = (await try_await(member.discover(refresh=True))).value
            return now is not None and _Served(now.served(), now.stale) != self._served.get(member.name)
        listing = await try_await(member.list_metadata(what.gvk, namespace=what.namespace, label_selector=selector))
        if listing.value is None or not listing.value.objects:
            return listing.fault is None
        first = listing.value.objects[0].identity
        return (await try_await(member.find(what.gvk, first.namespace, first.name))).fault is None
