"""The kinds that one cluster serves: discovery, and faults of one kind.

A status says little: 500 comes from a missing conversion webhook as from an etcd without a leader, 503 from an
extension API server as from a proxy in front of everything. So the cluster is asked about itself: if it answers that,
the fault is the kind's. Source: design#kind-not-read.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus
from typing import TypeVar

from msgspec import UNSET

from reconciler.api.clusters import Listed, Unlisted, UnlistedCause
from reconciler.api.refs import GVK
from reconciler.errors import (
    AlreadyExists,
    BadAnswer,
    CredentialsRejected,
    Forbidden,
    InvalidObject,
    KindFault,
    KindNotRead,
    KindNotServed,
    KindThrottled,
    ListExpired,
    MalformedObject,
    MemberClusterError,
    NotLeading,
    ObjectNotFound,
    Throttled,
    WriteConflict,
)
from reconciler.kube.answers import struct
from reconciler.kube.discovery import Discovery, Root, from_aggregated
from reconciler.kube.kube_requests import AGGREGATED_DISCOVERY, Request, ServedKind
from reconciler.kube.refusal_errors import clean
from reconciler.kube.transport import Answer

_OF_AN_OBJECT = (AlreadyExists, InvalidObject, MalformedObject, ObjectNotFound, WriteConflict)
_OF_US = (ListExpired, NotLeading)


def unlisted(what: Listed, error: KindFault, why: str) -> Unlisted:
    """Return the list that failed with the error. `why`: its message."""
    match error:
        case Forbidden():
            return Unlisted(what, UnlistedCause.RIGHT_MISSING, why)
        case KindNotServed():
            return Unlisted(what, UnlistedCause.NOT_SERVED, why)
        case KindThrottled():
            return Unlisted(what, UnlistedCause.THROTTLED, why)
        case _:
            return Unlisted(what, UnlistedCause.NOT_READ, why)


def silent_api(gvk: GVK) -> str:
    """Return the message for a kind whose extension API server is down, and where to look."""
    return f"{gvk.text} cannot be read: the API server of {gvk.api_version} does not answer; see {_api_service(gvk)}"


def not_served(gvk: GVK, served: Iterable[GVK]) -> str:
    """Return the message for a kind that a cluster does not serve, with a remedy. `served`: its kinds."""
    versions = sorted(other.version for other in served if other.group_kind == gvk.group_kind)
    other = f"it serves version {', '.join(versions)}, which the store has to name"
    gone = "no CustomResourceDefinition or APIService there serves it; bring it back, or take the kind out of the store"
    return f"{gvk.text} is not served: {other if versions else gone}"


def _remedy(gvk: GVK, error: MemberClusterError) -> str:
    if "conversion webhook" in error.message:
        return "; see spec.conversion of its CustomResourceDefinition"
    is_of_gateway = error.status in _GATEWAYS and not isinstance(error, Throttled)
    where = f"; see {_api_service(gvk)}, or spec.conversion of its CustomResourceDefinition"
    return where if gvk.group and is_of_gateway else ""


_GATEWAYS = (0, 502, 503, 504)
"""Statuses of an API server that could not reach another one; 0: no answer."""


def _api_service(gvk: GVK) -> str:
    return f"'kubectl get apiservice {gvk.version}.{gvk.group}'"


_T = TypeVar("_T")


class Kinds:
    """The kinds that one cluster serves, and an error boundary for each. A miss asks again, once for all at a time."""

    def __init__(
        self, cluster: str, send: Callable[[Request], Awaitable[Answer]], presence: Callable[[], Awaitable[object]]
    ) -> None:
        """`presence`: asks about the cluster itself, and raises MemberClusterError where that does not answer."""
        self._cluster, self._send, self._presence = cluster, send, presence
        self._known: Discovery | None = None
        self._lock, self._presence_lock = asyncio.Lock(), asyncio.Lock()
        self._answers: dict[str, tuple[str, Root]] = {}
        self._asked, self._is_reached = 0, False

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
        kind = (await self.discover()).kinds.get(gvk)
        # A CustomResourceDefinition may have come since.
        return kind if kind is not None else await self.served_now(gvk)

    async def served_now(self, gvk: GVK) -> ServedKind:
        """Return the resource from fresh discovery. Raises KindNotServed; KindNotRead if its API server is silent."""
        discovery = await self.discover(refresh=True)
        kind = discovery.kinds.get(gvk)
        if kind is not None:
            return kind
        if gvk.api_version in discovery.stale:
            raise KindNotRead(self._cluster, silent_api(gvk))
        raise KindNotServed(self._cluster, not_served(gvk, discovery.served()), status=HTTPStatus.NOT_FOUND)

    async def _ask(self) -> Discovery:
        answers = await asyncio.gather(*(self._get(path) for path in ("/api", "/apis")))
        lists = [answer.items for answer in answers if answer.kind == "APIGroupDiscoveryList" and answer.items != UNSET]
        if len(lists) < len(answers):
            kinds = clean(" and ".join(answer.kind for answer in answers))
            why = "its API server is older than Kubernetes 1.27 (upgrade it), or a proxy drops the header Accept"
            raise BadAnswer(self._cluster, f"discovery answered {kinds} instead of APIGroupDiscoveryList: {why}")
        return from_aggregated(lists)

    async def _get(self, path: str) -> Root:
        etag, known = self._answers.get(path, ("", None))
        request = Request(method="GET", path=path, accept=AGGREGATED_DISCOVERY, if_none_match=etag)
        answer = await self._send(request)
        if answer.status == HTTPStatus.NOT_MODIFIED and known is not None:
            return known
        fresh = struct(self._cluster, answer.body, Root, "discovery document")
        self._answers[path] = (answer.headers.get("ETag", ""), fresh)
        return fresh

    async def read(self, gvk: GVK, ask: Callable[[ServedKind], Awaitable[_T]]) -> _T:
        """Ask as `where_served`, within `one_kind`."""

        async def judged(served: ServedKind) -> _T:
            async with self.one_kind(gvk):
                return await ask(served)

        return await self.where_served(gvk, judged)

    async def where_served(self, gvk: GVK, ask: Callable[[ServedKind], Awaitable[_T]]) -> _T:
        """Ask about a kind; ask again if fresh discovery has another resource for it."""
        served = await self.served(gvk)
        try:
            return await ask(served)
        except KindNotServed as error:
            fresh = await self.served_now(gvk)
            if (fresh.plural, fresh.namespaced) == (served.plural, served.namespaced):
                why = f"{gvk.text} is not served, although discovery still lists it: {error.message}"
                raise KindNotServed(error.cluster, why, status=error.status) from error
            return await ask(fresh)

    @asynccontextmanager
    async def one_kind(self, gvk: GVK) -> AsyncIterator[None]:
        """Yield the boundary of one kind: its failure, while the cluster answers otherwise, is a KindFault."""
        try:
            yield
        except MemberClusterError as error:
            fault = await self.fault_of(gvk, error)
            if fault is error:
                raise
            raise fault from error

    async def fault_of(self, gvk: GVK, error: MemberClusterError) -> MemberClusterError:
        """Return the error of a request about a kind: a KindNotRead if the cluster answers all the same."""
        is_unsent = isinstance(error, CredentialsRejected) and not error.status
        if is_unsent or isinstance(error, (KindFault, *_OF_AN_OBJECT, *_OF_US)) or not await self._is_there():
            return error
        message = f"{gvk.text} cannot be read: {error.message}{_remedy(gvk, error)}"
        of_kind = KindThrottled if isinstance(error, Throttled) else KindNotRead
        fault = of_kind(error.cluster, message, status=error.status, retry_after_s=error.retry_after_s)
        fault.changed_nothing = error.changed_nothing
        return fault

    async def _is_there(self) -> bool:
        """Return whether the cluster answers now. Concurrent callers share one request."""
        before = self._asked
        async with self._presence_lock:
            if self._asked == before:
                self._is_reached = False
                with suppress(MemberClusterError):
                    await self._presence()
                    self._is_reached = True
                self._asked += 1
            return self._is_reached
