"""A session that starts in two milliseconds, for commands with a few requests.

Importing aiohttp takes a fifth of the time of a whole command that finds nothing to do. Such a command needs little of
HTTP, and httptools parses answers. Everything else goes to aiohttp, imported when it happens: proxies, credentials in
addresses, names of hosts that are no ASCII.
"""

from __future__ import annotations

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import SplitResult, urlsplit

from reconciler.kube.connection.answering import Answering
from reconciler.kube.connection.session import Call, Response, Session, SessionFault, reason
from reconciler.kube.connection.tls import keep_tls_buffers_small

if TYPE_CHECKING:
    from reconciler.kube.connection.over_aiohttp import AiohttpSession

KEPT_S: Final = 75.0
"""A connection that was idle for so long is not used again."""
_NEXT_ADDRESS_AFTER_S: Final = 0.25
"""Delay before the next address of a name is tried. Source: RFC 8305, section 5."""
_REPEATABLE = ("GET", "DELETE")
"""Sent again on a new connection when one that was kept turns out to have been closed. A DELETE carries a uid."""


class HttpOrigin(NamedTuple):
    """Requests to the same one share connections."""

    host: str
    port: int
    tls: ssl.SSLContext | None
    tls_server_name: str

    @property
    def place(self) -> str:
        """`host:port`, for people."""
        return f"{self.host}:{self.port}"


class Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self) -> None:
        """Not connected yet."""
        self.idle_since_s = 0.0
        self.is_open = False
        self._answering: Answering | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is open, with TLS if that is spoken."""
        assert isinstance(transport, asyncio.Transport)
        self._transport, self.is_open = transport, True

    def ask(self, request: bytes, silence_s: float | None) -> Answering:
        """Send a request; return its answer, still empty."""
        self._answering = Answering(self._pause, self.abort, silence_s)
        self._transport.write(request)
        return self._answering

    def rest(self) -> None:
        """Wait for the next request."""
        self._answering, self.idle_since_s = None, time.monotonic()

    def abort(self) -> None:
        """End it at once."""
        self.is_open = False
        self._transport.abort()

    def data_received(self, data: bytes) -> None:
        """Handle a part of the answer; unrequested data end the connection."""
        if self._answering is None:
            self.abort()
        else:
            self._answering.feed(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has ended, by whomever."""
        self.is_open = False
        if self._answering is not None:
            self._answering.end(exc)

    def _pause(self, is_paused: bool) -> None:
        if self.is_open:
            (self._transport.pause_reading if is_paused else self._transport.resume_reading)()


class LightSession:
    """Keeps connections until the session ends; bounds nothing by itself."""

    def __init__(self, stack: AsyncExitStack) -> None:
        """`stack`: ends with the session."""
        self._stack = stack
        self._kept: dict[HttpOrigin, list[Connection]] = {}
        self._other: AiohttpSession | None = None
        self._opening = asyncio.Lock()

    @asynccontextmanager
    async def request(self, call: Call) -> AsyncIterator[Response]:
        """See Session."""
        parts = urlsplit(call.url)
        if is_beyond(call, parts):
            async with (await self._aiohttp()).request(call) as other:
                yield other
            return
        origin = origin_of(call, parts)
        connection, answering = await self._asked(call, origin, head_of(call, parts) + call.body)
        try:
            yield answering
        finally:
            if answering.may_stay and connection.is_open:
                connection.rest()
                self._kept.setdefault(origin, []).append(connection)
            else:
                connection.abort()

    def close(self) -> None:
        """Close the kept connections."""
        for connections in self._kept.values():
            for connection in connections:
                connection.abort()
        self._kept.clear()

    async def _asked(self, call: Call, origin: HttpOrigin, request: bytes) -> tuple[Connection, Answering]:
        """The connection on which the head of the answer has come in."""
        while True:
            kept = self._taken(origin)
            connection = kept or await _connected(origin, call.connect_s)
            answering = connection.ask(request, call.silence_s)
            try:
                await answering.head()
            except BaseException as error:
                connection.abort()
                is_stale = kept is not None and not answering.has_begun and isinstance(error, SessionFault)
                if not (is_stale and call.method in _REPEATABLE):
                    raise
            else:
                return connection, answering

    def _taken(self, origin: HttpOrigin) -> Connection | None:
        """A kept connection that is still good."""
        kept = self._kept.get(origin, [])
        while kept:
            connection = kept.pop()
            if connection.is_open and time.monotonic() - connection.idle_since_s < KEPT_S:
                return connection
            connection.abort()
        return None

    async def _aiohttp(self) -> AiohttpSession:
        from reconciler.kube.connection.over_aiohttp import open_session  # noqa: PLC0415 - see above

        async with self._opening:
            if self._other is None:
                self._other = await self._stack.enter_async_context(open_session())
        return self._other


