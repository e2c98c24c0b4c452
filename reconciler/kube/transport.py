"""Requests to one API server over the shared session: limits, deadlines, retries, breaker.

Every member is isolated: it has its own slots, breaker and credentials. What is shared is the event loop, the
connection pool, the TLS contexts of those who trust and show the same certificates, and a number of slots that a
request gives back when its answer is slow to come, so that clusters that have gone silent never hold up the others.
"""

from __future__ import annotations

import asyncio
import errno
import random
import resource
import ssl
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING

from msgspec import Struct, field

from reconciler.clock import BackOff, Clock, SharedSlots, epoch_s, rfc3339
from reconciler.errors import (
    AnswerTooLarge,
    BadAnswer,
    ClusterUnreachable,
    CredentialsRejected,
    MemberClusterError,
    Throttled,
)
from reconciler.kube.connection.bounds import Breakers, Budget, SharedTrees
from reconciler.kube.connection.cluster_credentials import Credentials, Headers
from reconciler.kube.connection.kubeconfig import MemberConfig
from reconciler.kube.connection.risks import why_not_trusted
from reconciler.kube.connection.session import Call, SessionFault, SharedContexts, proxy_of, reason, retry_after_s
from reconciler.kube.kube_requests import Purpose, Request, shown_without
from reconciler.kube.refusal_errors import clean, refusal
from reconciler.kube.watch_stream import Answered, nobody, timed

if TYPE_CHECKING:
    from aiohttp import ClientResponse, StreamReader

    from reconciler.kube.connection.session import Session

_NO_DESCRIPTORS = (errno.EMFILE, errno.ENFILE)
_RAISE_LIMIT = "raise its limit (LimitNOFILE= of the unit, ulimit -n of the shell, --ulimit nofile= of the container)"
_BEFORE_VALUES = (b",", b"{", b"[")
"""Each value of a JSON text has one of these before it. Inside of strings they are counted too."""
_GATEWAY_FAILURES = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)


MIB = 1024 * 1024


class TransportSettings(Struct, frozen=True, kw_only=True):
    """Limits on requests to members and on our own resources."""

    in_flight_max: int = 16
    """Reads under way to one cluster, and as many writes; watches do not count."""
    in_flight_all_max: int = 64
    """Requests under way to all clusters that are answering promptly."""
    slow_after_s: float = 1.0
    """A request that has waited this long for its answer no longer counts among all."""
    connect_deadline_s: float = 10.0
    attempts_max: int = 4
    back_off: BackOff = BackOff(least_s=0.25, most_s=60)
    retry_after_max_s: float = 15.0
    """Asked to wait longer than this, the request is given up as Throttled, and nothing is sent before that time."""
    left_alone_max_s: float = 86_400.0
    """Asked to wait for longer, a cluster is asked again after a day: it may have meant something else."""
    body_max_bytes: int = 32 * MIB
    """Of one answer. A page of a list that is larger is asked for again in smaller ones."""
    body_max_values: int = 1_000_000
    """Of one answer that is larger than `body_dense_bytes`: a value takes a hundred bytes, however short it is."""
    body_dense_bytes: int = 4 * MIB
    body_small_bytes: int = 1 * MIB
    """Of the answers of one cluster that are larger than this, one is received at a time."""
    answers_max_bytes: int = 256 * MIB
    """Limit on the answers of all clusters that are being received. From half of it on, a cluster is refused
    anything above its share of that half; its list is then read in smaller pages."""
    lists_max_bytes: int = 256 * MIB
    """Of all lists of one cluster that are under way, over all of their pages."""
    watch_silence_max_s: float = 150.0
    """A watch that is silent for so long may be a half-open connection, and is ended. Bookmarks may keep it open."""
    failures_max: int = 3
    failures_back_off: BackOff = BackOff(least_s=5, most_s=60)


