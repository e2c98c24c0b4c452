"""Faults of one kind, distinct from faults of its cluster, and messages for both.

A status says little: 500 comes from a missing conversion webhook as from an etcd without a leader, 503 from an
extension API server as from a proxy in front of everything. So the cluster is asked about itself: if it answers that,
the fault is the kind's. Source: design#kind-not-read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable

from msgspec import Struct

from reconciler.errors import (
    AlreadyExists,
    Forbidden,
    InvalidObject,
    KindFault,
    KindNotRead,
    KindNotServed,
    ListExpired,
    MalformedObject,
    MemberClusterError,
    NotLeading,
    ObjectNotFound,
    WriteConflict,
)
from reconciler.model.observation import Listed, Unlisted, UnlistedCause
from reconciler.model.refs import GVK

_OF_AN_OBJECT = (AlreadyExists, InvalidObject, MalformedObject, ObjectNotFound, WriteConflict)
_OF_US = (ListExpired, NotLeading)


class _Seen(Struct, frozen=True):
    is_there: bool


class FaultJudge:
    """Says of a failed request whether its kind is at fault, or the cluster."""

    def __init__(self, ask: Callable[[], Awaitable[object]]) -> None:
        """`ask`: a request about the cluster itself, which raises MemberClusterError where that does not answer."""
        self._ask = ask
        self._seen: _Seen | None = None
        self._lock = asyncio.Lock()

    async def of_kind(self, gvk: GVK, error: MemberClusterError) -> MemberClusterError:
        """The error, as a KindNotRead where the cluster answers all the same."""
        if isinstance(error, (KindFault, *_OF_AN_OBJECT, *_OF_US)) or not await self._is_there():
            return error
        message = f"{gvk.shown} cannot be read: {error.message}{_remedy(gvk, error)}"
        found = KindNotRead(error.cluster, message, status=error.status, retry_after_s=error.retry_after_s)
        found.changed_nothing = error.changed_nothing
        return found

    async def _is_there(self) -> bool:
        """Return whether the cluster answers now. Concurrent callers share one request."""
        before = self._seen
        async with self._lock:
            if self._seen is before:
                try:
                    await self._ask()
                except MemberClusterError:
                    self._seen = _Seen(is_there=False)
                else:
                    self._seen = _Seen(is_there=True)
            assert self._seen is not None, "somebody has asked"
            return self._seen.is_there


def unlisted(what: Listed, error: KindFault, why: str) -> Unlisted:
    """Return the list that failed with the error. `why`: its message."""
    match error:
        case Forbidden():
            return Unlisted(what, UnlistedCause.RIGHT_MISSING, why)
        case KindNotServed():
            return Unlisted(what, UnlistedCause.NOT_SERVED, why)
        case _:
            return Unlisted(what, UnlistedCause.NOT_READ, why)


def silent_api(gvk: GVK) -> str:
    """The message for a kind whose extension API server is down, and where to look."""
    return f"{gvk.shown} cannot be read: the API server of {gvk.api_version} does not answer; see {_api_service(gvk)}"


def not_served(gvk: GVK, served: Iterable[GVK]) -> str:
    """Return the message for a kind that a cluster does not serve, with a remedy. `served`: its kinds."""
    versions = sorted(other.version for other in served if other.group_kind == gvk.group_kind)
    other = f"it serves version {', '.join(versions)}, which the store has to name"
    gone = "its CustomResourceDefinition is not there; bring it back, or take the kind out of the store"
    return f"{gvk.shown} is not served: {other if versions else gone}"


def _remedy(gvk: GVK, error: MemberClusterError) -> str:
    if "conversion webhook" in error.message:
        return "; see spec.conversion of its CustomResourceDefinition"
    return f"; see {_api_service(gvk)}" if gvk.group and error.status in _GATEWAYS else ""


_GATEWAYS = (0, 502, 503, 504)
"""Statuses of an API server that could not reach another one; 0: no answer."""


def _api_service(gvk: GVK) -> str:
    return f"'kubectl get apiservice {gvk.version}.{gvk.group}'"
