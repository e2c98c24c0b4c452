"""Read-only pages over HTTP, on loopback or a Unix socket; the address and a token decide who may read."""

from __future__ import annotations

import asyncio
import logging
import socket
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager, nullcontext, suppress
from functools import partial
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from aiohttp import web
from msgspec import Struct

from reconciler.clock import Clock
from reconciler.controller.tasks import once_set
from reconciler.controller.vitals.journal_documents import JournalReader
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import ConfigurationError
from reconciler.secret_files import credential_file, is_loopback, token_in
from reconciler.server import site as signs
from reconciler.server.api import Api, Events
from reconciler.server.live_objects import LiveObjects
from reconciler.server.live_views import LiveViews
from reconciler.server.routes import (
    CREDENTIAL,
    PageRequest,
    ReaderLimits,
    Route,
    Slots,
    TooMany,
    address_of,
    fault,
    has_token,
    is_for_us,
    plain,
    route_of,
)
from reconciler.server.site import Site
from reconciler.store.source import Commits

log = logging.getLogger("reconciler")

_LONGEST_LINE: Final = 4096
_HEADERS_MAX: Final = 64
_SILENCE_MS: Final = 60_000
"""The kernel ends a connection whose reader takes nothing of what was sent for so long."""
_LINGER_S: Final = 1.0
"""A body is of no use here: for so long it is read, so that its sender sees the answer."""
_RETRY_S: Final = "5"
_TURN_S: Final = 0.001
"""Time for which a busy round keeps the interpreter from a page that waits for it many times; Python's own is 5 ms."""

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Listening(Struct, frozen=True, kw_only=True):
    """The address to listen at, and the accepted clients.

    `address`: `HOST:PORT`, `[::1]:9180`, `unix:/run/fleet-reconciler/http.sock`, or None to serve nothing. `names`:
    accepted Host names, beside localhost, addresses and the host of `address`. `token_file`: clients must send its
    content; None: the file of systemd's credentials, if there is one. `page_logs`: readers see the last lines of broken
    pods' logs. `limits`: of readers; requests for health and
    metrics have none.
    """

    address: str | None
    names: tuple[str, ...] = ()
    token_file: Path | None = None
    page_logs: bool = False
    limits: ReaderLimits = ReaderLimits()

    def token(self) -> str:
        """Return the token; empty: none is asked for. Raises ConfigurationError: the file is unusable."""
        file = credential_file(self.token_file, CREDENTIAL)
        return token_in(file, "--listen-token-file") if file is not None else ""


def answering(routes: Sequence[Route], names: Collection[str] | None, token: str) -> Handler:
    """Return the answer to requests. `names`: accepted hosts, None: any. `token`: of pages not open; empty: none."""

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        if names is not None and not is_for_us(request.headers.getall("Host", []), names):
            # Else a foreign page, whose name was made to resolve here, could read the status in a browser.
            return plain(HTTPStatus.MISDIRECTED_REQUEST, "This name is not known here; see --listen-name")
        match = route_of(routes, request.rel_url.raw_path)
        is_open = match is not None and match[0].is_open
        if token and not is_open and not has_token(request.headers.getall("Authorization", []), token):
            # Before the page is looked up: its existence is not revealed.
            refused = plain(HTTPStatus.UNAUTHORIZED, "A token is asked for; see --listen-token-file")
            refused.headers["WWW-Authenticate"] = 'Basic realm="fleet-reconciler", charset="UTF-8"'
            refused.headers.add("WWW-Authenticate", 'Bearer realm="fleet-reconciler"')
            return refused
        if match is None:
            return plain(HTTPStatus.NOT_FOUND, HTTPStatus.NOT_FOUND.phrase)
        if request.method not in ("GET", "HEAD"):
            refused = plain(HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.METHOD_NOT_ALLOWED.phrase)
            refused.headers["Allow"] = "GET,HEAD"
            return refused
        route, parts = match
        with route.slots.slot(address_of(request.transport)) if route.slots is not None else nullcontext():
            return await route.answer(PageRequest(parts, dict(request.query), request))

    return answer


