"""Lists that were refused for want of a right: told until a later one is answered, and asked for anew now and then.

Only rounds that list can tell, and most list nothing. So what was refused is asked for by itself, once a minute; when
it is answered, its cluster is looked at as a whole. Source: design#missing-right.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from reconciler.adapters.clock import Clock, within
from reconciler.adapters.kube.client import MemberCluster
from reconciler.containment import awaited
from reconciler.daemon.observing.members import PROMPT_S
from reconciler.model.observation import Denied, Listed, Member, Read
from reconciler.model.problem import Problem
from reconciler.model.refs import GVK
from reconciler.stages.plan import right_missing

ASKED_EVERY_S: Final = 60.0


class Denials:
    """By cluster what was refused the last time that it was asked for."""

    def __init__(self) -> None:
        """Nothing was refused."""
        self._denied: dict[str, tuple[Denied, ...]] = {}

    def take_in(self, members: Mapping[str, Member]) -> None:
        """Take note of what a round read."""
        for name, member in members.items():
            if isinstance(member, Read) and (member.denied or name in self._denied):
                left = (known for known in self._denied.get(name, ()) if not _is_among(known.what, member.listed))
                self._put(name, {*left, *member.denied})

    def keep(self, names: frozenset[str]) -> None:
        """Forget clusters that have left the fleet."""
        self._denied = {name: found for name, found in self._denied.items() if name in names}

    def is_known(self, cluster: str, gvk: GVK) -> bool:
        """Whether lists of a kind were refused by a cluster the last time."""
        return any(denied.what.gvk == gvk for denied in self._denied.get(cluster, ()))

    def _put(self, name: str, denied: Iterable[Denied]) -> None:
        found = tuple(sorted(denied))
        if found:
            self._denied[name] = found
        else:
            self._denied.pop(name, None)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What is told of them."""
        return tuple(right_missing(name, denied.why) for name, found in self._denied.items() for denied in found)

    async def watch(
        self,
        members: Callable[[], Mapping[str, MemberCluster]],
        selector: Callable[[], str],
        clock: Clock,
        mark: Callable[[str], None],
    ) -> None:
        """Ask for each again now and then, without end; `mark` is told which clusters have answered any of them."""
        while True:
            await clock.sleep(ASKED_EVERY_S)
            for name in await self.answered_now(members(), selector()):
                mark(name)

    async def answered_now(self, members: Mapping[str, MemberCluster], selector: str) -> list[str]:
        """Ask for each again. The clusters that have answered any of them; what fails otherwise is still refused."""

        async def is_answered(name: str, what: Listed) -> bool:
            asking = members[name].list_metadata(what.gvk, namespace=what.namespace, label_selector=selector)
            return (await awaited(within(asking, PROMPT_S))).fault is None

        due = sorted(self._denied.keys() & members.keys())
        asked = [(name, denied.what) for name in due for denied in self._denied[name]]
        answers = await asyncio.gather(*(is_answered(*each) for each in asked))
        return sorted({name for (name, _), is_there in zip(asked, answers, strict=True) if is_there})


def _is_among(what: Listed, listed: frozenset[Listed]) -> bool:
    """Whether a list was asked for again, by itself or with those of all namespaces."""
    return what in listed or Listed(what.gvk) in listed
