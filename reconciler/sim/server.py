"""A thin loopback HTTP face for an embedded cluster: HTTP/1.1 on 127.0.0.1, chunked watches, faults."""

from __future__ import annotations

import asyncio
import socket
import sys
import weakref
from contextlib import suppress
from typing import Any

import orjson
import yaml
from aiohttp import web

from reconciler.sim.api.http import Answer, Request
from reconciler.sim.api.watches import Watch
from reconciler.sim.cluster import Cluster
from reconciler.sim.faults import Fault, FaultKind, Faults
from reconciler.sim.objects.status import Body, Refused

_BODY_MAX = 3 * 1024 * 1024
_BOOKMARK_S = 30.0
_LAST_BOOKMARK_S = 2.0
"""A watch gets a bookmark this long before its end, for the next one to continue."""
_TICK_S = 0.05


class ClusterServer:
    """Serves one cluster on a port of its own, which it keeps over `stop` and `start`."""

    def __init__(self, cluster: Cluster, *, faults: Faults | None = None, speed: float | None = 1.0) -> None:
        """With a speed the model follows the wall clock that much faster; with None only the owner advances it."""
        self.cluster = cluster
        self.faults = faults or Faults()
        self.speed = speed
        self.port = 0
        self._runner: web.ServerRunner | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._changed = asyncio.Event()
        self._running = asyncio.Event()
        self._running.set()
        cluster.on_change.append(self._changed.set)

    @property
    def url(self) -> str:
        """Base URL."""
        return f"http://127.0.0.1:{self.port}"

    async def start(self) -> None:
        """Listen: on a free port at first, on the same one later, with the memory of a server that has just begun."""
        assert self._runner is None, f"{self.cluster.name} is already served"
        if self.port:
            self.cluster.state.store.compact()
        else:
            self.port = reserved_port(self)
        self._runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", self.port, reuse_address=True).start()
        if self.speed is not None:
            self._tasks.append(asyncio.create_task(self._follow_clock(self.speed)))

    async def stop(self) -> None:
        """Close the port and every connection: new ones are refused."""
        runner, self._runner = self._runner, None
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        if runner is not None:
            _break_connections(runner)
            await runner.cleanup()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    def break_connections(self) -> None:
        """Break every open connection, watches too; new ones are served."""
        if self._runner is not None:
            _break_connections(self._runner)

    def pause(self) -> None:
        """Accept connections and answer nothing, as a cluster behind a broken network does."""
        self._running.clear()

    def resume(self) -> None:
        """Answer again, and answer the waiting requests."""
        self._running.set()

    async def _follow_clock(self, speed: float) -> None:
        loop = asyncio.get_running_loop()
        began, origin_s = loop.time(), self.cluster.now_s
        while True:
            await asyncio.sleep(_TICK_S)
            self.cluster.advance(max(self.cluster.now_s, origin_s + (loop.time() - began) * speed))

    async def _handle(self, raw: web.BaseRequest) -> web.StreamResponse:
        await self._running.wait()
        try:
            request = await _request_of(raw)
        except Refused as refused:
            return _plain(Answer(status=refused.code, body=refused.body))
        delay_s = self.faults.delay_s(request)
        if delay_s:
            await asyncio.sleep(delay_s)
        fault = self.faults.draw(request)
        if fault is not None:
            return await self._struck(raw, request, fault)
        answer = self._answered(request)
        if answer.watch is None:
            return _plain(answer)
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(raw)
        with suppress(ConnectionError):  # the client need not say that it stops watching
            await self._stream(response, answer.watch)
        return response

    def _answered(self, request: Request) -> Answer:
        answer = self.cluster.request(request)
        if request.method != "GET":
            self.cluster.run_controllers()
        return answer

    async def _struck(self, raw: web.BaseRequest, request: Request, fault: Fault) -> web.StreamResponse:
        match fault.kind:
            case FaultKind.RESET:
                return _reset(raw)
            case FaultKind.LOST_RESPONSE:
                self._answered(request)
                return _reset(raw)
            case FaultKind.HANGING:
                await self.faults.over.wait()
                return _reset(raw)
            case FaultKind.WATCH_ENDS:
                return web.Response(content_type="application/json")
            case FaultKind.WATCH_SILENT:
                response = web.StreamResponse(headers={"Content-Type": "application/json"})
                await response.prepare(raw)
                await self.faults.over.wait()
                return response
            case FaultKind.HTML:
                return web.Response(text="<html><body>Welcome</body></html>", content_type="text/html")
            case FaultKind.TRUNCATED:
                return await _truncated(raw, self._answered(request))
            case FaultKind.PARTIAL_LIST | FaultKind.EMPTY_LIST:
                return _plain(_shortened(self._answered(request), is_empty=fault.kind == FaultKind.EMPTY_LIST))
        return _refusal(fault)

    async def _stream(self, response: web.StreamResponse, watch: Watch) -> None:
        now_s = asyncio.get_running_loop().time
        ends_s = now_s() + watch.timeout_s
        bookmark_s = _next_bookmark_s(now_s(), ends_s)
        while True:
            changed = self._changed
            for event in watch.poll():
                await response.write(orjson.dumps(event) + b"\n")
            if watch.ended or now_s() >= ends_s:
                return
            if now_s() >= bookmark_s:
                bookmark_s = _next_bookmark_s(now_s(), ends_s)
                if watch.has_bookmarks:
                    await response.write(orjson.dumps(watch.bookmark()) + b"\n")
            with suppress(TimeoutError):
                await asyncio.wait_for(changed.wait(), min(bookmark_s, ends_s) - now_s())
            if changed.is_set() and changed is self._changed:
                self._renew()

    def _renew(self) -> None:
        """Every watch that waits on the old event has been woken; the next change sets a new one."""
        self.cluster.on_change.remove(self._changed.set)
        self._changed = asyncio.Event()
        self.cluster.on_change.append(self._changed.set)


