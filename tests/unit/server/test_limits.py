"""Readers that ask very often, send slowly or take nothing: none keeps others out, or anything for ever.

Source: CWE-400; RFC 6585, 4; Slowloris, R.U.D.Y. and Slow Read, as the OWASP testing guide describes them.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import aiohttp
import pytest

from reconciler.api.refs import Identity, close_to
from reconciler.report.views import matrix_view
from reconciler.server import live_views
from reconciler.server.http_server import Listening
from reconciler.server.routes import ReaderLimits, Slots, TooMany, address_of
from tests.fakes.clocks import TestClock
from tests.unit.report.views.sights import sight_of
from tests.unit.server.test_api import scene, showing
from tests.unit.server.vital_signs import serving
from tests.unit.state.scenes import Scene

UNLIMITED = ("/livez", "/readyz", "/metrics")
GIVEN_UP_S = 120
ASK = b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@asynccontextmanager
async def served(found: Scene | None = None, **limits: Any) -> AsyncIterator[str]:
    """The address of pages with these limits."""
    where = Listening(address="127.0.0.1:0", limits=ReaderLimits(**limits))
    async with (
        asyncio.timeout(GIVEN_UP_S),
        serving(where, showing(sight_of((found or scene()).facts())), TestClock()) as it,
    ):
        yield it


@asynccontextmanager
async def reader(number: int = 1) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(limit=0, local_addr=(f"127.0.0.{number}", 0))
    async with aiohttp.ClientSession(connector=connector) as session:
        yield session


async def opened(address: str, number: int = 1) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    host, _, port = address.rpartition(":")
    return await asyncio.open_connection(host, int(port), local_addr=(f"127.0.0.{number}", 0))


async def asked(address: str, number: int, request: bytes = ASK) -> bytes:
    """The first line of the answer; empty: the connection ended before."""
    read, write = await opened(address, number)
    try:
        write.write(request)
        return (await read.readline()).strip()
    except ConnectionResetError:
        return b""
    finally:
        write.close()


@contextmanager
def views_blocked(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """Views that are not made before the block ends; the event: one is being made."""
    begun, go_on = threading.Event(), threading.Event()

    def blocked(*of: Any) -> Any:
        begun.set()
        go_on.wait(GIVEN_UP_S)
        return matrix_view(*of)

    monkeypatch.setattr(live_views, "matrix_view", blocked)
    try:
        yield begun
    finally:
        go_on.set()


async def test_requests_have_slots_that_health_and_metrics_do_not_need(monkeypatch: pytest.MonkeyPatch) -> None:
    async with (
        served(requests=3, requests_of_one=2) as address,
        reader(1) as one,
        reader(2) as other,
        reader(3) as last,
    ):
        with views_blocked(monkeypatch) as begun:
            url = f"http://{address}/api/v1/matrix"
            held = [
                asyncio.create_task(_status(session, f"{url}?limit={at}"))
                for at, session in enumerate((one, one, other), 1)
            ]
            await asyncio.to_thread(begun.wait, GIVEN_UP_S)
            while (await _status(one, url))[0] != 429 or (await _status(last, url))[0] != 503:
                await asyncio.sleep(0)
            for session, status, words in ((one, 429, "2 requests of your address"), (last, 503, "3 requests")):
                for page in (url, f"http://{address}/", f"http://{address}/problems"):
                    found, retry, text = await _status(session, page)
                    assert (found, retry) == (status, "5"), page
                    assert words in text
                for path in UNLIMITED:
                    assert (await _status(session, f"http://{address}{path}"))[0] in (200, 503), path
                assert (await _status(session, f"http://{address}/livez"))[2] == "ok\n"
        assert {status for status, *_ in await asyncio.gather(*held)} == {200}
        assert (await _status(last, url))[0] == 200


async def _opens(session: aiohttp.ClientSession, url: str) -> int:
    async with session.get(url) as answer:
        return answer.status


async def _status(session: aiohttp.ClientSession, url: str) -> tuple[int, str | None, str]:
    async with session.get(url) as answer:
        return answer.status, answer.headers.get("Retry-After"), await answer.text()


async def test_views_are_made_in_a_thread_that_rounds_do_not_use(monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(max_workers=1) as rounds:
        loop.set_default_executor(rounds)
        go_on = threading.Event()
        busy = asyncio.create_task(asyncio.to_thread(go_on.wait, GIVEN_UP_S))
        async with served() as address, reader() as session:
            for path in ("/", "/api/v1/matrix", "/api/v1/clusters/m1"):
                assert (await _status(session, f"http://{address}{path}"))[0] == 200, path
            go_on.set()
            await busy
            with views_blocked(monkeypatch) as begun:
                held = asyncio.create_task(_status(session, f"http://{address}/api/v1/matrix?limit=3"))
                await asyncio.to_thread(begun.wait, GIVEN_UP_S)
            assert (await held)[0] == 200


async def test_the_streams_of_one_address_do_not_shut_others_out() -> None:
    most = ReaderLimits()
    async with served() as address, reader(1) as one, reader(2) as other:
        url = f"http://{address}/api/v1/events"
        streams = [await one.get(url) for _ in range(most.streams_of_one)]
        assert {stream.status for stream in streams} == {200}
        found, retry, text = await _status(one, url)
        assert (found, retry) == (429, "5")
        assert "64 streams of your address" in text
        async with other.get(url) as heard:
            assert (await heard.content.readuntil(b"\n\n")).startswith(b"event: round")
        assert (await _status(one, f"http://{address}/"))[0] == 200
        streams[0].close()
        while await _opens(one, url) != 200:
            await asyncio.sleep(0)
        for stream in streams:
            stream.close()


async def test_streams_are_bounded_over_all_and_end() -> None:
    async with served(streams=3, streams_of_one=2) as address:
        url = f"http://{address}/api/v1/events"
        async with reader(1) as one, reader(2) as two, reader(3) as three:
            answers = [await each.get(url) for each in (one, one, two, three)]
            assert [answer.status for answer in answers] == [200, 200, 200, 503]
            for answer in answers:
                answer.close()
    async with served(stream_s=0.01) as address, reader() as one, one.get(f"http://{address}/api/v1/events") as stream:
        assert (await stream.read()).startswith(b"event: round")


async def test_connections_of_one_address_are_bounded_and_idle_ones_make_room() -> None:
    async with served(connections=3, connections_of_one=2) as address:
        idle = [await opened(address, 1) for _ in range(2)]
        third = await opened(address, 2)
        assert await asked(address, 1) == b"HTTP/1.1 200 OK"
        assert await idle[0][0].read() == b"", "the oldest one of the address has ended"
        fourth = await opened(address, 3)
        assert await asked(address, 4) == b"HTTP/1.1 200 OK"
        assert await idle[1][0].read() == b"", "the oldest one has ended"
        for _, write in (*idle, third, fourth):
            write.close()


async def test_connections_that_are_answered_keep_their_slots() -> None:
    async with served(connections_of_one=1) as address, reader(1) as one:
        stream = await one.get(f"http://{address}/api/v1/events")
        assert await asked(address, 1) == b"HTTP/1.1 429 Too Many Requests"
        stream.close()
    async with served(connections=2) as address, reader(1) as one:
        streams = [await one.get(f"http://{address}/api/v1/events") for _ in range(2)]
        assert await asked(address, 2) == b"HTTP/1.1 503 Service Unavailable"
        streams[0].close()
        while await asked(address, 2) != b"HTTP/1.1 200 OK":
            await asyncio.sleep(0)
        streams[1].close()


@pytest.mark.parametrize(
    "sent",
    [
        b"", b"G", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-a: b\r\n",
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\na",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
    ],
)  # fmt: skip
async def test_a_request_that_does_not_end_is_ended(sent: bytes) -> None:
    """Its connection is closed while the reader still sends: bytes that come do not prolong it."""
    async with served(idle_s=0.2) as address:
        read, write = await opened(address)
        write.write(sent)
        ended = asyncio.create_task(read.read())
        try:
            while not ended.done():
                write.write(b"z" if sent else b"")
                await asyncio.wait({ended}, timeout=0.05)
            await ended
        except ConnectionResetError:
            pass
        write.close()


async def test_a_compressed_body_is_not_unpacked() -> None:
    async with served() as address:
        head = (
            b"POST /livez HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\nContent-Length: 9\r\n\r\nno gzip !"
        )
        assert await asked(address, 1, head) == b"HTTP/1.1 405 Method Not Allowed"


async def test_an_answer_that_is_not_taken_is_given_up() -> None:
    many = Scene("m1", "m2", names=tuple(f"app-{number:04}" for number in range(1_000)))
    async with served(many, connections=1, answer_s=0.2) as address:
        host, _, port = address.rpartition(":")
        with socket.socket() as silent:
            silent.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            silent.connect((host, int(port)))
            question = b"GET /api/v1/matrix?kind=*&limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
            silent.sendall(question * 100)
            while await asked(address, 2) == b"HTTP/1.1 503 Service Unavailable":
                await asyncio.sleep(0.01)


def test_slots_are_counted_by_address() -> None:
    slots = Slots("things", 3, 2)
    with slots.slot("a"), slots.slot("a"):
        with pytest.raises(TooMany, match="2 things of your address"):
            slots.acquire("a")
        with slots.slot(""), pytest.raises(TooMany, match="3 things already"):
            slots.acquire("b")
    with slots.slot(""), slots.slot(""), slots.slot(""):
        pass


class _Peer(asyncio.BaseTransport):
    def __init__(self, peer: object) -> None:
        super().__init__({"peername": peer})


@pytest.mark.parametrize(
    ("peer", "address"),
    [
        (("10.0.0.1", 5), "10.0.0.1"), (("::ffff:10.0.0.1", 5, 0, 0), "10.0.0.1"), ("", ""), (None, ""),
        (("2001:db8:1:2:3:4:5:6", 5, 0, 0), "2001:db8:1:2::/64"), (("fe80::1%eth0", 5, 0, 2), "fe80::/64"),
    ],
)  # fmt: skip
def test_an_address_is_that_of_whoever_connects(peer: object, address: str) -> None:
    assert address_of(_Peer(peer)) == address


def test_of_very_many_names_few_are_compared() -> None:
    known = [
        Identity("", "ConfigMap", "demo", f"{prefix}-{number:05}")
        for prefix in ("web", "api")
        for number in range(9_000)
    ]
    assert close_to(known, "cm/web-00001x")[0] == "ConfigMap/web-00001 -n demo"
    assert close_to(known[:900], "cm/wbe-00001")[0].startswith("ConfigMap/web-00001 ")
