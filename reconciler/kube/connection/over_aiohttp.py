"""A session over aiohttp: for a service, whose connections live long, and for whatever goes through a proxy."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from multidict import CIMultiDict
from yarl import URL

from reconciler.kube.connection.http_client import aiohttp, system_tls
from reconciler.kube.connection.session import Call, SessionFault, reason
from reconciler.kube.connection.tls import keep_tls_buffers_small

_NOT_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_KEPT_S = 75.0
"""So long a connection that is idle may be used again."""
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)


class AiohttpSession:
    """Without cookies, redirects or environment; its only limits are our own."""

    def __init__(self) -> None:
        """No pool of connections is open yet."""
        self._pools: dict[int, aiohttp.ClientSession] = {}

    def pool(self, number: int) -> aiohttp.ClientSession:
        """The pool of this number."""
        pool = self._pools.get(number)
        if pool is None:
            pool = self._pools[number] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, keepalive_timeout=_KEPT_S),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=_NO_TIMEOUT,
                trust_env=False,
            )
        return pool

    async def close(self) -> None:
        """Close every pool."""
        for pool in self._pools.values():
            await pool.close()

    @asynccontextmanager
    async def request(self, call: Call) -> AsyncIterator[AiohttpResponse]:
        """See Session."""
        plain: ssl.SSLContext | bool = system_tls() if call.proxy.startswith("https:") else True
        try:
            async with self.pool(call.pool).request(
                call.method,
                URL(call.url, encoded=True),
                data=call.body or None,
                headers=CIMultiDict(call.headers),
                ssl=call.tls or plain,
                server_hostname=call.tls_server_name or None,
                proxy=call.proxy or None,
                allow_redirects=False,
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=call.connect_s, sock_read=call.silence_s),
            ) as response:
                yield AiohttpResponse(response)
        except aiohttp.ClientError as error:
            raise _fault(error) from error


class AiohttpResponse:
    """An answer as aiohttp has it."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        """Its head has come in."""
        self.response = response
        self.status: int = response.status
        self.headers: Mapping[str, str] = response.headers
        self.content = response.content

    def hang_up(self) -> None:
        """See Response."""
        connection = self.response.connection
        if connection is not None and connection.transport is not None and not self.content.at_eof():
            connection.transport.abort()


@asynccontextmanager
async def open_session() -> AsyncIterator[AiohttpSession]:
    """A session that is closed with the block, in its loop."""
    keep_tls_buffers_small()
    session = AiohttpSession()
    try:
        yield session
    finally:
        await session.close()


def _fault(error: aiohttp.ClientError) -> SessionFault:
    """The library's error, which holds that of the system or of TLS, as ours."""
    system, certificate = getattr(error, "os_error", None), getattr(error, "certificate_error", None)
    inner = system or error
    host = getattr(error, "host", None)
    return SessionFault(
        reason(system or certificate or error, f"{host}:{getattr(error, 'port', '')}" if host else ""),
        is_sent=not isinstance(error, _NOT_CONNECTED),
        is_timeout=isinstance(error, TimeoutError),
        is_cut_off=isinstance(error, aiohttp.ClientPayloadError),
        is_about_certificates=any(
            isinstance(found, ssl.SSLError) for found in (error, system, certificate, error.__cause__)
        ),
        errno=inner.errno if isinstance(inner, OSError) else None,
    )
