"""The HTTP session of all requests to clusters (aiohttp), shared TLS contexts, and small buffers of TLS connections.

Imported, aiohttp makes two TLS contexts with every authority of the system (40 ms) for requests that bring none; ours
bring one, so those two trust nobody. A context with the system's authorities takes 0.8 MiB and 19 ms: clusters with the
same certificates share one. asyncio gives a connection 256 KiB of buffer; a TLS record has at most 16 KiB (RFC 8446,
section 5.1), and hundreds of watches are nearly always silent.
"""

from __future__ import annotations

import os
import ssl
import sys
from asyncio.sslproto import SSLProtocol
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import cache
from hashlib import sha256
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

from msgspec import Struct
from multidict import CIMultiDict
from yarl import URL

from reconciler.kube.connection.kubeconfig import MemberConfig
from reconciler.secret_files import is_loopback


@contextmanager
def _without_authorities() -> Iterator[None]:
    """Hide the system's authorities from OpenSSL meanwhile."""
    paths = ssl.get_default_verify_paths()
    names = (paths.openssl_cafile_env, paths.openssl_capath_env)
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(dict.fromkeys(names, os.devnull))
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


with _without_authorities():
    import aiohttp

__all__ = ["aiohttp", "system_tls"]


@cache
def system_tls() -> ssl.SSLContext:
    """Return the TLS context that trusts the authorities of the system, made when it is first needed."""
    return ssl.create_default_context()


_NOT_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_POOLS: Final = 32
"""So many pools of connections there are. One that is left for the next is empty long before its turn comes again."""
_KEPT_S: Final = 75.0
"""So long a connection that is idle may be used again."""


class Session:
    """Without cookies, redirects or environment; its only limits are our own."""

    def __init__(self) -> None:
        self._pools: dict[int, aiohttp.ClientSession] = {}

    def pool(self, number: int) -> aiohttp.ClientSession:
        """Return the pool of this number."""
        number %= _POOLS
        if number not in self._pools:
            connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, keepalive_timeout=_KEPT_S)
            self._pools[number] = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._pools[number]

    async def close(self) -> None:
        """Close every pool."""
        for pool in self._pools.values():
            await pool.close()

    @asynccontextmanager
    async def request(self, call: Call) -> AsyncIterator[aiohttp.ClientResponse]:
        """Yield the response, whatever its status. Raises SessionFault, also while its body is read."""
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
                try:
                    yield response
                finally:
                    # Drop the connection if the body was not read to its end: a farewell over TLS would outlive the
                    # session.
                    connection = response.connection
                    if connection is not None and connection.transport is not None and not response.content.at_eof():
                        connection.transport.abort()
        except aiohttp.ClientError as error:
            raise _fault(error) from error


@asynccontextmanager
async def open_session() -> AsyncIterator[Session]:
    """Yield a session that is closed with the block, in its loop."""
    # Of connections that are opened from now on, in the whole process.
    SSLProtocol.max_size = min(SSLProtocol.max_size, TLS_BUFFER_BYTES)
    session = Session()
    try:
        yield session
    finally:
        await session.close()


def _fault(error: aiohttp.ClientError) -> SessionFault:
    """Return the library's error, which holds that of the system or of TLS, as ours."""
    system, certificate = getattr(error, "os_error", None), getattr(error, "certificate_error", None)
    inner = system or error
    host = getattr(error, "host", None)
    return SessionFault(
        reason(system or certificate or error, f"{host}:{getattr(error, 'port', '')}" if host else ""),
        is_sent=not isinstance(error, _NOT_CONNECTED),
        is_timeout=isinstance(error, TimeoutError),
        is_cut_off=isinstance(error, aiohttp.ClientPayloadError),
        is_about_certificates=any(
            isinstance(one, ssl.SSLError) for one in (error, system, certificate, error.__cause__)
        ),
        errno=inner.errno if isinstance(inner, OSError) else None,
    )