class _Request(web.BaseRequest):
    """A request whose answer does not name the library and its version."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.pop("Server", None)


class _Connection(web.RequestHandler):
    """A connection that answers malformed requests with a short line and logs nothing."""

    __slots__ = ("_server", "address", "is_answering")

    def __init__(self, server: _Server, **options: Any) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **options)
        self._server = server
        self.address: str | None = None
        self.is_answering = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or answer at once that there are too many connections."""
        assert isinstance(transport, asyncio.Transport), "of a stream socket"
        address = address_of(transport)
        try:
            self._server.admit(address)
        except TooMany as error:
            self.close()  # Nothing that still comes is read.
            head = f"HTTP/1.1 {error.status} {error.status.phrase}\r\nRetry-After: {_RETRY_S}\r\nConnection: close\r\n"
            transport.write(f"{head}Content-Type: text/plain\r\n\r\n{error}\n".encode())
            transport.close()
            return
        self.address = address
        peer = transport.get_extra_info("socket")
        if peer is not None and peer.family != socket.AF_UNIX and hasattr(socket, "TCP_USER_TIMEOUT"):
            # Have the kernel end it if its reader takes nothing any more. Source: tcp(7), TCP_USER_TIMEOUT.
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _SILENCE_MS)
        super().connection_made(transport)

    def connection_lost(self, exc: BaseException | None) -> None:
        self._release()
        super().connection_lost(exc)

    def end(self) -> None:
        self._release()
        if self.transport is not None:
            self.transport.abort()

    def _release(self) -> None:
        if self.address is not None:
            self._server.slots.release(self.address)
            self.address = None

    def handle_error(
        self, request: web.BaseRequest, status: int = 500, exc: BaseException | None = None, message: str | None = None
    ) -> web.StreamResponse:
        """The answer: never a word of the request, which the library's own pages repeat."""
        self.log_exception("a request could not be answered", exc_info=exc)
        if request.writer.output_size > 0:
            raise ConnectionError("a part of the answer is sent already")
        answer = plain(status, HTTPStatus(status).phrase)
        answer.force_close()
        return answer

    def log_exception(self, *args: Any, **kw: Any) -> None:
        """Anybody can make this happen as often as they like: it is no news."""
        log.debug(*args, **kw)


