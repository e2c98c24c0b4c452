"""Discovery over the wire, remembered per cluster and refreshed when a kind is missed."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from http import HTTPStatus
from typing import TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from reconciler.adapters.kube import requests
from reconciler.adapters.kube.answers import struct
from reconciler.adapters.kube.discovery import Discovery, ServedKind, from_aggregated, from_resource_lists
from reconciler.adapters.kube.kinds.faults import not_served, silent_api
from reconciler.adapters.kube.requests import Request
from reconciler.adapters.kube.shapes.discovery import Group, ResourceList, Root
from reconciler.adapters.kube.transport import Answer
from reconciler.errors import BadAnswer, KindNotRead, KindNotServed, MemberClusterError
from reconciler.model.refs import GVK

_ROOTS = ("/api", "/apis")
_S = TypeVar("_S", bound=Struct)


class DiscoveryCache:
    """The discovery of one cluster. A miss asks again, once for all concurrent misses."""

    def __init__(self, cluster: str, send: Callable[[Request], Awaitable[Answer]]) -> None:
        """Nothing is asked yet."""
        self._cluster = cluster
        self._send = send
        self._known: Discovery | None = None
        self._lock = asyncio.Lock()
        self._answers: dict[str, tuple[str, Struct]] = {}

    async def discover(self, *, refresh: bool = False) -> Discovery:
        """Return the served kinds, cached or fresh."""
        known = self._known
        if known is not None and not refresh:
            return known
        async with self._lock:
            # Whoever held the lock in the meantime has asked for us too.
            if self._known is None or self._known is known:
                self._known = await self._ask()
            return self._known

    async def served(self, gvk: GVK) -> ServedKind:
        """Return the resource of the kind, cached or, if missing, fresh. Raises as `served_now`."""
        found = (await self.discover()).kinds.get(gvk)
        # A CustomResourceDefinition may have come since.
        return found if found is not None else await self.served_now(gvk)

    async def served_now(self, gvk: GVK) -> ServedKind:
        """Return the resource of the kind from fresh discovery.

        Raises:
            KindNotServed: the cluster does not serve it.
            KindNotRead: the extension API server that should serve it does not answer.
        """
        discovery = await self.discover(refresh=True)
        found = discovery.kinds.get(gvk)
        if found is not None:
            return found
        if gvk.api_version in discovery.stale:
            raise KindNotRead(self._cluster, silent_api(gvk))
        raise KindNotServed(self._cluster, not_served(gvk, discovery.served()), status=HTTPStatus.NOT_FOUND)

    async def _ask(self) -> Discovery:
        core, groups = await asyncio.gather(*(self._root(path) for path in _ROOTS))
        is_aggregated = core.kind == groups.kind == "APIGroupDiscoveryList"
        if is_aggregated and core.items is not UNSET and groups.items is not UNSET:
            fresh = from_aggregated([core.items, groups.items])
        elif core.kind == "APIVersions" and groups.kind == "APIGroupList" and core.versions:
            fresh = await self._ask_each_group_version(core.versions, groups.groups or ())
        else:
            raise BadAnswer(self._cluster, "the answers to discovery are neither aggregated nor of the older form")
        # An unchanged Discovery must still be another value, since waiting readers compare by identity.
        return replace(fresh)

    async def _ask_each_group_version(self, versions: Sequence[str], groups: Iterable[Group]) -> Discovery:
        preferred = {"": versions[0]}
        group_versions = [*versions]
        for group in groups:
            preferred[group.name] = group.preferred_version.version
            group_versions += [found.group_version for found in group.versions]
        answers = await asyncio.gather(*(self._group_version(group_version) for group_version in group_versions))
        lists = {name: answer for name, answer in zip(group_versions, answers, strict=True) if answer is not None}
        discovery = from_resource_lists(lists.values(), preferred)
        return replace(discovery, stale=frozenset(set(group_versions) - set(lists)))

    async def _group_version(self, group_version: str) -> ResourceList | None:
        """The APIResourceList, None when an extension API server does not answer for it."""
        try:
            path = requests.api_root(group_version)
            answer = await self._get(path, requests.JSON, ResourceList, part=path)
        except MemberClusterError as error:
            if error.status in (HTTPStatus.NOT_FOUND, HTTPStatus.SERVICE_UNAVAILABLE):
                return None
            raise
        if answer.kind != "APIResourceList":
            raise BadAnswer(self._cluster, f"the answer is no APIResourceList of {group_version}")
        return answer

    async def _root(self, path: str) -> Root:
        return await self._get(path, requests.AGGREGATED_DISCOVERY, Root)

    async def _get(self, path: str, accept: str, shape: type[_S], *, part: str = "") -> _S:
        etag, known = self._answers.get(path, ("", None))
        answer = await self._send(Request(method="GET", path=path, accept=accept, part=part, if_none_match=etag))
        if answer.status == HTTPStatus.NOT_MODIFIED and isinstance(known, shape):
            return known
        fresh = struct(self._cluster, answer.body, shape, "discovery document")
        self._answers[path] = (answer.headers.get("ETag", ""), fresh)
        return fresh