def _next_bookmark_s(now_s: float, ends_s: float) -> float:
    last_s = ends_s - _LAST_BOOKMARK_S
    return min(now_s + _BOOKMARK_S, last_s) if now_s < last_s else ends_s


def _break_connections(runner: web.ServerRunner) -> None:
    assert runner.server is not None
    for connection in list(runner.server.connections):
        if connection.transport is not None:
            connection.transport.abort()


def reserved_port(owner: object) -> int:
    """A port that nobody else is given until its owner is gone, also while nothing listens there.

    A bound socket that never listens holds it: bound later, when the listener has closed, it can find the port taken
    by a client of any process. Only Linux lets a listener bind the port beside it.
    """
    with socket.socket() as place:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        place.bind(("127.0.0.1", 0))
        port: int = place.getsockname()[1]
        if sys.platform == "linux":
            weakref.finalize(owner, socket.close, place.detach())
        return port


async def _request_of(raw: web.BaseRequest) -> Request:
    body = await raw.content.read(-1) if raw.can_read_body else b""
    if len(body) > _BODY_MAX:
        raise Refused(413, "RequestEntityTooLarge", f"limit is {_BODY_MAX}")
    return Request(
        method=raw.method,
        path=raw.path,
        query=dict(raw.query),
        body=_parsed(body, raw.content_type) if body else None,
        content_type=raw.content_type,
        accept=raw.headers.get("Accept", "application/json"),
        user_agent=raw.headers.get("User-Agent", ""),
    )


def _parsed(body: bytes, content_type: str) -> Any:
    try:
        if content_type.endswith("yaml") and not body.lstrip().startswith((b"{", b"[")):
            return yaml.safe_load(body)
        return orjson.loads(body)
    except (orjson.JSONDecodeError, yaml.YAMLError) as error:
        if "protobuf" in content_type:
            raise Refused(415, "UnsupportedMediaType", "the embedded member cluster speaks JSON only", {}) from error
        raise Refused(400, "BadRequest", f"error decoding the body: {error}") from error


def _plain(answer: Answer) -> web.Response:
    if answer.text is not None:
        kind = answer.content_type if answer.content_type != "application/json" else "text/plain"
        return web.Response(status=answer.status, body=answer.text.encode(), headers={"Content-Type": kind})
    headers = {"Content-Type": answer.content_type, **answer.headers}
    return web.Response(status=answer.status, body=orjson.dumps(answer.body), headers=headers)


def _reset(raw: web.BaseRequest) -> web.Response:
    if raw.transport is not None:
        raw.transport.abort()
    return web.Response()


async def _truncated(raw: web.BaseRequest, answer: Answer) -> web.StreamResponse:
    body = orjson.dumps(answer.body)
    response = web.StreamResponse(status=answer.status, headers={"Content-Type": "application/json"})
    response.content_length = len(body)
    await response.prepare(raw)
    await response.write(body[: len(body) // 2])
    if raw.transport is not None:
        raw.transport.close()
    return response


def _shortened(answer: Answer, *, is_empty: bool) -> Answer:
    body = answer.body
    if not isinstance(body, dict) or "items" not in body or "resourceVersion" not in body["metadata"]:
        return answer  # a discovery document, or one object
    metadata = {"resourceVersion": body["metadata"]["resourceVersion"]}
    items = [] if is_empty else body["items"][: len(body["items"]) // 2]
    return Answer(status=answer.status, body={**body, "metadata": metadata, "items": items})


_NO_ACCOUNT = (
    'pods "app" is forbidden: error looking up service account demo/default: serviceaccount "default" not found'
)


def _refusal(fault: Fault) -> web.Response:
    if fault.kind == FaultKind.UNKNOWN:
        return _plain(Answer(status=404, text="404 page not found\n"))
    code, reason, message = {
        FaultKind.THROTTLED: (429, "TooManyRequests", "the server has received too many requests"),
        FaultKind.INTERNAL: (500, "InternalError", "an error on the server has prevented the request from succeeding"),
        FaultKind.UNAVAILABLE: (503, "ServiceUnavailable", "the server is currently unable to handle the request"),
        FaultKind.EXPIRED: (410, "Expired", "the provided resource version is too old"),
        FaultKind.FORBIDDEN: (403, "Forbidden", "forbidden: the permission was taken away"),
        FaultKind.NO_ACCOUNT: (403, "Forbidden", _NO_ACCOUNT),
        FaultKind.NOT_ALLOWED: (
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        ),
        FaultKind.UNAUTHORIZED: (401, "Unauthorized", "Unauthorized"),
    }[fault.kind]
    body: Body = Refused(code, reason, message).body
    headers: dict[str, str] = {}
    if fault.kind in (FaultKind.THROTTLED, FaultKind.UNAVAILABLE) and fault.retry_after_s is not None:
        headers["Retry-After"] = str(fault.retry_after_s)
    return _plain(Answer(status=code, body=body, headers=headers))
