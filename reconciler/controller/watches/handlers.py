"""The handlers of what watches and polls see, cluster by cluster, and the tasks that ask each cluster.

A cluster that is reached otherwise ends and begins again: what is asked may be asked of another cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from itertools import chain
from typing import Generic, TypeVar

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK
from reconciler.controller.tasks import end_tasks, start
from reconciler.errors import MemberClusterError
from reconciler.kube.client import MemberCluster
from reconciler.kube.watch_stream import WatchEvent


class WatchHandler:
    """Does nothing; a subclass says what it wants to know."""

    def list_requested(self, cluster: str, gvk: GVK) -> None:
        """A list is asked for."""

    def as_of(self, cluster: str, gvk: GVK, version: str) -> None:
        """A list is as of this version."""

    def listed(self, cluster: str, gvk: GVK, objects: tuple[LiveObject, ...]) -> None:
        """A list is complete."""

    def unlisted(self, cluster: str, gvk: GVK) -> None:
        """A kind cannot be listed in a cluster that answers."""

    def object_changed(self, cluster: str, event: WatchEvent) -> None:
        """An object came, changed or went, or was read in full."""

    def trouble(self, cluster: str, error: MemberClusterError) -> None:
        """A cluster does not answer."""

    def unwatched(self, cluster: str, gvk: GVK, why: str) -> None:
        """A kind that can be listed may not be watched; `why` empty: it may."""

    def ended_early(self, cluster: str) -> None:
        """A watch ended before its time, or failed."""


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
        await end_tasks(tasks)