class SharedContexts:
    """TLS contexts in use, by a digest of their parts."""

    def __init__(self) -> None:
        self._contexts: WeakValueDictionary[bytes, ssl.SSLContext] = WeakValueDictionary()

    def of(
        self, parts: Iterable[bytes], make: Callable[[], ssl.SSLContext], *, is_anew: bool = False
    ) -> ssl.SSLContext:
        """Return the context of these parts, made if nobody uses one. `is_anew`: in any case, to end its connections.

        `parts`: everything that distinguishes it, the expected name of the server among them: a connection that was
        opened under one name must not serve a cluster with another one.
        """
        digest = sha256()
        for part in parts:
            digest.update(b"%d:" % len(part))
            digest.update(part)
        context = self._contexts.get(digest.digest())
        if context is None or is_anew:
            context = self._contexts[digest.digest()] = make()
        return context


def system_authorities() -> bytes:
    """Return a stamp of the system's authorities: their paths and modification times."""
    paths = ssl.get_default_verify_paths()
    stamps = []
    for path in filter(None, (paths.cafile, paths.capath)):
        try:
            stamps.append(f"{path} {Path(path).stat().st_mtime_ns}")
        except OSError:
            stamps.append(path)
    return "\n".join(stamps).encode()


TLS_BUFFER_BYTES: Final = 16 * 1024
"""Of each connection. A record that does not fit comes in two reads."""


_SECONDS_DIGITS = 12


class Call(Struct, frozen=True, kw_only=True):
    """One request. `url` is encoded as it is sent; `tls`: for `https:`; `silence_s`: an answer may pause so long."""

    method: str
    url: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""
    tls: ssl.SSLContext | None = None
    tls_server_name: str = ""
    proxy: str = ""
    connect_s: float
    silence_s: float | None = None
    pool: int = 0
    """Of connections that may be used again; one of another pool never is."""


@dataclass(eq=False, repr=False)
class SessionFault(Exception):
    """There is no answer, or no whole one.

    `message`: the error in the words of the library or the system. `is_sent` False: the server did not get the request.
    `is_timeout`: nothing came in time. `is_cut_off`: the body ended too early. `is_about_certificates`: TLS failed.
    `errno`: of the system's error, if it was one.
    """

    message: str
    is_sent: bool = True
    is_timeout: bool = False
    is_cut_off: bool = False
    is_about_certificates: bool = False
    errno: int | None = None


def reason(error: BaseException, place: str = "") -> str:
    """Return the error in words: the system's own for a connection, with the place (`host:port`) if there is one."""
    if isinstance(error, ConnectionError) and error.errno:
        return os.strerror(error.errno).lower() + (f" by {place}" if place else "")
    return str(error) or type(error).__name__


def retry_after_s(value: str, now_s: float) -> float | None:
    """Return the seconds of a Retry-After header, in either form; None: it tells none. Source: RFC 9110, 10.2.3."""
    if value.isdecimal() and value.isascii():
        return float(value[:_SECONDS_DIGITS])
    try:
        moment = parsedate_to_datetime(value)
        return max(0.0, moment.timestamp() - now_s) if moment.tzinfo is not None else None
    except (ValueError, TypeError, OverflowError):
        return None


def proxy_of(config: MemberConfig) -> str:
    """Return the proxy to the cluster; empty: none, as to the pod's own cluster."""
    return "" if config.is_in_cluster else config.proxy_url or proxy_of_environment(config.server)


def proxy_of_environment(server: str) -> str:
    """Return the proxy that HTTPS_PROXY and NO_PROXY name for the server, as for kubectl; loopback never has one."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    is_named = sys.platform != "linux" or any(name.lower().endswith("_proxy") for name in os.environ)
    if is_loopback(host) or not is_named:
        return ""
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415 - 10 ms that few need

    if proxy_bypass(host) or _is_in_bypassed_network(host, getproxies().get("no", "")):
        return ""
    return getproxies().get(parts.scheme, "")


def _is_in_bypassed_network(host: str, bypassed: str) -> bool:
    """Return whether NO_PROXY has a network (10.0.0.0/8) of the address. The standard library knows only names."""
    with suppress(ValueError):
        address = ip_address(host)
        for entry in bypassed.split(","):
            with suppress(ValueError):
                if "/" in entry and address in ip_network(entry.strip(), strict=False):
                    return True
    return False