@asynccontextmanager
async def open_light_session() -> AsyncIterator[Session]:
    """A session that is closed with the block, in its loop."""
    keep_tls_buffers_small()
    async with AsyncExitStack() as stack:
        session = LightSession(stack)
        try:
            yield session
        finally:
            session.close()


def is_beyond(call: Call, parts: SplitResult) -> bool:
    """Return whether the call is left to aiohttp."""
    is_plain = parts.scheme == "http" or (parts.scheme == "https" and call.tls is not None)
    return bool(call.proxy) or not is_plain or "@" in parts.netloc or not parts.netloc.isascii()


def origin_of(call: Call, parts: SplitResult) -> HttpOrigin:
    """Return the origin of a call. Raises SessionFault if the address is invalid."""
    try:
        host, port = parts.hostname, parts.port
    except ValueError as error:
        raise SessionFault(str(error), is_sent=False) from error
    if not host:
        raise SessionFault("the address names no host", is_sent=False)
    is_tls = parts.scheme == "https"
    tls = call.tls if is_tls else None
    return HttpOrigin(host, port or (443 if is_tls else 80), tls, call.tls_server_name if is_tls else "")


def head_of(call: Call, parts: SplitResult) -> bytes:
    """Request line and headers. Raises SessionFault where one could be taken for two."""
    if re.fullmatch(r"[!-~]+", call.url) is None:
        raise SessionFault("the address holds characters that no request line may hold", is_sent=False)
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    host = parts.netloc.removesuffix(":443" if parts.scheme == "https" else ":80")
    headers = [("Host", host), ("Accept-Encoding", "gzip"), *call.headers]
    if call.body or call.method not in ("GET", "HEAD"):
        headers.append(("Content-Length", str(len(call.body))))
    lines = [f"{call.method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    if any(re.search(r"[\r\n\0]", line) for line in lines):
        raise SessionFault("a header holds the end of a line", is_sent=False)
    return ("\r\n".join(lines) + "\r\n\r\n").encode("utf-8", "surrogateescape")


async def _connected(origin: HttpOrigin, connect_s: float) -> Connection:
    """A new connection. Raises SessionFault."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(connect_s):
            _, connection = await loop.create_connection(
                Connection,
                origin.host,
                origin.port,
                ssl=origin.tls,
                server_hostname=(origin.tls_server_name or origin.host) if origin.tls is not None else None,
                happy_eyeballs_delay=None if _is_address(origin.host) else _NEXT_ADDRESS_AFTER_S,
            )
    except OSError as error:  # ssl.SSLError is one, and TimeoutError
        inner = error if error.errno is not None else one_for_all(error)
        raise SessionFault(
            reason(inner, origin.place),
            is_sent=False,
            is_timeout=isinstance(error, TimeoutError) and error.errno is None,
            is_about_certificates=isinstance(error, ssl.SSLError),
            errno=inner.errno,
        ) from error
    return connection


def _is_address(host: str) -> bool:
    return ":" in host or host.replace(".", "").isdigit()


def one_for_all(error: OSError) -> OSError:
    """Return one error for a host with several addresses: asyncio joins all errors in one text; use theirs if equal."""
    numbers = set(re.findall(r"\[Errno (\d+)\]", str(error)))
    if len(numbers) != 1:
        return error
    number = int(numbers.pop())
    return OSError(number, str(error))