class Answer(Struct, frozen=True, kw_only=True):
    """A successful answer."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)

    def __repr__(self) -> str:
        return shown_without(self, ("body",))


class Shared(Struct, frozen=True, kw_only=True):
    """Shared parts of the members of a fleet. `jitter` gives numbers in [0, 1)."""

    session: Session
    slots: SharedSlots
    clock: Clock
    settings: TransportSettings
    jitter: random.Random
    answers: Budget
    trees: SharedTrees = field(default_factory=SharedTrees)
    contexts: SharedContexts = field(default_factory=SharedContexts)
    answered: Answered = nobody


class Transport:
    """Sends requests to one cluster. Every way to fail is an exception from `errors.py`."""

    def __init__(self, config: MemberConfig, shared: Shared) -> None:
        self.name = config.name
        bounds = (shared.clock.monotonic_s, shared.settings.failures_max, shared.settings.failures_back_off)
        self.reading, self.writing = Breakers(*bounds), Breakers(*bounds)
        self._config = config
        self._shared = shared
        self._settings = shared.settings
        self.credentials = Credentials(config, shared.clock, shared.contexts)
        self._reads = asyncio.Semaphore(shared.settings.in_flight_max)
        self._writes = asyncio.Semaphore(shared.settings.in_flight_max)
        self._large = asyncio.Lock()
        self._left_alone: dict[tuple[bool, str], tuple[float, str]] = {}
        """By whether a write was asked to wait (reads have other queues) and by part: end (monotonic s), message."""
        self.answers = 0
        """Parts of answers that have come in, but for those of watches."""
        self.trees = shared.trees
        self.lists = Budget(shared.settings.lists_max_bytes, is_of_lists=True)
        self._proxy = proxy_of(config)
        self._pool = 0
        """Of connections to this cluster. Those of one before may be open on our side alone."""

    async def send(self, request: Request, user_agent: str) -> Answer:
        """Return the answer after at most `attempts_max` attempts; `changed_nothing` of an error is of all of them."""
        purpose = self._reads if request.purpose is Purpose.READ else self._writes
        async with nullcontext() if request.is_anew else purpose:
            attempt, has_renewed, is_certain = 1, False, True
            while True:
                generation = self.credentials.generation
                try:
                    async with (
                        self._shared.slots.slot(),
                        self._respond(request, user_agent, request.deadline_s) as response,
                    ):
                        body = await self._read(response)
                        return Answer(status=response.status, body=body, headers=response.headers)
                except MemberClusterError as error:
                    is_certain = error.changed_nothing = error.changed_nothing and is_certain
                    if isinstance(error, CredentialsRejected):
                        if error.status != HTTPStatus.UNAUTHORIZED:
                            raise
                        if has_renewed:
                            raise self.credentials.refused(error) from error
                        has_renewed = True
                        await self._renew(max(generation, 1), is_certain=is_certain)
                        continue
                    pause_s = self._pause_s(request, error, attempt)
                    if pause_s is None:
                        raise
                    attempt += 1
                    await self._shared.clock.sleep(pause_s)

    @asynccontextmanager
    async def stream(self, request: Request, user_agent: str) -> AsyncIterator[StreamReader]:
        """Yield the body of a watch until it ends or falls silent. It takes no slot: hundreds idle."""
        deadline_s = self._settings.connect_deadline_s + request.deadline_s
        async with self._respond(request, user_agent, deadline_s) as response:
            yield response.content

    async def _renew(self, generation: int, *, is_certain: bool) -> None:
        try:
            await self.credentials.renew(generation)
        except MemberClusterError as error:
            error.changed_nothing = is_certain
            raise

    def _pause_s(self, request: Request, error: MemberClusterError, attempt: int) -> float | None:
        """Return the delay before the next attempt; None: give up. Only what is harmless is sent again."""
        if attempt >= self._settings.attempts_max:
            return None
        back_off, jitter = self._settings.back_off, self._shared.jitter.random
        if isinstance(error, Throttled):
            asked_s = error.retry_after_s if error.retry_after_s is not None else back_off.pause_s(1 + attempt)
            return asked_s * (1 + jitter() / 2) if asked_s <= self._settings.retry_after_max_s else None
        is_lost = isinstance(error, ClusterUnreachable | BadAnswer) and not isinstance(error, AnswerTooLarge)
        is_lost = is_lost and not self._breakers(request).is_open(request.part)
        return back_off.pause_s(1, jitter) if is_lost and request.may_repeat and attempt == 1 else None

    @asynccontextmanager
    async def _respond(self, request: Request, user_agent: str, deadline_s: float) -> AsyncIterator[ClientResponse]:
        """Yield a response of status 2xx or 304; refusals and network faults are raised as ours."""
        # A cluster whose writes hang behind a dead webhook answers every read: each has breakers of its own.
        breakers, part = self._breakers(request), request.part
        self._refuse_while_left_alone(request, breakers)
        is_reached = is_answered = False
        is_watch = "watch" in request.query
        try:
            headers = await self._headers(request, user_agent)
            async with (
                timed(request, self.name, self._shared.answered, self._shared.clock) as report,
                asyncio.timeout(deadline_s) as deadline,
                self._open(request, headers) as response,
            ):
                report(response.status)
                is_reached, is_answered = True, response.status not in _GATEWAY_FAILURES
                if is_answered:
                    breakers.succeeded(part)
                if response.status >= HTTPStatus.MULTIPLE_CHOICES and response.status != HTTPStatus.NOT_MODIFIED:
                    body = await self._read(response)
                    now_s = epoch_s(self._shared.clock.now())
                    asked_s = retry_after_s(response.headers.get("Retry-After", "").strip(), now_s)
                    raise self._remembered(refusal(self.name, request, response.status, body, asked_s), request)
                if is_watch:
                    deadline.reschedule(None)
                yield response
        except (SessionFault, OSError) as error:
            cause = error
            if not isinstance(cause, SessionFault):  # From elsewhere: a deadline of ours, or a file.
                is_timeout, is_tls = isinstance(error, TimeoutError), isinstance(error, ssl.SSLError)
                cause = SessionFault(
                    reason(error), is_timeout=is_timeout, is_about_certificates=is_tls, errno=cause.errno
                )
            is_ended = not is_answered and not cause.is_timeout
            if cause.is_about_certificates or (is_ended and self.credentials.are_replaced()):
                self.credentials.distrust()
            if cause.is_timeout and is_watch and is_answered:
                return  # A silent watch is over; whoever wants more asks again, and learns then what is wrong.
            fault = self._fault(cause, deadline_s, request, is_answered=is_answered)
            raise (fault if cause.is_sent else _never_sent(fault)) from error
        except MemberClusterError as error:
            if not is_answered:
                (breakers.failed if is_reached else breakers.lost)(part, error.message)
            raise
        except asyncio.CancelledError:
            if not is_answered:
                breakers.abandoned(part)
            raise

    def _remembered(self, error: MemberClusterError, request: Request) -> MemberClusterError:
        """Return the error; a cluster, or a part of it, that asks for a long pause is left alone for as long."""
        asked_s = error.retry_after_s or 0.0
        if isinstance(error, Throttled) and asked_s > self._settings.retry_after_max_s:
            pause_s = min(asked_s, self._settings.left_alone_max_s)
            clock = self._shared.clock
            until = rfc3339(epoch_s(clock.now()) + pause_s)
            pause = f"it asked for a pause (Retry-After: {asked_s:.0f} s), and is left alone until {until}"
            why = f"{error.message}; {pause}"
            self._left_alone[request.purpose is not Purpose.READ, request.part] = clock.monotonic_s() + pause_s, why
            return Throttled(self.name, why, status=error.status, retry_after_s=asked_s)
        return error

    def _refuse_while_left_alone(self, request: Request, breakers: Breakers) -> None:
        """Raise while a cluster or part pauses or does not answer; in the same words each time."""
        is_write = request.purpose is not Purpose.READ
        keys = {(of_writes, part) for of_writes in (False, is_write) for part in ("", request.part)}
        for key in keys & self._left_alone.keys():
            until_s, why = self._left_alone[key]
            left_s = until_s - self._shared.clock.monotonic_s()
            if left_s > 0:
                raise Throttled(self.name, why, retry_after_s=left_s)
            del self._left_alone[key]
        if not request.is_anew and breakers.wait_s(request.part):
            left_alone = "it is left alone" if breakers is self.reading else "nothing is written to it"
            why = f"{breakers.why(request.part)}; {left_alone} for a while"
            raise _never_sent(ClusterUnreachable(self.name, why))

    def _breakers(self, request: Request) -> Breakers:
        return self.reading if request.purpose is Purpose.READ else self.writing

    def _fault(
        self, cause: SessionFault, deadline_s: float, request: Request, *, is_answered: bool
    ) -> MemberClusterError:
        """Return the error for a fault of the network; the breakers count it if there was no sign of life."""
        breakers, part = self._breakers(request), request.part
        if cause.is_timeout:
            why = f"no answer within {deadline_s:g} s"
            breakers.failed(part, why)
            return ClusterUnreachable(self.name, why)
        if cause.errno in _NO_DESCRIPTORS:
            # That is our own want: the cluster had no chance to answer.
            breakers.abandoned(part)
            soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
            return ClusterUnreachable(self.name, f"this process may open no more files than {soft}; {_RAISE_LIMIT}")
        if cause.is_cut_off:
            return BadAnswer(self.name, f"the answer was cut off: {clean(str(cause))}")
        message = clean(why_not_trusted(self._config, str(cause)) if cause.is_about_certificates else str(cause))
        if not is_answered:
            breakers.lost(part, message)
        return ClusterUnreachable(self.name, message)

    async def _headers(self, request: Request, user_agent: str) -> Headers:
        headers = [*await self.credentials.headers(), ("User-Agent", user_agent), ("Accept", request.accept)]
        if request.content_type:
            headers.append(("Content-Type", request.content_type))
        if request.if_none_match:
            headers.append(("If-None-Match", request.if_none_match))
        return tuple(headers)

    def _open(self, request: Request, headers: Headers) -> AbstractAsyncContextManager[ClientResponse]:
        settings = self._settings
        if request.is_anew:
            self._pool += 1
        return self._shared.session.request(
            Call(
                method=request.method,
                url=self._config.server + request.target,
                body=request.body,
                headers=headers,
                tls=self.credentials.context,
                tls_server_name=self._config.tls_server_name,
                proxy=self._proxy,
                connect_s=settings.connect_deadline_s,
                pool=self._pool,
                silence_s=settings.watch_silence_max_s if "watch" in request.query else None,
            )
        )

    async def _read(self, response: ClientResponse) -> bytes:
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
