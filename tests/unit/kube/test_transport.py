from __future__ import annotations

import asyncio
import contextlib
import os
import random
import re
import resource
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from reconciler.clock import BackOff, SharedSlots, epoch_s
from reconciler.errors import (
    AnswerTooLarge,
    BadAnswer,
    ClusterUnreachable,
    CredentialsRejected,
    Forbidden,
    MemberClusterError,
    Throttled,
)
from reconciler.kube import MemberConfig, TransportSettings, open_session, proxy_of_environment
from reconciler.kube.connection.bounds import Budget
from reconciler.kube.kube_requests import READ_DEADLINE_S, Purpose, Request, read
from reconciler.kube.transport import Shared, Transport
from tests.fakes.clocks import TestClock
from tests.fakes.scripted_server import CUT, HANG, ScriptedServer, reply, status
from tests.fakes.waiting import until

OK = reply(200, {"ok": True})
READ = read("/version")
APPLY = Request(method="PATCH", path="/x", purpose=Purpose.APPLY)
CREATE = Request(method="PATCH", path="/x", purpose=Purpose.CREATE)
DELETE = Request(method="DELETE", path="/x", purpose=Purpose.DELETE)
NO_BREAKER = TransportSettings(failures_max=1000)


@asynccontextmanager
async def transport_to(
    *servers: ScriptedServer,
    settings: TransportSettings = NO_BREAKER,
    clock: TestClock | None = None,
    below: str = "",
    **config: Any,
) -> AsyncIterator[list[Transport]]:
    async with open_session() as session:
        shared = Shared(
            session=session,
            slots=SharedSlots(settings.in_flight_all_max, settings.slow_after_s),
            clock=clock or TestClock(),
            settings=settings,
            jitter=random.Random(1),
            answers=Budget(settings.answers_max_bytes),
        )
        yield [
            Transport(MemberConfig(name=f"m{index}", server=server.url + below, **config), shared)
            for index, server in enumerate(servers, 1)
        ]


async def outcome(script: tuple[bytes, ...], request: Request, clock: TestClock | None = None) -> tuple[Any, int]:
    """Return what a request ends with (an answer's status or an error), and how often it was sent."""
    async with ScriptedServer(*script) as server, transport_to(server, clock=clock) as (transport,):
        try:
            answer = await transport.send(request, "test")
        except MemberClusterError as error:
            return error, len(server.asked)
        return answer.status, len(server.asked)


@pytest.mark.parametrize("code", [429, 503])
@pytest.mark.parametrize("request_", [READ, APPLY, CREATE, DELETE], ids=lambda r: str(r.purpose))
async def test_waits_as_long_as_it_is_asked_to_and_sends_again(code: int, request_: Request) -> None:
    clock = TestClock()
    ended, sent = await outcome((reply(code, Retry_After="2"), OK), request_, clock)
    assert (ended, sent) == (200, 2)
    assert 2 <= clock.slept[0] <= 3


async def test_gives_up_when_asked_to_wait_too_long_and_says_for_how_long() -> None:
    clock = TestClock()
    error, sent = await outcome((reply(429, Retry_After="600"), OK), READ, clock)
    assert isinstance(error, Throttled)
    assert (error.retry_after_s, sent, clock.slept) == (600, 1, [])


_NOON_S = epoch_s("2026-11-21T12:00:00Z")


@pytest.mark.parametrize(
    ("asked", "told", "left_alone_s"),
    [
        ("3600", "Retry-After: 3600 s), and is left alone until 2026-11-21T13:00:00Z", 3600),
        ("Sat, 21 Nov 2026 13:00:00 GMT", "Retry-After: 3600 s), and is left alone until 2026-11-21T13:00:00Z", 3600),
        ("99999999", "Retry-After: 99999999 s), and is left alone until 2026-11-22T12:00:00Z", 86_400),
    ],
)
@pytest.mark.parametrize("code", [429, 503])
async def test_a_cluster_that_asks_for_an_hour_is_left_alone_for_that_hour(
    code: int, asked: str, told: str, left_alone_s: float
) -> None:
    clock = TestClock(_NOON_S)
    async with (
        ScriptedServer(reply(code, Retry_After=asked), OK) as server,
        transport_to(server, clock=clock) as (transport,),
    ):
        for request in (READ, APPLY, CREATE, READ):
            with pytest.raises(Throttled, match=re.escape(told)) as found:
                await transport.send(request, "test")
            assert found.value.changed_nothing
        assert len(server.asked) == 1, "it is asked nothing, for whatever"
        clock.advance(left_alone_s)
        assert (await transport.send(READ, "test")).status == 200


