"""Requests to one API server over the session that all clusters share: bounds, deadlines, retries, breaker.

Every member is isolated: it has its own slots, breaker and credentials. What is shared is the event loop, the
connection pool, the TLS contexts of those who trust and show the same certificates, and a number of slots that a
request gives back when its answer is slow to come, so that clusters that have gone silent never hold up the others.
"""

from __future__ import annotations

import asyncio
import errno
import os
import random
import resource
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from ipaddress import ip_address, ip_network
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from multidict import CIMultiDict
from yarl import URL

from reconciler.adapters.clock import Clock
from reconciler.adapters.http_client import aiohttp, system_tls
from reconciler.adapters.kube.bounds.breaker import Breaker, BreakerSettings
from reconciler.adapters.kube.bounds.budget import Budget, SumBudget
from reconciler.adapters.kube.bounds.shared_contexts import SharedContexts
from reconciler.adapters.kube.bounds.shared_slots import SharedSlots
from reconciler.adapters.kube.bounds.shared_trees import SharedTrees
from reconciler.adapters.kube.bounds.tls_buffers import keep_tls_buffers_small
from reconciler.adapters.kube.credentials import Credentials
from reconciler.adapters.kube.errors import clean, refusal
from reconciler.adapters.kube.kubeconfig import MemberConfig
from reconciler.adapters.kube.requests import Purpose, Request
from reconciler.adapters.kube.timed import Answered, nobody, timed
from reconciler.errors import (
    AnswerTooLarge,
    BadAnswer,
    ClusterUnreachable,
    CredentialsRejected,
    MemberClusterError,
    Throttled,
)

_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_RAISE_LIMIT = "raise its limit (LimitNOFILE= of the unit, ulimit -n of the shell, --ulimit nofile= of the container)"
_BEFORE_VALUES = (b",", b"{", b"[")
"""Each value of a JSON text has one of these before it. Inside of strings they are counted too."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_GATEWAY_FAILURES = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
_NOT_CONNECTED = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError)
_NO_TIMEOUT = aiohttp.ClientTimeout(total=None, connect=None, sock_connect=None, sock_read=None)


MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class TransportSettings:
    """Bounds of what we ask of members and of ourselves."""

    in_flight_max: int = 16
    """Reads under way to one cluster, and as many writes; watches do not count."""
    in_flight_all_max: int = 64
    """Requests under way to all clusters that are answering promptly."""
    slow_after_s: float = 1.0
    """A request that has waited this long for its answer no longer counts among all."""
    connect_deadline_s: float = 10.0
    attempts_max: int = 4
    back_off_s: float = 0.25
    retry_after_max_s: float = 15.0
    """Asked to wait longer than this, the request is given up as Throttled, with the time that was asked for."""
    body_max_bytes: int = 32 * MIB
    """Of one answer. A page of a list that is larger is asked for again in smaller ones."""
    body_max_values: int = 1_000_000
    """Of one answer that is larger than `body_dense_bytes`: a value takes a hundred bytes, however short it is."""
    body_dense_bytes: int = 4 * MIB
    body_small_bytes: int = 1 * MIB
    """Of the answers of one cluster that are larger than this, one is received at a time."""
    answers_max_bytes: int = 256 * MIB
    """Of the answers of all clusters that are being received. From half of it on, a cluster is refused what is
    more than its part of that half; a list is then asked for in smaller pages."""
    lists_max_bytes: int = 256 * MIB
    """Of all lists of one cluster that are under way, over all of their pages."""
    watch_silence_max_s: float = 150.0
    """A watch that is silent for so long may be a half-open connection, and is ended. Bookmarks may keep it open."""
    breaker: BreakerSettings = field(default_factory=BreakerSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A successful answer."""

    status: int
    body: bytes = field(repr=False)
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shared:
    """What the members of a fleet have in common. `jitter` gives numbers in [0, 1)."""

    session: aiohttp.ClientSession
    slots: SharedSlots
    clock: Clock
    settings: TransportSettings
    jitter: random.Random
    answers: SumBudget
    trees: SharedTrees = field(default_factory=SharedTrees)
    contexts: SharedContexts = field(default_factory=SharedContexts)
    answered: Answered = nobody