class _Server(web.Server):
    def __init__(self, handler: Handler, limits: ReaderLimits, **options: Any) -> None:
        # The slot of a reader that has gone is free at once.
        request = partial(_Request, loop=asyncio.get_running_loop())
        super().__init__(self._answer, request_factory=request, handler_cancellation=True)
        self.slots = Slots("connections", limits.connections, limits.connections_of_one)
        self._handler, self._limits, self._options = handler, limits, options
        self._reported: set[tuple[str, type[Exception]]] = set()

    def __call__(self) -> web.RequestHandler:
        return _Connection(self, keepalive_timeout=self._limits.idle_s, **self._options)

    def admit(self, address: str) -> None:
        """Take a slot, or that of the oldest idle connection (of its address if that has all). Raises TooMany."""
        try:
            self.slots.acquire(address)
        except TooMany as error:
            ours = (each for each in self.connections if isinstance(each, _Connection))
            is_any = error.status is not HTTPStatus.TOO_MANY_REQUESTS
            idle = (each for each in ours if each.connected and not each.is_answering)
            oldest = next((each for each in idle if is_any or each.address == address), None)
            if oldest is None:
                raise
            oldest.end()
            self.slots.acquire(address)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer, and send the answer within its time: a reader that does not take it keeps nothing here."""
        connection = request.protocol
        assert isinstance(connection, _Connection), "made here"
        connection.is_answering = True
        try:
            answer = await self._answer_or_fault(request)
            async with asyncio.timeout(self._limits.answer_s):
                await answer.prepare(request)
                await answer.write_eof()
        except TimeoutError:
            connection.end()
            raise ConnectionResetError("the answer was not taken in time") from None
        finally:
            connection.is_answering = False
        return answer

    async def _answer_or_fault(self, request: web.BaseRequest) -> web.StreamResponse:
        """The answer. An internal error is logged once for each page, and answered without its text."""
        try:
            return await self._handler(request)
        except TooMany as error:
            refused = fault(error.status, str(error), "ask again in a moment")
            refused.headers["Retry-After"] = _RETRY_S
            return refused
        except ConnectionResetError:
            raise
        except Exception as error:
            if (request.path, type(error)) not in self._reported:
                self._reported.add((request.path, type(error)))
                log.exception("a page could not be made", extra={"event": "InternalError", "obj": request.path})
            return plain(500, HTTPStatus.INTERNAL_SERVER_ERROR.phrase)


@asynccontextmanager
async def serving(
    listening: Listening, vitals: Vitals, clock: Clock, *, journal: Path, commits: Commits, stop: asyncio.Event
) -> AsyncIterator[str]:
    """Serve until the block ends; yield the address. `stop`: ends streams. Raises ConfigurationError: a bad address."""
    listen = listening.address
    if not listen:
        yield ""
        return
    token, limits = listening.token(), listening.limits
    looks = LiveObjects(vitals, clock, logs=listening.page_logs)
    views = LiveViews(vitals, clock, JournalReader(journal, commits, clock), looks)
    events = Events(vitals.status, limits)
    names = None if listen.startswith("unix:") else {*map(str.lower, listening.names), split_address(listen)[0]}
    slots = Slots("requests", limits.requests, limits.requests_of_one)
    pages = (*Api(views, events, clock, slots).routes(), *Site(views, clock, slots).routes())
    server = _Server(
        answering((*signs.routes(vitals, clock), *pages), names, token),
        limits,
        access_log=None,
        max_line_size=_LONGEST_LINE,
        max_field_size=_LONGEST_LINE,
        max_headers=_HEADERS_MAX,
        lingering_time=_LINGER_S,
        auto_decompress=False,
    )
    sys.setswitchinterval(_TURN_S)
    runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=1.0)
    await runner.setup()
    ending = asyncio.create_task(once_set(stop, events.stop))
    try:
        try:
            address = await _start(runner, listen, has_token=bool(token))
        except OSError as error:
            raise ConfigurationError(f"--listen {listen}: {error.strerror or error}; choose another address") from error
        log.info("pages are served", extra={"event": "Listening", "obj": address})
        yield address
    finally:
        events.stop()
        ending.cancel()
        with suppress(asyncio.CancelledError):
            await ending
        await runner.cleanup()
        await views.close()


async def _start(runner: web.ServerRunner, listen: str, *, has_token: bool) -> str:
    if listen.startswith("unix:"):
        path = Path(listen.removeprefix("unix:"))
        # asyncio takes away a socket that an earlier process left behind: the journal's lock lets only one run.
        await web.UnixSite(runner, str(path)).start()
        await asyncio.to_thread(path.chmod, 0o660)
        return listen
    host, port = split_address(listen)
    await web.TCPSite(runner, host, port).start()
    bound = runner.addresses[0]
    if not has_token and not is_loopback(bound[0]):
        log.warning(
            "the pages can be read by whoever reaches this address: names of clusters and objects, and what is wrong "
            "with them; --listen-token-file asks for a token",
            extra={"event": "Listening", "obj": listen},
        )
    name = f"[{bound[0]}]" if ":" in bound[0] else bound[0]
    return f"{name}:{bound[1]}"


def split_address(listen: str) -> tuple[str, int]:
    """Host and port.

    Raises ConfigurationError: it is not of the form HOST:PORT.

    >>> split_address("[::1]:9180")
    ('::1', 9180)
    """
    host, separator, port = listen.rpartition(":")
    host = host.strip("[]")
    if not separator or not host or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise ConfigurationError(f"--listen {listen}: write HOST:PORT (127.0.0.1:9180) or unix:PATH")
    return host, int(port)