async def test_a_pause_that_a_write_is_asked_for_stops_writes_alone() -> None:
    """Objects that may be read are no fault of what serves their kind."""
    async with (
        ScriptedServer(reply(429, Retry_After="600"), OK) as server,
        transport_to(server, clock=TestClock(_NOON_S)) as (transport,),
    ):
        for request in (APPLY, DELETE):
            with pytest.raises(Throttled):
                await transport.send(request, "test")
        assert (await transport.send(READ, "test")).status == 200
        assert len(server.asked) == 2


async def test_backs_off_longer_each_time_and_not_for_ever() -> None:
    clock = TestClock()
    error, sent = await outcome((reply(429),), APPLY, clock)
    assert isinstance(error, Throttled)
    assert sent == NO_BREAKER.attempts_max
    assert len(clock.slept) == sent - 1
    assert clock.slept == sorted(clock.slept)


@pytest.mark.parametrize("lost", [CUT, reply(502), reply(504), reply(200, b'{"a":', promised=50)], ids=range(4))
@pytest.mark.parametrize("request_", [READ, APPLY], ids=lambda r: str(r.purpose))
async def test_sends_again_once_what_changes_nothing_the_second_time(lost: bytes, request_: Request) -> None:
    assert await outcome((lost, OK), request_) == (200, 2)
    error, sent = await outcome((lost,), request_)
    assert isinstance(error, ClusterUnreachable | BadAnswer)
    # aiohttp repeats a GET by itself on a lost connection, so that each of our two attempts may count twice.
    assert sent <= 4


async def test_a_refusal_is_not_sent_again() -> None:
    error, sent = await outcome((reply(403, status(403, "Forbidden", "no")), OK), READ)
    assert isinstance(error, Forbidden)
    assert sent == 1


async def test_a_redirect_is_not_followed_since_our_token_would_go_with_it() -> None:
    error, sent = await outcome((reply(302, Location="http://127.0.0.1:1/"), OK), CREATE)
    assert isinstance(error, BadAnswer)
    assert sent == 1


async def test_no_answer_ends_at_the_deadline() -> None:
    async with ScriptedServer(HANG) as server, transport_to(server) as (transport,):
        with pytest.raises(ClusterUnreachable, match=r"no answer within 0\.05 s"):
            await transport.send(replace(CREATE, deadline_s=0.05), "test")


async def test_a_body_that_only_trickles_ends_at_the_deadline() -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    async with ScriptedServer(body) as server, transport_to(server) as (transport,):
        with pytest.raises(ClusterUnreachable, match="no answer within"):
            await transport.send(replace(CREATE, deadline_s=0.05), "test")


async def test_a_body_without_end_is_cut_at_the_bound() -> None:
    settings = TransportSettings(body_max_bytes=1000)
    async with ScriptedServer(reply(200, b"x" * 2000)) as server, transport_to(server, settings=settings) as (it,):
        with pytest.raises(BadAnswer, match="larger than 1,000 bytes"):
            await it.send(CREATE, "test")


