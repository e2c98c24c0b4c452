"""`/api/v1`: the views as JSON, read-only, and `/api/v1/events`: server-sent events of new state. Source: ADR 17."""

from __future__ import annotations

import asyncio
import json
import re
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Final

from aiohttp import web

from reconciler.clock import Clock, epoch_s, rfc3339, seconds_in
from reconciler.controller.tasks import first_of
from reconciler.controller.vitals.service_vitals import StatusStore
from reconciler.errors import ConfigurationError, NotShown
from reconciler.observations import api_moment
from reconciler.report.views.queries import FILTERS, FOLDS, ROWS_MAX, HistoryQuery, MatrixQuery, NotFound
from reconciler.server.live_views import LiveViews
from reconciler.server.routes import (
    HEADERS,
    Answerer,
    Packed,
    PageRequest,
    ReaderLimits,
    Route,
    Slots,
    fault,
    packed,
    tagged,
)

_LIMIT_MAX: Final = 10_000
_NUMBER_MAX: Final = 2**53
_NUMBER: Final = re.compile(r"[0-9]{1,16}")
_NO_NAMESPACE: Final = "-"
_OF_MATRIX: Final = (*(each.name for each in FILTERS), "troubles", *FOLDS, "offset", "limit")


class BadQuery(Exception):
    """A parameter is not understood. `str()` names it and its allowed values."""


def matrix_question(query: Mapping[str, str]) -> MatrixQuery:
    """Return the question about the matrix: filters and folding. Raises BadQuery."""
    only(query, *_OF_MATRIX)
    for name, known in FOLDS.items():
        if query.get(name, "") not in ("", *known):
            raise BadQuery(f"{name}: write {' or '.join(known)}")
    if query.get("troubles", "0") not in ("0", "1"):
        raise BadQuery("troubles: write 1 or 0")
    texts: dict[str, Any] = {name: query.get(name, "") for name in (*(each.name for each in FILTERS), *FOLDS)}
    return MatrixQuery(
        **texts,
        troubles=query.get("troubles", "0") == "1",
        offset=offset(query),
        limit=_number(query, "limit", ROWS_MAX, least=1, most=_LIMIT_MAX),
    )


def history_question(query: Mapping[str, str], now: str) -> HistoryQuery:
    """Return the question about the history. `now`: RFC 3339, the end of spans. Raises BadQuery."""
    only(query, "resource", "namespace", "cluster", "since", "until", "limit", "after")
    return HistoryQuery(
        resource=query.get("resource", ""),
        namespace=query.get("namespace", ""),
        cluster=query.get("cluster", ""),
        since=_moment(query, "since", now),
        until=_moment(query, "until", now),
        limit=_number(query, "limit", 50, least=1, most=_LIMIT_MAX),
        after=_number(query, "after", 0, most=_NUMBER_MAX) if "after" in query else None,
    )


def object_in_path(parts: Mapping[str, str]) -> tuple[str, str, str]:
    """Kind, namespace (empty: none) and name of the object in a path."""
    namespace = parts["namespace"]
    return parts["kind"], "" if namespace == _NO_NAMESPACE else namespace, parts["name"]


def offset(query: Mapping[str, str]) -> int:
    """The row from which on is asked. Raises BadQuery."""
    return _number(query, "offset", 0, most=_NUMBER_MAX)


def only(query: Mapping[str, str], *names: str) -> None:
    """Refuse unknown parameters: a wrong name would look like a question that finds everything."""
    unknown = sorted(query.keys() - set(names))
    if unknown:
        known = f"there is {', '.join(names)}" if names else "there is none here"
        raise BadQuery(f"a parameter is not known here; {known}")


def day_by(query: Mapping[str, str]) -> str:
    """Return the grouping of the day: `cluster` or `object`. Raises BadQuery."""
    grouping = query.get("by", "cluster")
    if grouping not in ("cluster", "object"):
        raise BadQuery("by: write cluster or object")
    return grouping


def _moment(query: Mapping[str, str], name: str, now: str) -> str:
    text = query.get(name, "")
    if not text or api_moment(text):
        return text
    try:
        return rfc3339(epoch_s(now) - seconds_in(text))
    except ConfigurationError as error:
        raise BadQuery(f"{name}: it is no time and no span; write 2h, 2d or 2026-11-21T18:00:00Z") from error


def _number(query: Mapping[str, str], name: str, default: int, *, least: int = 0, most: int) -> int:
    text = query.get(name)
    if text is None:
        return default
    if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
        raise BadQuery(f"{name}: it is no number from {least} to {most}")
    return int(text)


BASE: Final = "/api/v1"
LAST: Final = "Fleet-Last-Event"
"""The header of `history` with the number to continue after."""
_PACKED_MAX: Final = 16
_NAMED: Final = 20