def open_session() -> aiohttp.ClientSession:
    """A session without cookies, redirects or environment, whose only limits are our own. Close it in its loop."""
    keep_tls_buffers_small()
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=60, keepalive_timeout=75),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=_NO_TIMEOUT,
        trust_env=False,
    )


class Transport:
    """Sends requests to one cluster. Every way to fail is an exception from `errors.py`."""

    def __init__(self, config: MemberConfig, shared: Shared) -> None:
        """Nothing is connected before the first request."""
        self.name = config.name
        self.reading = Breaker(shared.clock.monotonic_s, shared.settings.breaker)
        self.writing = Breaker(shared.clock.monotonic_s, shared.settings.breaker)
        self._config = config
        self._shared = shared
        self._settings = shared.settings
        self._credentials = Credentials(config, shared.clock, shared.contexts)
        self._reads = asyncio.Semaphore(shared.settings.in_flight_max)
        self._writes = asyncio.Semaphore(shared.settings.in_flight_max)
        self._large = asyncio.Lock()
        self.answers = 0
        """Parts of answers that have come in, but for those of watches."""
        self.trees = shared.trees
        self.lists = Budget(config.name, shared.settings.lists_max_bytes)
        connect_s, silence_s = shared.settings.connect_deadline_s, shared.settings.watch_silence_max_s
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_s)
        self._watch_timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_s, sock_read=silence_s)
        self._proxy = proxy_of(config)
        self._plain: ssl.SSLContext | bool = system_tls() if self._proxy.startswith("https:") else True

    async def send(self, request: Request, user_agent: str) -> Answer:
        """The answer, after at most `attempts_max` attempts within the bounds.

        An error that `changed_nothing` says so of all attempts.
        """
        async with self._reads if request.purpose is Purpose.READ else self._writes:
            attempt, has_renewed, is_certain = 1, False, True
            while True:
                seen = self._credentials.generation
                try:
                    return await self._send_once(request, user_agent)
                except MemberClusterError as error:
                    is_certain = error.changed_nothing = error.changed_nothing and is_certain
                    if isinstance(error, CredentialsRejected):
                        if error.status != HTTPStatus.UNAUTHORIZED:
                            raise
                        if has_renewed:
                            raise self._credentials.refused(error) from error
                        has_renewed = True
                        await self._renew(max(seen, 1), is_certain=is_certain)
                        continue
                    pause_s = self._pause_s(request, error, attempt)
                    if pause_s is None:
                        raise
                    attempt += 1
                    await self._shared.clock.sleep(pause_s)

    @asynccontextmanager
    async def stream(self, request: Request, user_agent: str) -> AsyncIterator[aiohttp.StreamReader]:
        """The body of a watch as it comes, until it ends or falls silent.

        It takes no slot: hundreds of them idle beside the requests.
        """
        async with self._respond(
            request, user_agent, self._settings.connect_deadline_s + request.deadline_s
        ) as response:
            yield response.content

    async def _renew(self, seen: int, *, is_certain: bool) -> None:
        try:
            await self._credentials.renew(seen)
        except MemberClusterError as error:
            error.changed_nothing = is_certain
            raise

    def _pause_s(self, request: Request, error: MemberClusterError, attempt: int) -> float | None:
        """How long to wait before the next attempt; None gives up.

        429, and 503 with Retry-After, say that nothing was done. After a lost or broken answer only what changes
        nothing the second time is sent again.
        """
        if attempt >= self._settings.attempts_max:
            return None
        jitter = self._shared.jitter.random()
        if isinstance(error, Throttled):
            asked_s = error.retry_after_s if error.retry_after_s is not None else self._settings.back_off_s * 2**attempt
            return asked_s * (1 + jitter / 2) if asked_s <= self._settings.retry_after_max_s else None
        is_lost = isinstance(error, ClusterUnreachable | BadAnswer) and not isinstance(error, AnswerTooLarge)
        is_lost = is_lost and not self._breaker(request).is_open
        if not (is_lost and request.may_repeat and attempt == 1):
            return None
        return self._settings.back_off_s * (0.5 + jitter)

    async def _send_once(self, request: Request, user_agent: str) -> Answer:
        async with (
            self._shared.slots.slot(),
            self._respond(request, user_agent, request.deadline_s) as response,
        ):
            body = await self._read(response)
            return Answer(status=response.status, body=body, headers=response.headers)

    @asynccontextmanager
    async def _respond(
        self, request: Request, user_agent: str, deadline_s: float
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """A response of status 2xx or 304; refusals and network faults are raised as ours."""
        # A cluster whose writes hang behind a dead webhook answers every read: each has a breaker of its own.
        breaker = self._breaker(request)
        wait_s = breaker.wait_s()
        if wait_s:
            left_alone = "it is left alone" if breaker is self.reading else "nothing is written to it"
            raise _never_sent(ClusterUnreachable(self.name, f"{breaker.why}; {left_alone} for {wait_s:.0f} s"))
        is_answered, is_watch = False, "watch" in request.query
        try:
            headers = await self._headers(request, user_agent)
            async with (
                timed(request, self.name, self._shared.answered, self._shared.clock) as told,
                asyncio.timeout(deadline_s) as deadline,
                self._open(request, headers) as response,
            ):
                told(response.status)
                is_answered = response.status not in _GATEWAY_FAILURES
                if is_answered:
                    breaker.succeeded()
                if response.status >= HTTPStatus.MULTIPLE_CHOICES and response.status != HTTPStatus.NOT_MODIFIED:
                    body = await self._read(response)
                    raise refusal(self.name, request, response.status, body, _retry_after_s(response))
                if is_watch:
                    deadline.reschedule(None)
                try:
                    yield response
                finally:
                    _hang_up(response)
        except (aiohttp.ClientError, ssl.SSLError, OSError) as error:
            if _is_about_certificates(error):
                self._credentials.distrust()
            if isinstance(error, TimeoutError) and is_watch and is_answered:
                return  # A silent watch is over; whoever wants more asks again, and learns then what is wrong.
            fault = self._fault(error, deadline_s, breaker, is_answered=is_answered)
            raise (_never_sent(fault) if isinstance(error, _NOT_CONNECTED) else fault) from error
        except MemberClusterError as error:
            if not is_answered:
                self._failed(error.message, breaker)
            raise
        except asyncio.CancelledError:
            if not is_answered:
                breaker.abandoned()
            raise

    def _breaker(self, request: Request) -> Breaker:
        return self.reading if request.purpose is Purpose.READ else self.writing

    def _fault(self, error: Exception, deadline_s: float, breaker: Breaker, *, is_answered: bool) -> MemberClusterError:
        """What a fault of the network means, counted by the breaker when the cluster gave no sign of life."""
        if isinstance(error, TimeoutError):
            return self._failed(f"no answer within {deadline_s:g} s", breaker)
        if _os_errno(error) in _NO_DESCRIPTORS:
            # That is our own want: the cluster had no chance to answer.
            breaker.abandoned()
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            return ClusterUnreachable(self.name, f"this process may open no more files than {soft}; {_RAISE_LIMIT}")
        if isinstance(error, aiohttp.ClientPayloadError):
            return BadAnswer(self.name, f"the answer was cut off: {clean(str(error))}")
        message = clean(_reason(error))
        return ClusterUnreachable(self.name, message) if is_answered else self._failed(message, breaker)

    def _failed(self, message: str, breaker: Breaker) -> ClusterUnreachable:
        breaker.failed(clean(message))
        return ClusterUnreachable(self.name, breaker.why)

    async def _headers(self, request: Request, user_agent: str) -> CIMultiDict[str]:
        headers = CIMultiDict(await self._credentials.headers())
        headers["User-Agent"] = user_agent
        headers["Accept"] = request.accept
        if request.content_type:
            headers["Content-Type"] = request.content_type
        if request.if_none_match:
            headers["If-None-Match"] = request.if_none_match
        return headers

    def _open(self, request: Request, headers: CIMultiDict[str]) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        return self._shared.session.request(
            request.method,
            URL(self._config.server + request.target, encoded=True),
            data=request.body or None,
            headers=headers,
            ssl=self._credentials.context or self._plain,
            server_hostname=self._config.tls_server_name or None,
            proxy=self._proxy or None,
            allow_redirects=False,
            timeout=self._watch_timeout if "watch" in request.query else self._timeout,
        )

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        chunks, size, limits = [], 0, self._settings
        async with AsyncExitStack() as held:
            self.answers += 1
            take = held.enter_context(self._shared.answers.share(self.name))
            async for chunk in response.content.iter_any():
                self.answers += 1
                if size <= limits.body_small_bytes < size + len(chunk):
                    await held.enter_async_context(self._large)
                size += len(chunk)
                take(len(chunk))
                if size > limits.body_max_bytes:
                    raise AnswerTooLarge(self.name, f"the answer is larger than {limits.body_max_bytes:,} bytes")
                chunks.append(chunk)
            body = chunks[0] if len(chunks) == 1 else b"".join(chunks)
        if size > limits.body_dense_bytes and sum(map(body.count, _BEFORE_VALUES)) > limits.body_max_values:
            raise AnswerTooLarge(self.name, f"the answer holds more than {limits.body_max_values:,} values")
        return body


def _never_sent(error: MemberClusterError) -> MemberClusterError:
    error.changed_nothing = True
    return error


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """Drop the connection of an answer that was not read to its end: a farewell over TLS would outlive the session."""
    connection = response.connection
    if connection is not None and connection.transport is not None and not response.content.at_eof():
        connection.transport.abort()


def proxy_of(config: MemberConfig) -> str:
    """The proxy on the way to the cluster, empty: none. The address of the pod's own cluster is known inside alone."""
    return "" if config.is_in_cluster else config.proxy_url or proxy_of_environment(config.server)


def proxy_of_environment(server: str) -> str:
    """The proxy that HTTPS_PROXY and NO_PROXY name for the server, as for kubectl; loopback never has one."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    if host in _LOOPBACK or host.startswith("127.") or proxy_bypass(host) or _is_in_bypassed_network(host):
        return ""
    return getproxies().get(parts.scheme, "")


def _is_in_bypassed_network(host: str) -> bool:
    """Whether NO_PROXY names a network (10.0.0.0/8) that holds the address. The standard library knows names alone."""
    with suppress(ValueError):
        address = ip_address(host)
        for entry in getproxies().get("no", "").split(","):
            with suppress(ValueError):
                if "/" in entry and address in ip_network(entry.strip(), strict=False):
                    return True
    return False


def _retry_after_s(response: aiohttp.ClientResponse) -> float | None:
    """Seconds of the Retry-After header; API servers write nothing else into it."""
    value = response.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() and len(value) < 7 else None


def _is_about_certificates(error: BaseException) -> bool:
    """Whether TLS failed: the authority, the server's certificate or ours may have been replaced."""
    inner = (error, getattr(error, "os_error", None), getattr(error, "certificate_error", None), error.__cause__)
    return any(isinstance(found, ssl.SSLError) for found in inner)


def _os_errno(error: BaseException) -> int | None:
    """The number of the system's error, also of the one inside of the library's."""
    inner = getattr(error, "os_error", None) or error
    return inner.errno if isinstance(inner, OSError) else None


def _reason(error: Exception) -> str:
    """What went wrong, from the innermost text that says something."""
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, ConnectionError) and inner.errno:
        host = getattr(error, "host", None)
        place = f" by {host}:{getattr(error, 'port', '')}" if host else ""
        return f"{os.strerror(inner.errno).lower()}{place}"
    return str(inner) or type(error).__name__
