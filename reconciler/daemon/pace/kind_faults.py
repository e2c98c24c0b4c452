"""Kinds that could not be listed: told until a later list is answered, and asked for anew now and then.

A kind in a cluster fails by itself. Rounds do not ask again for one that gave no answer, so that nothing in its cluster
waits for it; it is asked for beside them, ever more rarely, and when it answers, its cluster is looked at as a whole.
So is what a cluster serves, where the store has a kind that it does not. Source: design#missing-right;
design#kind-not-read.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from reconciler.adapters.clock import Clock
from reconciler.adapters.kube.client import MemberCluster
from reconciler.containment import awaited
from reconciler.daemon.observing.members import Reachable
from reconciler.model.fleet import Fleet
from reconciler.model.observation import ClusterObservation, Listed, Member, Read, Unlisted, UnlistedCause
from reconciler.model.problem import Problem
from reconciler.model.refs import GVK
from reconciler.stages.plan import not_listed

PAUSE_MIN_S = 2.0
PAUSE_MAX_S = 60.0


class _Turn(Struct):
    """When something is asked for again, in monotonic seconds."""

    due_s: float
    pause_s: float = PAUSE_MIN_S


_STEP_S = 1.0


class Reached(Protocol):
    """Which clusters answer, and for which store."""

    @property
    def fleet(self) -> Fleet | None:
        """None: the store was not read yet."""

    @property
    def reachable(self) -> Reachable:
        """The clients that answered, and why the others did not."""

    @property
    def selector(self) -> str:
        """The label selector of what is ours."""


class Asking(NamedTuple):
    """Who may be asked: the clusters that answer, with the store and the selector of what is ours."""

    members: Mapping[str, MemberCluster]
    fleet: Fleet
    selector: str


Subject = tuple[str, Listed | None]
"""A list of a cluster; None: what the cluster serves."""
Wanted = frozenset[tuple[GVK, bool]]
"""Kinds of the store, with whether they are wanted in a namespace."""


class _Served(NamedTuple):
    """What a cluster served when it was last looked at."""

    kinds: Mapping[GVK, bool]
    silent: frozenset[str]

    def lacks(self, wanted: Wanted) -> bool:
        """Whether a kind is not served as it is wanted, as far as is known."""
        return any(self.kinds.get(gvk) != scope or gvk.api_version in self.silent for gvk, scope in wanted)


class KindFaults:
    """By cluster what could not be listed the last time that it was asked for."""

    def __init__(self, jitter: random.Random | None = None) -> None:
        """Everything could be listed."""
        self._faults: dict[str, tuple[Unlisted, ...]] = {}
        self._observed: dict[str, tuple[Unlisted, ...]] = {}
        self._served: dict[str, _Served] = {}
        self._wanted: tuple[Fleet | None, Wanted] = (None, frozenset())
        self._answered: set[Subject] = set()
        self._turns: dict[Subject, _Turn] = {}
        self._asked: dict[Subject, asyncio.Task[bool]] = {}
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, guards nothing

    def take_in(self, members: Mapping[str, Member]) -> set[str]:
        """Take note of what a round read. The clusters that are to be looked at as a whole: a kind fails there now."""
        found: set[str] = set()
        for name, member in members.items():
            if isinstance(member, Read) and member.served:
                self._served[name] = _Served(member.served, member.silent)
            if isinstance(member, Read) and (member.unlisted or name in self._faults):
                known = self._faults.get(name, ())
                left = (one for one in known if not (member.is_whole or _is_among(one.what, member.listed)))
                fresh = {one.what.gvk for one in member.unlisted} - {one.what.gvk for one in known}
                if fresh and not member.is_whole:
                    found.add(name)
                self._put(name, {*left, *member.unlisted})
        return found

    def keep(self, names: frozenset[str]) -> None:
        """Forget clusters that have left the fleet."""
        self._faults = {name: found for name, found in self._faults.items() if name in names}
        self._observed = {name: found for name, found in self._observed.items() if name in names}
        self._served = {name: found for name, found in self._served.items() if name in names}

    def of(self, cluster: str) -> tuple[Unlisted, ...]:
        """What could not be listed there."""
        return self._faults.get(cluster, ())

    @property
    def shown(self) -> Mapping[str, tuple[Unlisted, ...]]:
        """By cluster what could not be listed, also while free capacity was looked at."""
        names = self._faults.keys() | self._observed.keys()
        return {name: found for name in sorted(names) if (found := (*self.of(name), *self._observed.get(name, ())))}

    def is_known(self, cluster: str, gvk: GVK) -> bool:
        """Whether a kind could not be listed the last time."""
        return any(found.what.gvk == gvk for found in self.of(cluster))

    def heard(self, cluster: str, gvk: GVK) -> bool:
        """A kind was listed by somebody else. Whether it could not be the last time: the next round asks for it."""
        found = {(cluster, one.what) for one in self.of(cluster) if one.what == Listed(gvk)}
        self._answered |= found
        return bool(found)

    def at_fault(self) -> dict[str, dict[GVK, Unlisted]]:
        """By cluster the kinds that gave no answer, and none since: rounds do not ask for them."""
        return {
            name: {one.what.gvk: one for one in found if self._is_silent(name, one)}
            for name, found in self._faults.items()
        }

    def is_at_fault(self, cluster: str, gvk: GVK) -> bool:
        """Whether a kind is among them."""
        return any(one.what.gvk == gvk and self._is_silent(cluster, one) for one in self.of(cluster))

    def _is_silent(self, cluster: str, one: Unlisted) -> bool:
        is_silent = one.cause is UnlistedCause.NOT_READ and not one.what.namespace
        return is_silent and (cluster, one.what) not in self._answered

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is told of them."""
        return tuple(not_listed(name, one) for name, found in self._faults.items() for one in found)

    def _put(self, name: str, faults: Iterable[Unlisted]) -> None:
        before, found = self.of(name), tuple(sorted(faults))
        if found:
            self._faults[name] = found
        else:
            self._faults.pop(name, None)
        self._answered -= {(name, one.what) for one in (*before, *found)}

    def observed(self, clusters: Mapping[str, ClusterObservation]) -> None:
        """Take note of what could not be listed while free capacity was looked at: whoever observes asks again."""
        self._observed |= {name: seen.unlisted for name, seen in clusters.items() if seen.reachable}

    async def watch(
        self,
        reached: Callable[[], Reached],
        back: Callable[[str], None],
        clock: Clock,
    ) -> None:
        """Ask anew without end; nothing waits for it. `back` is told of each cluster in which something answered."""
        try:
            while True:
                await clock.sleep(_STEP_S)
                for name in self.answered():
                    back(name)
                now = reached()
                if now.fleet is not None:
                    there = {name: found for name, found in now.reachable.items() if isinstance(found, MemberCluster)}
                    self.ask(Asking(there, now.fleet, now.selector), clock.monotonic_s())
        finally:
            await self.close()

    def ask(self, asking: Asking, now_s: float) -> None:
        """Begin to ask anew for what is due."""
        members, fleet, selector = asking
        if self._wanted[0] is not fleet:
            templates = fleet.templates.values()
            self._wanted = fleet, frozenset((each.gvk, bool(each.identity.namespace)) for each in templates)
        known, self._turns = self._turns, {}
        for subject in self._subjects(members):
            turn = self._turns[subject] = known.get(subject) or _Turn(now_s + self._pause_s(PAUSE_MIN_S))
            if now_s < turn.due_s or subject in self._asked or subject in self._answered:
                continue
            turn.pause_s = min(PAUSE_MAX_S, turn.pause_s * 2)
            turn.due_s = now_s + self._pause_s(turn.pause_s)
            self._asked[subject] = asyncio.create_task(self._is_answered(members[subject[0]], subject[1], selector))

    def _subjects(self, members: Mapping[str, MemberCluster]) -> Iterable[Subject]:
        for name in sorted(members):
            asked = [one for one in self.of(name) if one.cause is not UnlistedCause.NOT_SERVED]
            served = self._served.get(name)
            if len(asked) < len(self.of(name)) or (served is not None and served.lacks(self._wanted[1])):
                yield name, None
            yield from ((name, one.what) for one in asked)

    def answered(self) -> set[str]:
        """The clusters in which something that was asked for anew has been answered since."""
        ended = {subject: task for subject, task in self._asked.items() if task.done()}
        for subject in ended:
            del self._asked[subject]
        found = {subject for subject, task in ended.items() if not task.cancelled() and task.result()}
        self._answered |= {subject for subject in found if subject[1] is not None}
        return {name for name, _ in found}

    async def close(self) -> None:
        """Leave what is being asked."""
        asked, self._asked = list(self._asked.values()), {}
        for task in asked:
            task.cancel()
        await asyncio.gather(*asked, return_exceptions=True)

    async def _is_answered(self, member: MemberCluster, what: Listed | None, selector: str) -> bool:
        """Whether a list is answered, or something else is served than before. Another fault is no answer either."""
        if what is None:
            found = (await awaited(member.discover(refresh=True))).value
            return found is not None and _Served(found.served(), found.stale) != self._served.get(member.name)
        asked = member.list_metadata(what.gvk, namespace=what.namespace, label_selector=selector)
        return (await awaited(asked)).fault is None

    def _pause_s(self, pause_s: float) -> float:
        return pause_s * self._jitter.uniform(0.5, 1.0)


def _is_among(what: Listed, listed: frozenset[Listed]) -> bool:
    """Whether a list was asked for again, by itself or with those of all namespaces."""
    return what in listed or Listed(what.gvk) in listed