async def test_a_refused_token_is_read_again_once(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("old")

    def check(asked: Any) -> bytes:
        token.write_text("new")
        return OK if asked.headers["authorization"] == "Bearer new" else reply(401)

    async with ScriptedServer(by_target=check) as server, transport_to(server, token_file=token) as (transport,):
        answers = await asyncio.gather(*(transport.send(CREATE, "test") for _ in range(5)))
    assert {answer.status for answer in answers} == {200}


async def test_a_token_that_stays_refused_is_not_tried_for_ever() -> None:
    async with ScriptedServer(reply(401)) as server, transport_to(server, token="t") as (transport,):
        with pytest.raises(CredentialsRejected, match="does not accept the token: it expired, was revoked") as error:
            await transport.send(READ, "test")
        assert len(server.asked) == 2
        assert error.value.changed_nothing


async def test_at_most_so_many_requests_are_under_way_to_one_cluster() -> None:
    settings = TransportSettings(in_flight_max=3)
    async with ScriptedServer(OK) as server, transport_to(server, settings=settings) as (transport,):
        server.gate = asyncio.Event()
        tasks = [asyncio.create_task(transport.send(READ, "test")) for _ in range(10)]
        await until(lambda: server.in_flight >= 3)
        await asyncio.sleep(0.02)  # time for one request too many, if there were one
        server.gate.set()
        await asyncio.gather(*tasks)
        assert server.in_flight_most == 3


async def test_clusters_that_have_gone_silent_do_not_hold_up_the_others() -> None:
    settings = TransportSettings(in_flight_max=4, in_flight_all_max=4, slow_after_s=0.02)
    async with (
        ScriptedServer(HANG) as silent,
        ScriptedServer(OK) as healthy,
        transport_to(silent, healthy, settings=settings) as (first, second),
    ):
        stuck = [asyncio.create_task(first.send(READ, "test")) for _ in range(8)]
        async with asyncio.timeout(READ_DEADLINE_S * 0.8):
            answers = await asyncio.gather(*(second.send(READ, "test") for _ in range(20)))
        assert {answer.status for answer in answers} == {200}
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


async def test_a_cluster_that_does_not_answer_is_asked_rarely_and_recovers() -> None:
    settings = TransportSettings(failures_max=2, failures_back_off=BackOff(least_s=10, most_s=60))
    clock = TestClock()
    async with ScriptedServer(CUT, CUT, OK) as server, transport_to(server, settings=settings, clock=clock) as (it,):
        for _ in range(2):
            with pytest.raises(ClusterUnreachable):
                await it.send(CREATE, "test")
        with pytest.raises(ClusterUnreachable, match="nothing is written to it for a while"):
            await it.send(CREATE, "test")
        assert len(server.asked) == 2
        clock.advance(10)
        assert (await it.send(CREATE, "test")).status == 200
        assert not it.writing.is_open()


async def test_a_cluster_whose_writes_get_no_answer_is_written_to_rarely_though_reads_go_on() -> None:
    settings = TransportSettings(failures_max=2, failures_back_off=BackOff(least_s=10, most_s=60))
    script = (CUT, OK, CUT, OK, OK)
    async with ScriptedServer(*script) as server, transport_to(server, settings=settings) as (it,):
        for _ in range(2):
            with pytest.raises(ClusterUnreachable):
                await it.send(CREATE, "test")
            assert (await it.send(READ, "test")).status == 200
        with pytest.raises(ClusterUnreachable, match="nothing is written to it for a while"):
            await it.send(CREATE, "test")
        assert (await it.send(READ, "test")).status == 200
        assert len(server.asked) == 5


async def test_writes_that_hang_leave_reads_their_slots() -> None:
    settings = TransportSettings(in_flight_max=2)
    async with ScriptedServer(HANG, HANG, OK) as server, transport_to(server, settings=settings) as (it,):
        stuck = [asyncio.create_task(it.send(CREATE, "test")) for _ in range(2)]
        await until(lambda: server.in_flight >= 2)
        assert (await it.send(READ, "test")).status == 200
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)


async def test_nobody_listening_is_said_in_words() -> None:
    async with ScriptedServer(OK) as server, transport_to(server) as (transport,):
        await server.__aexit__(None, None, None)
        with pytest.raises(ClusterUnreachable, match=r"connection refused by 127\.0\.0\.1:"):
            await transport.send(READ, "test")


async def test_connections_are_kept_and_cookies_are_not() -> None:
    async with ScriptedServer(reply(200, {}, Set_Cookie="a=b; Path=/")) as server, transport_to(server) as (transport,):
        for _ in range(5):
            await transport.send(READ, "agent/1")
        assert server.connections == 1
        assert all("cookie" not in asked.headers for asked in server.asked)
        assert server.asked[-1].headers["user-agent"] == "agent/1"


async def test_requests_go_below_the_path_of_the_server_and_are_not_rewritten() -> None:
    async with ScriptedServer(OK) as server, transport_to(server, below="/k8s/clusters/c-1") as (transport,):
        await transport.send(read("/api/v1/x%3Ay/..%2Fz", labelSelector="a in (b,c)"), "test")
        assert server.asked[0].target == "/k8s/clusters/c-1/api/v1/x%3Ay/..%2Fz?labelSelector=a+in+%28b%2Cc%29"


