"""Watches on what is ours: one per cluster and kind. Events only say what may be stale; a round reads and decides.

Source: design#events-are-nudges; Kubernetes: list, then watch from there, list again when the watch expires.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from contextlib import aclosing

from msgspec import Struct

from reconciler.adapters.clock import Clock
from reconciler.adapters.kube.client import MemberCluster
from reconciler.adapters.kube.watch import Bookmark, WatchEvent
from reconciler.errors import KindNotServed, ListExpired, MemberClusterError
from reconciler.model.observation import LiveObject
from reconciler.model.refs import GVK

_RETRY_MIN_S = 1.0
_RETRY_MAX_S = 60.0
_NOT_SERVED_S = 60.0


class Listeners(Struct, frozen=True, kw_only=True):
    """Who is told: of a complete list of names, of each event, and of a cluster that does not answer."""

    listed: Callable[[str, GVK, tuple[LiveObject, ...]], None]
    event: Callable[[str, WatchEvent], None]
    trouble: Callable[[str, MemberClusterError], None]


class Watches:
    """Running watches by (cluster, kind)."""

    def __init__(self, listeners: Listeners, clock: Clock, jitter: random.Random | None = None) -> None:
        """Nothing is watched before `keep`."""
        self._listeners = listeners
        self._clock = clock
        self._jitter = jitter or random.Random()  # noqa: S311 - spreads retries, guards nothing
        self._tasks: dict[tuple[str, GVK], asyncio.Task[None]] = {}
        self._members: dict[str, MemberCluster] = {}

    def keep(self, member: MemberCluster, kinds: frozenset[GVK], selector: str) -> None:
        """Watch exactly these kinds of the cluster from now on; a cluster that is reached otherwise, anew."""
        if self._members.get(member.name) is not member:
            self.drop(member.name)
            self._members[member.name] = member
        for name, gvk in [key for key in self._tasks if key[0] == member.name and key[1] not in kinds]:
            self._tasks.pop((name, gvk)).cancel()
        for gvk in sorted(kinds):
            task = self._tasks.get((member.name, gvk))
            if task is None or task.done():
                self._tasks[member.name, gvk] = asyncio.create_task(self._follow(member, gvk, selector))

    def drop(self, cluster: str) -> None:
        """Stop watching a cluster."""
        self._members.pop(cluster, None)
        for key in [key for key in self._tasks if key[0] == cluster]:
            self._tasks.pop(key).cancel()

    async def close(self) -> None:
        """Stop every watch."""
        tasks = list(self._tasks.values())
        self._tasks.clear()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _follow(self, member: MemberCluster, gvk: GVK, selector: str) -> None:
        pause_s = _RETRY_MIN_S
        while True:
            try:
                listing = await member.list_metadata(gvk, label_selector=selector)
                self._listeners.listed(member.name, gvk, listing.objects)
                pause_s = _RETRY_MIN_S
                await self._stream(member, gvk, selector, listing.resource_version)
            except ListExpired:
                continue
            except KindNotServed:
                await self._clock.sleep(_NOT_SERVED_S)
            except MemberClusterError as error:
                self._listeners.trouble(member.name, error)
                await self._clock.sleep(pause_s * self._jitter.uniform(0.5, 1.0))
                pause_s = min(_RETRY_MAX_S, pause_s * 2)

    async def _stream(self, member: MemberCluster, gvk: GVK, selector: str, version: str) -> None:
        while True:
            stream = member.watch(gvk, label_selector=selector, resource_version=version)
            async with aclosing(stream) as events:
                async for found in events:
                    if isinstance(found, Bookmark):
                        version = found.resource_version
                        continue
                    version = found.object.resource_version
                    self._listeners.event(member.name, found)
