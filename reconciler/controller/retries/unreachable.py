"""Clusters that could not be read: each is asked now and then whether it answers, so that no other one is read for it.

However long a cluster has been away, it is asked every few seconds, over a new connection: one from before may be open
on our side alone. Each is asked by itself, and waits for no other. Source: design#promise-3: unknown is not absent;
design#promise-6; design#promise-7: a bad cluster fails by itself.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Final

from reconciler.api.clusters import Member, Read
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.reading.members import told_fault
from reconciler.controller.tasks import ended, start
from reconciler.controller.work_queue import WorkQueue
from reconciler.errors import MemberClusterError
from reconciler.kube.client import MemberCluster

_PER_SECOND: Final = 20
"""So many clusters are asked in a second at most: where more than that are away, each is asked less often."""


class UnreachableClusters:
    """Names of clusters, by when each is asked next."""

    def __init__(self, clock: Clock, jitter: Callable[[], float] = random.random) -> None:
        """Everybody is there."""
        self._queue = WorkQueue[str](timing.AWAY_BACK_OFF, clock, jitter=jitter, per_second_max=_PER_SECOND)
        self._asked: dict[str, asyncio.Task[bool]] = {}

    def was_not_read(self, name: str) -> None:
        """A round went without the cluster; each time in a row doubles the pause."""
        if not self._queue.is_waiting(name) and name not in self._asked:
            self._queue.requeue_rate_limited(name)

    def was_read(self, name: str) -> None:
        """The cluster is there."""
        self._queue.forget(name)

    def back_among(self, members: Mapping[str, Member]) -> list[str]:
        """The clusters that were away and have just been read."""
        return [name for name in self._queue.keys if isinstance(members.get(name), Read)]

    def keep(self, names: frozenset[str]) -> None:
        """Forget clusters that have left the fleet."""
        self._queue.keep(names)

    async def came_back(self, members: Mapping[str, MemberCluster], uids: Mapping[str, str]) -> list[str]:
        """Return unreachable clusters that answered with their identity (`uids`: of kube-system); ask due ones.

        It waits for the first answer alone, and not for long: the next call returns the others.
        """
        for name in self._queue.due():
            if name in members and name not in self._asked:
                # Counted from when it is asked: how long it is silent then is no pause.
                self._queue.requeue_rate_limited(name)
                self._asked[name] = start(_is_back(name, members, uids), f"asking {name}")
        if self._asked:
            await asyncio.wait(self._asked.values(), timeout=timing.SLOW_S, return_when=asyncio.FIRST_COMPLETED)
        ended = {name: task for name, task in self._asked.items() if task.done()}
        self._asked = {name: task for name, task in self._asked.items() if name not in ended}
        return [name for name, task in ended.items() if name in self._queue and not task.cancelled() and task.result()]

    async def close(self) -> None:
        """Ask nobody any more."""
        asked, self._asked = self._asked, {}
        await ended(asked.values())


async def _is_back(name: str, members: Mapping[str, MemberCluster], uids: Mapping[str, str]) -> bool:
    """Return whether a cluster answers with its identity."""
    try:
        async with asyncio.timeout(timing.PROMPT_S):
            uid = await members[name].identity(is_anew=True)
    except (MemberClusterError, TimeoutError):
        return False
    except Exception as error:
        told_fault(name, error)
        return False
    others = {uids.get(other) for other in members if other != name}
    return uids.get(name, uid) == uid and uid not in others
