"""One POST to an address of an operator: no redirect, no cookie, deadlines, no more of the answer than is needed."""

from __future__ import annotations

import hashlib
import os
import random
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import urlsplit

from msgspec import Struct, field
from yarl import URL

from reconciler.clock import BackOff, epoch_s
from reconciler.errors import ConfigurationError
from reconciler.kube.connection.session import aiohttp, proxy_of_environment, retry_after_s, system_tls
from reconciler.secret_files import is_loopback

BACK_OFF: Final = BackOff(least_s=1.0, most_s=300.0)
ASKED_MAX_S: Final = 3600.0
"""A receiver may ask for this long and no longer."""

TIMEOUT_S: Final = 10.0
_CONNECT_S: Final = 5.0
_USER_AGENT: Final = "fleet-reconciler"


class Reply(Struct, frozen=True, kw_only=True):
    """The result of a POST. `status` 0: no answer, `why` has the reason. `headers`: names in lower case."""

    status: int = 0
    why: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def is_taken(self) -> bool:
        """Return whether the receiver accepted it."""
        return 200 <= self.status < 300


class Poster:
    """Sends over one session, one request after the other for each caller."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        """Take over a session; use `open`."""
        self._session = session

    @classmethod
    @asynccontextmanager
    async def open(cls) -> AsyncIterator[Poster]:
        """A poster over a session of its own, which ends with the block."""
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=8, ttl_dns_cache=60, ssl=system_tls()),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=TIMEOUT_S, sock_connect=_CONNECT_S),
            trust_env=False,
            auto_decompress=False,
        )
        async with session:
            yield cls(session)

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, answer_max_bytes: int = 0) -> Reply:
        """Post the body; return the result. `answer_max_bytes`: the part of the answer to read; the rest is left."""
        sent = {"User-Agent": _USER_AGENT, "Accept-Encoding": "identity", **headers}
        try:
            async with self._session.post(
                # As written: a receiver may have signed this spelling.
                URL(url, encoded=True),
                data=body,
                headers=sent,
                allow_redirects=False,
                proxy=proxy_of_environment(url) or None,
            ) as response:
                content = b""
                while len(content) < answer_max_bytes:
                    part = await response.content.read(answer_max_bytes - len(content))
                    if not part:
                        break
                    content += part
                fields = {name.lower(): value for name, value in response.headers.items()}
                why = "" if 200 <= response.status < 300 else f"it answers {response.status}"
                return Reply(status=response.status, why=why, headers=fields, body=content)
        except TimeoutError:
            return Reply(why=f"no answer within {TIMEOUT_S:g} s")
        except (aiohttp.ClientError, OSError) as error:
            return Reply(why=_reason(error))


def _reason(error: Exception) -> str:
    """Return the reason. The text of the library may quote the address, which is a secret of the receiver's."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None)
    if isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
        return f"its certificate is not trusted, or TLS failed ({type(inner or error).__name__})"
    if isinstance(inner, OSError) and inner.errno and inner.errno > 0:
        return os.strerror(inner.errno).lower()
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "its name is not known"
    return f"the connection failed ({type(error).__name__})"


def pause_s(attempt: int, headers: Mapping[str, str], now: str, jitter: Callable[[], float] = random.random) -> float:
    """Return seconds after the nth failure (from 1): by `BACK_OFF`, at least as asked. Source: RFC 9110, 10.2.3."""
    return max(BACK_OFF.pause_s(attempt, jitter), min(_asked_s(headers, epoch_s(now)), ASKED_MAX_S))


def _asked_s(headers: Mapping[str, str], now_s: float) -> float:
    asked_s = retry_after_s(headers.get("retry-after", "").strip(), now_s)
    if asked_s is not None:
        return asked_s
    # GitHub sends the time of its next rate limit window.
    reset = headers.get("x-ratelimit-reset", "")
    if headers.get("x-ratelimit-remaining") == "0" and reset.isdecimal() and reset.isascii():
        return float(reset[:12]) - now_s
    return 0.0


class Deliveries(Struct, kw_only=True):
    """Counts since the start: `dropped` events, `pending` ones since `oldest_at`; `is_gone`: it takes none ever."""

    delivered: int = 0
    failed: int = 0
    dropped: int = 0
    pending: int = 0
    oldest_at: str = ""
    is_gone: bool = False


class Address(Struct, frozen=True, kw_only=True):
    """The address of a receiver. `str()` and `repr()` are fit for any output. `name`: of the receiver, among others."""

    url: str
    name: str

    @property
    def key(self) -> str:
        """Return the key in the journal: another address is another receiver."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:32]

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Address({self.name})"


def addresses(urls: Iterable[str], *, allows_http: bool) -> tuple[Address, ...]:
    """Return each URL once, by host and number. Raises ConfigurationError: no HTTP, or plain HTTP to elsewhere."""
    by_url: dict[str, Address] = {}
    hosts: dict[str, int] = {}
    for url in urls:
        if url in by_url:
            continue
        host = checked_host(url, allows_http=allows_http, option="--webhook")
        hosts[host] = hosts.get(host, 0) + 1
        by_url[url] = Address(url=url, name=host if hosts[host] == 1 else f"{host} ({hosts[host]})")
    return tuple(by_url.values())


def checked_host(url: str, *, allows_http: bool, option: str) -> str:
    """Return the host and port of a URL. Raises ConfigurationError, whose message holds no more of the URL."""
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        parts, host, port = urlsplit(""), "", None
    if not host or parts.scheme not in ("https", "http") or not url.isprintable() or " " in url:
        raise ConfigurationError(f"{option}: the address has to be a URL that begins with https://")
    named = f"[{host}]" if ":" in host else host
    named = f"{named}:{port}" if port is not None else named
    if parts.scheme == "http" and not allows_http and not is_loopback(host):
        raise ConfigurationError(
            f"{option}: http://{named} would be sent in plain text; use https://, or allow it with --allow-plain-http"
        )
    return named
