"""Serves the pages from views of the test's making, with their stream of events; can fall silent and come back."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from aiohttp import web

from reconciler.report.views import FILTERS, FOLDS, HistoryQuery, MatrixQuery, NotFound
from reconciler.server.pages import (
    CONTENT_SECURITY_POLICY,
    STATIC_FILES,
    cluster_page,
    fleet_page,
    history_page,
    not_found_page,
    object_page,
    problems_page,
)
from reconciler.sim import reserved_port
from tests.fakes.views import NOW, Views, day


class PageServer:
    """A server in a thread of its own, so that tests may drive a browser in theirs. `views` may be set at any time."""

    def __init__(self, views: Views) -> None:
        """Serve these on a port of loopback that stays the same over `stop` and `start`."""
        self.views = views
        self.now = NOW
        self.asked: list[str] = []
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="pages")
        self._thread.start()
        self._streams: set[web.StreamResponse] = set()
        self._runner: web.ServerRunner | None = None
        self.port = reserved_port(self)
        self.start()

    @property
    def url(self) -> str:
        """Return where it is served, without a stroke at the end."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Answer, again."""
        self._do(self._start())

    def stop(self) -> None:
        """End every connection, and refuse new ones."""
        self._do(self._stop())

    def close(self) -> None:
        self.stop()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def tell_round(self) -> None:
        """Say to every page that another round has ended."""
        self._do(self._tell())

    def listeners(self) -> int:
        """Return how many pages listen."""
        return len(self._streams)

    def _do(self, made: Any) -> None:
        waited: Future[None] = asyncio.run_coroutine_threadsafe(made, self._loop)
        waited.result(60)

    async def _start(self) -> None:
        runner = web.ServerRunner(web.Server(self._answer), shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port).start()
        self._runner = runner

    async def _stop(self) -> None:
        if self._runner is not None:
            for stream in self._streams:
                with contextlib.suppress(ConnectionError):
                    await stream.write_eof()
            runner, self._runner = self._runner, None
            await runner.cleanup()

    async def _tell(self) -> None:
        for stream in list(self._streams):
            with contextlib.suppress(ConnectionError):  # a page that was left meanwhile
                await stream.write(b'event: round\ndata: {"round": 813}\n\n')

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked.append(request.path_qs)
        if request.path == "/api/v1/events":
            return await self._stream(request)
        headers = {"Content-Security-Policy": CONTENT_SECURITY_POLICY, "X-Content-Type-Options": "nosniff"}
        if request.path in STATIC_FILES:
            file = STATIC_FILES[request.path]
            return web.Response(body=file.content, content_type=file.content_type, charset="utf-8", headers=headers)
        status, html = self._page(request.path.split("/")[1], request.query)
        return web.Response(status=status, text=html, content_type="text/html", headers=headers)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-store"})
        await stream.prepare(request)
        await stream.write(b"retry: 100\n\n")
        self._streams.add(stream)
        try:
            while not (request.transport is None or request.transport.is_closing() or self._runner is None):
                await asyncio.sleep(0.01)  # aiohttp tells nobody that a transport closes
        finally:
            self._streams.discard(stream)
        return stream

    def _page(self, first: str, query: Any) -> tuple[int, str]:
        views, now = self.views, self.now
        texts: dict[str, Any] = {name: query.get(name, "") for name in (*(each.name for each in FILTERS), *FOLDS)}
        asked = MatrixQuery(**texts, troubles="troubles" in query)
        drawn: dict[str, Callable[[], str]] = {
            "": lambda: fleet_page(views.fleet, views.matrix, asked, now),
            "objects": lambda: object_page(views.fleet, views.object, views.live if "cluster" in query else None, now),
            "clusters": lambda: cluster_page(views.fleet, views.cluster, now),
            "problems": lambda: problems_page(views.fleet, views.problems, now),
            "history": lambda: history_page(views.fleet, views.fleet.events, HistoryQuery(), day(), now),
        }
        if first not in drawn:
            return 404, not_found_page(views.fleet, NotFound(why="there is no such page"), now)
        return 200, drawn[first]()