class Api:
    """The endpoints over the views of one service."""

    def __init__(self, views: LiveViews, events: Events, clock: Clock, slots: Slots) -> None:
        self._views, self._events, self._clock, self._slots = views, events, clock, slots
        self._packed: dict[int, tuple[Any, Packed]] = {}

    def routes(self) -> Sequence[Route]:
        """All of them."""
        views = self._views
        by_path = {
            "fleet": self._answer(lambda _: views.fleet()),
            "status": self._answer(lambda _: views.status()),
            "matrix": self._answer(lambda call: views.matrix(matrix_question(call.query)), *_OF_MATRIX),
            "problems": self._answer(lambda _: views.problems()),
            "history": self._history,
            "day": self._answer(lambda call: views.day(day_by(call.query)), "by"),
            "explain/{kind}/{namespace}/{name}": self._answer(self._explanation),
            "objects/{kind}/{namespace}/{name}": self._answer(lambda call: views.object(*object_in_path(call.parts))),
            "live/{cluster}/{kind}/{namespace}/{name}": self._answer(
                lambda call: views.live(call.parts["cluster"], *object_in_path(call.parts))
            ),
            "clusters": self._answer(lambda _: views.clusters()),
            "clusters/{name}": self._cluster,
        }
        patterns = {f"{BASE}/{path}": answer for path, answer in by_path.items()}
        # The address that the counts had before there was an API.
        patterns["/status.json"] = by_path["status"]
        routes = [
            Route(pattern=path, answer=_with_faults(answer), slots=self._slots) for path, answer in patterns.items()
        ]
        return [*routes, Route(pattern=f"{BASE}/events", answer=self._events.stream, slots=self._events.slots)]

    def _answer(self, view: Callable[[PageRequest], Awaitable[Any]], *names: str) -> Answerer:

        async def answer(call: PageRequest) -> web.StreamResponse:
            only(call.query, *names)
            return await self._json(call, await view(call))

        return answer

    async def _history(self, call: PageRequest) -> web.StreamResponse:
        answer = await self._views.history(history_question(call.query, self._clock.now()))
        document, headers = (answer, None) if isinstance(answer, NotFound) else (answer[0], {LAST: str(answer[1])})
        return await self._json(call, document, headers)

    async def _explanation(self, call: PageRequest) -> Any:
        view = await self._views.object(*object_in_path(call.parts))
        gone = NotFound(why="the store has it no longer, so there is nothing to explain")
        return view if isinstance(view, NotFound) else view.explanation or gone

    async def _cluster(self, call: PageRequest) -> web.StreamResponse:
        only(call.query, "offset")
        view = await self._views.cluster(call.parts["name"], offset(call.query))
        if view is None:
            names = ", ".join(head.name for head in (await self._views.clusters())[:_NAMED])
            return await self._json(call, NotFound(why=f"there is no such cluster; there is {names or 'none'}"))
        return await self._json(call, view)

    async def _json(self, call: PageRequest, value: Any, headers: Mapping[str, str] | None = None) -> web.Response:
        """Return the value as JSON; reuse the bytes of the same value."""
        if isinstance(value, NotFound):
            listed = "`/api/v1/matrix?kind=*` lists what there is"
            todo = f"did you mean {' or '.join(value.close)}?" if value.close else listed
            return fault(HTTPStatus.NOT_FOUND, value.why, todo)
        known = self._packed.get(id(value))
        if known is None or known[0] is not value:
            if len(self._packed) >= _PACKED_MAX:
                self._packed.clear()
            known = (value, await self._views.apart(packed, value))
            self._packed[id(value)] = known
        return tagged(call.request, known[1], headers)


def _with_faults(answer: Answerer) -> Answerer:
    async def answered(call: PageRequest) -> web.StreamResponse:
        try:
            return await answer(call)
        except BadQuery as error:
            return fault(HTTPStatus.BAD_REQUEST, str(error), "docs/reference/api.md says what may be asked")
        except NotShown as error:
            todo = "ask again in a moment; `/readyz` says how it is"
            refused = fault(HTTPStatus.SERVICE_UNAVAILABLE, str(error), todo)
            refused.headers["Retry-After"] = "5"
            return refused

    return answered


BEAT_S: Final = 15.0
"""Interval of comments that show a living connection without events."""
_STREAM_BUFFER_BYTES: Final = 16_384


class Events:
    """Those who listen. Source: HTML Living Standard, "Server-sent events"."""

    def __init__(self, status: StatusStore, limits: ReaderLimits, *, beat_s: float = BEAT_S) -> None:
        self._status, self._limits, self._beat_s = status, limits, beat_s
        self._stopped = asyncio.Event()
        self.slots = Slots("streams", limits.streams, limits.streams_of_one)

    def stop(self) -> None:
        """End all streams now, and begin none."""
        self._stopped.set()

    async def stream(self, call: PageRequest) -> web.StreamResponse:
        """Send `event: round` with the round and its time: at once, and at each change of the view."""
        request = call.request
        if self._stopped.is_set():
            return fault(HTTPStatus.SERVICE_UNAVAILABLE, "no more listeners are accepted now", "ask again in a moment")
        headers = {**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
        answer = web.StreamResponse(headers=headers)
        answer.force_close()
        if request.method == "HEAD":
            await answer.prepare(request)
            return answer
        peer = request.transport.get_extra_info("socket") if request.transport is not None else None
        if peer is not None:
            # Have the kernel keep little of a stream whose reader falls behind.
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _STREAM_BUFFER_BYTES)
        # A reader that went, or takes nothing any more.
        with suppress(ConnectionResetError, TimeoutError):
            async with asyncio.timeout(self._limits.stream_s):
                await answer.prepare(request)
                await self._stream(answer)
        return answer

    async def _stream(self, answer: web.StreamResponse) -> None:
        moment = self._status.moment
        await answer.write(self._message())
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._beat_s):
                    await first_of(self._status.changed(moment), self._stopped.wait())
            if self._stopped.is_set():
                return
            is_new = self._status.moment != moment
            moment = self._status.moment
            await answer.write(self._message() if is_new else b": alive\n\n")

    def _message(self) -> bytes:
        picture = self._status.snapshot.picture
        data = {"round": picture.number if picture else 0, "time": picture.time if picture else None}
        return f"event: round\nid: {self._status.moment}\ndata: {json.dumps(data)}\n\n".encode()