async def test_a_watch_that_falls_silent_just_ends() -> None:
    head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"
    settings = TransportSettings(watch_silence_max_s=0.05, failures_max=1)
    async with ScriptedServer(head) as server, transport_to(server, settings=settings) as (transport,):
        chunks = []
        async with transport.stream(read("/x", watch="1"), "test") as stream:
            async for chunk in stream.iter_any():
                chunks.append(chunk)  # noqa: PERF401 - what came before it fell silent counts
        assert chunks == [b"hello"]
        assert not transport.reading.is_open()


async def test_a_watch_that_gets_no_answer_is_an_error() -> None:
    settings = TransportSettings(connect_deadline_s=0.05)
    async with ScriptedServer(HANG) as server, transport_to(server, settings=settings) as (transport,):
        with pytest.raises(ClusterUnreachable, match="no answer"):
            async with transport.stream(replace(read("/x", watch="1"), deadline_s=0), "test"):
                pass


@pytest.mark.parametrize(
    ("server", "proxy"),
    [
        ("https://api.example:6443", "http://proxy.example:3128"),
        ("https://127.0.0.1:6443", ""),
        ("https://localhost", ""),
        ("https://in.inside.example", ""),
        ("http://api.example", ""),
        ("https://10.96.0.1:443", ""),
        ("https://10.97.0.1:443", "http://proxy.example:3128"),
        ("https://[fd00::1]:443", ""),
        ("https://192.0.2.7", ""),
    ],
)
def test_the_environments_proxy_is_taken_as_kubectl_takes_it(
    monkeypatch: pytest.MonkeyPatch, server: str, proxy: str
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    monkeypatch.setenv("NO_PROXY", ".inside.example, 10.96.0.0/16,fd00::/8,192.0.2.7,no/network")
    assert proxy_of_environment(server) == proxy


async def test_a_large_answer_of_many_short_values_is_refused_before_it_is_taken_apart() -> None:
    settings = TransportSettings(body_dense_bytes=1000, body_max_values=2000)
    dense, sparse = reply(200, [[]] * 2000), reply(200, ["x" * 5000])
    async with ScriptedServer(dense, sparse) as server, transport_to(server, settings=settings) as (transport,):
        with pytest.raises(AnswerTooLarge, match="more than 2,000 values"):
            await transport.send(READ, "test")
        assert (await transport.send(READ, "test")).status == 200


async def test_large_answers_of_one_cluster_are_received_one_at_a_time() -> None:
    settings = TransportSettings(body_small_bytes=1000)
    large = reply(200, ["x" * 500_000])
    async with ScriptedServer(large) as server, transport_to(server, settings=settings) as (transport,):
        answers = await asyncio.gather(*(transport.send(READ, "test") for _ in range(8)))
    assert {answer.status for answer in answers} == {200}


async def test_what_the_answers_of_all_clusters_may_take_at_once_is_bounded() -> None:
    fits, body = reply(200, ["x" * 900]), 904
    settings = TransportSettings(answers_max_bytes=2 * body)
    beyond = replace(settings, answers_max_bytes=2 * body - 2)
    async with ScriptedServer(fits) as server:
        async with transport_to(server, settings=settings) as (transport,):
            for _ in range(3):
                assert len((await transport.send(READ, "test")).body) == body, "what was given back may be taken again"
        async with transport_to(server, settings=beyond) as (transport,):
            with pytest.raises(AnswerTooLarge, match="the answers of all clusters"):
                await transport.send(READ, "test")


async def test_files_that_run_out_are_named_and_not_counted_against_the_cluster() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    settings = TransportSettings(failures_max=1, attempts_max=1)
    async with ScriptedServer(OK) as server, transport_to(server, settings=settings) as (transport,):
        open_files = len(list(Path("/proc/self/fd").iterdir()))
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(open_files, soft), hard))
        taken = []
        try:
            with contextlib.suppress(OSError):
                while True:
                    taken.append(os.dup(0))
            with pytest.raises(ClusterUnreachable, match=r"may open no more files than .*LimitNOFILE=") as error:
                await transport.send(CREATE, "test")
        finally:
            for number in taken:
                os.close(number)
            resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        assert error.value.changed_nothing
        assert not transport.writing.is_open()
        assert (await transport.send(CREATE, "test")).status == 200
