"""The stream of a watch, cut into events.

Source: Kubernetes, "Kubernetes API Concepts, Efficient detection of changes".
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import orjson
from msgspec import Struct

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK
from reconciler.clock import Clock
from reconciler.errors import BadAnswer
from reconciler.kube.answers import as_live_object, bad, json_object, list_metadata
from reconciler.kube.kube_requests import Request
from reconciler.kube.refusal_errors import clean, refusal

if TYPE_CHECKING:
    from aiohttp import StreamReader

LINE_MAX_BYTES = 4 * 1024 * 1024
"""Above what etcd stores in one object by default (1.5 MB), with room for API servers that allow more."""


class WatchEvent(Struct, frozen=True, kw_only=True):
    """`type` is ADDED, MODIFIED or DELETED."""

    type: str
    object: LiveObject


class Bookmark(Struct, frozen=True, kw_only=True):
    """Nothing changed up to this resourceVersion: a watch may continue from here."""

    resource_version: str


async def lines_of(cluster: str, stream: StreamReader) -> AsyncIterator[bytes]:
    """Yield the lines of a stream; an incomplete last one is dropped."""
    from aiohttp.http_exceptions import LineTooLong  # noqa: PLC0415 - whoever has a stream has aiohttp

    try:
        while (line := await stream.readline(max_line_length=LINE_MAX_BYTES)).endswith(b"\n"):
            if event := line.strip():
                yield event
    except LineTooLong as error:
        raise BadAnswer(cluster, f"a watch event is longer than {LINE_MAX_BYTES} bytes") from error


def watch_event(cluster: str, line: bytes, gvk: GVK, request: Request) -> WatchEvent | Bookmark:
    """Return one event. An ERROR event raises: ListExpired when the resourceVersion is too old."""
    event = json_object(cluster, line, "watch event")
    kind, item = event.get("type"), event.get("object")
    if not isinstance(item, dict):
        raise bad(cluster, "watch event", line)
    if kind == "ERROR":
        code = item.get("code")
        raise refusal(cluster, request, code if isinstance(code, int) else 500, orjson.dumps(item))
    if kind == "BOOKMARK":
        return Bookmark(resource_version=list_metadata(cluster, item, "bookmark").resource_version)
    if kind not in ("ADDED", "MODIFIED", "DELETED"):
        raise BadAnswer(cluster, f"a watch event has the unknown type {clean(str(kind))!r}")
    return WatchEvent(type=kind, object=as_live_object(cluster, item, gvk))


Answered = Callable[[str, str, str, float], None]
"""Told of each request: cluster, verb, class of the answer's status (`2xx`, `none`), seconds until that began."""


def nobody(cluster: str, verb: str, code: str, seconds: float) -> None:
    """Do nothing."""


@asynccontextmanager
async def timed(
    request: Request, cluster: str, answered: Answered, clock: Clock
) -> AsyncIterator[Callable[[int], None]]:
    """Yield a function that reports the status; no answer is reported, too, unless the request was cancelled."""
    begun_s = clock.monotonic_s()
    statuses: list[int] = []

    def count_answer(status: int) -> None:
        statuses.append(status)
        verb = "watch" if "watch" in request.query else str(request.purpose)
        answered(cluster, verb, f"{status // 100}xx" if status else "none", clock.monotonic_s() - begun_s)

    try:
        yield count_answer
    except Exception:
        if not statuses:
            count_answer(0)
        raise
