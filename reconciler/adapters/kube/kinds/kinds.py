"""The kinds of one cluster, each a failure domain of its own: its resource, and its own faults."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import TypeVar

from reconciler.adapters.kube.discovery import ServedKind
from reconciler.adapters.kube.kinds.discovery_cache import DiscoveryCache
from reconciler.adapters.kube.kinds.faults import FaultJudge
from reconciler.errors import KindNotServed, MemberClusterError
from reconciler.model.refs import GVK

_T = TypeVar("_T")


class Kinds:
    """The resources of kinds, and an error boundary for each."""

    def __init__(self, discovery: DiscoveryCache, faults: FaultJudge) -> None:
        """Nothing is asked yet."""
        self._discovery, self._faults = discovery, faults

    async def read(self, gvk: GVK, ask: Callable[[ServedKind], Awaitable[_T]]) -> _T:
        """As `where_served`, within `about`."""

        async def judged(served: ServedKind) -> _T:
            async with self.about(gvk):
                return await ask(served)

        return await self.where_served(gvk, judged)

    async def where_served(self, gvk: GVK, ask: Callable[[ServedKind], Awaitable[_T]]) -> _T:
        """Ask about a kind; ask again if fresh discovery has another resource for it."""
        served = await self._discovery.served(gvk)
        try:
            return await ask(served)
        except KindNotServed as error:
            fresh = await self._discovery.served_now(gvk)
            if fresh.resource == served.resource:
                why = f"{gvk.shown} is not served, although discovery still lists it: {error.message}"
                raise KindNotServed(error.cluster, why, status=error.status) from error
            return await ask(fresh)

    @asynccontextmanager
    async def about(self, gvk: GVK) -> AsyncIterator[None]:
        """The boundary of one kind: its failure, while the cluster answers otherwise, is a KindFault."""
        try:
            yield
        except MemberClusterError as error:
            found = await self.fault_of(gvk, error)
            if found is error:
                raise
            raise found from error

    async def fault_of(self, gvk: GVK, error: MemberClusterError) -> MemberClusterError:
        """Return the error of a request about a kind: a KindFault if the cluster answers otherwise."""
        return await self._faults.of_kind(gvk, error)
