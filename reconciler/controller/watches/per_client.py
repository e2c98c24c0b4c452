"""Each cluster's object between rounds: made for its client, and ended with it.

A cluster that comes is one creation, one that goes is one end, and one that is reached otherwise is both: what is asked
may be asked of another cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from itertools import chain
from typing import Generic, TypeVar

from reconciler.api.refs import GVK
from reconciler.controller.tasks import ended, start
from reconciler.kube.client import MemberCluster

Key = TypeVar("Key", bound=Hashable)


class ClusterTasks(Generic[Key]):
    """The tasks that ask one cluster over one client, one for each key."""

    def __init__(self, member: MemberCluster) -> None:
        """Nothing is asked before `keep`."""
        self.member, self.kinds, self.selector = member, frozenset[GVK](), ""
        self.tasks: dict[Key, asyncio.Task[None]] = {}

    def keep(self, kinds: frozenset[GVK], selector: str) -> None:
        """Look at exactly these kinds from now on; the cluster was read just now."""
        self.kinds, self.selector = kinds, selector

    def is_running(self, key: Key) -> bool:
        """Return whether such a task runs."""
        return key in self.tasks and not self.tasks[key].done()

    def begin(self, key: Key, work: Callable[[], Coroutine[None, None, None]], name: str) -> None:
        """Start a task, unless such a one runs."""
        if not self.is_running(key):
            self.tasks[key] = start(work(), name)


Value = TypeVar("Value", bound=ClusterTasks[GVK] | ClusterTasks[str])


class PerClient(Generic[Value]):
    """One object for each cluster."""

    def __init__(self, make: Callable[[MemberCluster], Value]) -> None:
        """No cluster is looked at before `keep`."""
        self._make = make
        self.clusters: dict[str, Value] = {}

    def keep(self, member: MemberCluster, kinds: frozenset[GVK], selector: str) -> None:
        """Look at exactly these kinds of a cluster from now on."""
        known = self.clusters.get(member.name)
        if known is None or known.member is not member:
            self.drop(member.name)
            known = self.clusters[member.name] = self._make(member)
        known.keep(kinds, selector)

    def drop(self, cluster: str) -> None:
        """Ask a cluster nothing any more."""
        if (known := self.clusters.pop(cluster, None)) is not None:
            for task in known.tasks.values():
                task.cancel()

    async def close(self) -> None:
        """Ask nobody any more."""
        tasks = list(chain.from_iterable(known.tasks.values() for known in self.clusters.values()))
        self.clusters.clear()
        await ended(tasks)
