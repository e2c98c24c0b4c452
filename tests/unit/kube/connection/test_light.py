"""What the light session does by itself; what it shares with aiohttp's is tried through the transport over both."""

from __future__ import annotations

import asyncio
import errno
import gzip
import os
import ssl
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from reconciler.kube.connection import light
from reconciler.kube.connection.answering import BARREN_BYTES_MAX, HELD_BYTES_MAX, PIECE_BYTES, Answering
from reconciler.kube.connection.light import open_light_session
from reconciler.kube.connection.session import Call, Session, SessionFault
from tests.fakes.scripted_server import CUT, Asked, ScriptedServer, reply

LARGE = b"x" * (HELD_BYTES_MAX * 8)
HEAD = b"HTTP/1.1 200 OK\r\n"


def call(url: str, method: str = "GET", **fields: Any) -> Call:
    return Call(method=method, url=url, headers=(("Accept", "*/*"),), connect_s=60, **fields)


async def body_of(session: Session, asked: Call) -> tuple[int, bytes]:
    async with session.request(asked) as response:
        return response.status, b"".join([part async for part in response.content.iter_any()])


async def outcome(*script: bytes, method: str = "GET", times: int = 1) -> tuple[Any, list[Asked], int]:
    """Status and body of the last request, or its fault; what was asked; how many connections there were."""
    found: Any = None
    async with ScriptedServer(*script) as server, open_light_session() as session:
        for _ in range(times):
            try:
                found = await body_of(session, call(f"{server.url}/a?b=c", method, body=b"{}" * (method != "GET")))
            except SessionFault as fault:
                found = fault
        return found, server.asked, server.connections


async def test_asks_as_a_server_expects() -> None:
    _, (asked,), _ = await outcome(reply(200), method="PATCH")
    assert (asked.method, asked.target, asked.body) == ("PATCH", "/a?b=c", b"{}")
    assert set(asked.headers) == {"host", "accept", "accept-encoding", "content-length"}
    assert asked.headers["host"].startswith("127.0.0.1:")


@pytest.mark.parametrize(
    ("answer", "body"),
    [
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=y\r\ndefg\r\n0\r\nTrailer: t\r\n\r\n", b"abcdefg"),
        (HEAD + b"Connection: close\r\n\r\nuntil the end", b"until the end"),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 X\r\nLink: a\r\n\r\n" + reply(200, b"ab"), b"ab"),
        (reply(200, gzip.compress(b"ab" * 9, mtime=0), Content_Encoding="gzip"), b"ab" * 9),
        (reply(200, gzip.compress(LARGE, mtime=0), Content_Encoding="gzip"), LARGE),
        (reply(200, LARGE), LARGE),
        (reply(200, b""), b""),
    ],
    ids=["chunks", "until the end", "1xx", "gzip", "large gzip", "large", "empty"],
)
async def test_reads_every_form_of_body(answer: bytes, body: bytes) -> None:
    found, _, _ = await outcome(answer)
    assert found == (200, body)


@pytest.mark.parametrize("status", [204, 304])
async def test_some_answers_have_no_body_and_the_connection_stays(status: int) -> None:
    found, _, connections = await outcome(b"HTTP/1.1 %d X\r\nETag: a\r\n\r\n" % status, times=3)
    assert (found, connections) == ((status, b""), 1)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "no HTTP"),
        (HEAD + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\nabc", "no HTTP"),
        (HEAD + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", "no HTTP"),
        (HEAD + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", "no HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "no HTTP"),
        (HEAD + b"X: " + b"y" * (BARREN_BYTES_MAX * 8), "head of the answer is larger"),
        (
            HEAD + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"y" * (BARREN_BYTES_MAX * 8),
            "head of the answer is larger",
        ),
        (reply(200, b"ab", Content_Encoding="br"), "not asked for"),
        (reply(200, b"no gzip", Content_Encoding="gzip"), "is broken"),
        (reply(200, gzip.compress(b"ab", mtime=0)[:-4], Content_Encoding="gzip"), "is not whole"),
        (reply(200, gzip.compress(b"ab", mtime=0) + b"cd", Content_Encoding="gzip"), "is not whole"),
        (reply(200, b"ab", promised=9), "not completed"),
        (CUT, "Server disconnected"),
    ],
)
async def test_refuses_what_is_no_answer(answer: bytes, message: str) -> None:
    found, _, _ = await outcome(answer)
    assert isinstance(found, SessionFault)
    assert message in str(found)
    assert found.is_sent


async def test_a_connection_with_more_than_was_asked_for_is_not_used_again() -> None:
    """Or the second answer of one server would be taken for that to the next request."""
    found, _, connections = await outcome(reply(200, b"ab") + reply(200, b"other"), times=3)
    assert (found, connections) == ((200, b"ab"), 3)


@pytest.mark.parametrize(("method", "is_repeated"), [("GET", True), ("DELETE", True), ("PATCH", False)])
async def test_a_kept_connection_that_was_closed_is_asked_anew_where_that_changes_nothing(
    method: str, is_repeated: bool
) -> None:
    async with ScriptedServer(reply(200, b"1"), CUT, reply(200, b"2")) as server, open_light_session() as session:
        assert await body_of(session, call(server.url, method)) == (200, b"1")
        if is_repeated:
            assert await body_of(session, call(server.url, method)) == (200, b"2")
        else:
            with pytest.raises(SessionFault, match="Server disconnected"):
                await body_of(session, call(server.url, method))
        assert len(server.asked) == 3 if is_repeated else 2


async def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(light, "KEPT_S", 0.0)
    assert (await outcome(reply(200), times=3))[2] == 3


async def test_an_answer_that_is_left_before_its_end_ends_the_connection() -> None:
    async with ScriptedServer(reply(200, LARGE), reply(200, b"2")) as server, open_light_session() as session:
        async with session.request(call(server.url)) as response:
            response.hang_up()
        assert await body_of(session, call(server.url)) == (200, b"2")
        assert server.connections == 2


async def test_what_nobody_takes_is_not_received() -> None:
    paused: list[bool] = []
    answering = Answering(paused.append, lambda: None, None)
    answering.feed(HEAD + b"Content-Length: %d\r\n\r\n" % (len(LARGE) + 2) + LARGE)
    assert paused == [True]
    answering.feed(b"ab")
    assert b"".join([part async for part in answering.iter_any()]) == LARGE + b"ab"
    assert paused == [True, False]


async def test_a_bomb_is_taken_out_piece_by_piece() -> None:
    answering = Answering(lambda _: None, lambda: None, None)
    bomb = zlib.compressobj(9, wbits=31)
    data = bomb.compress(bytes(20 * 1024 * 1024)) + bomb.flush()
    answering.feed(HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data) + data)
    async for part in answering.iter_any():
        assert len(part) <= PIECE_BYTES


@pytest.mark.parametrize("url", ["/a\r\nX: y", "/a b", "/é"])
async def test_an_address_is_one_line_of_a_request(url: str) -> None:
    async with ScriptedServer(reply(200)) as server, open_light_session() as session:
        with pytest.raises(SessionFault, match="characters that no request line may hold") as found:
            await body_of(session, call(server.url + url))
        assert not found.value.is_sent
        assert not server.asked


async def test_a_header_is_one_line_of_a_request() -> None:
    async with open_light_session() as session:
        bad = Call(method="GET", url="http://127.0.0.1:1/", headers=(("A", "b\r\nC: d"),), connect_s=60)
        with pytest.raises(SessionFault, match="the end of a line"):
            await body_of(session, bad)


async def test_nobody_at_any_address_of_a_name_is_told_once(unused_port: int) -> None:
    async with open_light_session() as session:
        with pytest.raises(SessionFault, match=rf"^connection refused by localhost:{unused_port}$") as found:
            await body_of(session, call(f"http://localhost:{unused_port}/"))
    assert (found.value.errno, found.value.is_sent) == (errno.ECONNREFUSED, False)


@pytest.mark.parametrize(
    ("refused", "told"),
    [
        (OSError("Multiple exceptions: [Errno 111] a, [Errno 111] b"), errno.ECONNREFUSED),
        (OSError("Multiple exceptions: [Errno 111] a, [Errno 113] b"), None),
        (OSError("something else"), None),
    ],
)
def test_errors_of_several_addresses_are_one_where_they_are_the_same(refused: OSError, told: int | None) -> None:
    assert light.one_for_all(refused).errno == told


@pytest.fixture
def unused_port() -> int:
    import socket  # noqa: PLC0415

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


@asynccontextmanager
async def proxy() -> AsyncIterator[tuple[str, list[bytes]]]:
    lines: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        lines.append((await reader.readuntil(b"\r\n\r\n")).partition(b"\r\n")[0])
        writer.write(reply(200, b"by proxy"))
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", lines


async def test_a_proxy_is_left_to_aiohttp() -> None:
    async with proxy() as (url, lines), open_light_session() as session:
        assert await body_of(session, call("http://m1.example/x", proxy=url)) == (200, b"by proxy")
    assert lines == [b"GET http://m1.example/x HTTP/1.1"]


async def test_a_name_and_a_password_in_the_address_are_left_to_aiohttp() -> None:
    async with ScriptedServer(reply(200)) as server, open_light_session() as session:
        await body_of(session, call(server.url.replace("//", "//u:p@")))
        assert server.asked[0].headers["authorization"].startswith("Basic ")


def test_tls_without_a_context_is_left_to_aiohttp() -> None:
    url = "https://127.0.0.1:6443/version"
    assert light.is_beyond(call(url), urlsplit(url))
    assert not light.is_beyond(call(url, tls=ssl.create_default_context()), urlsplit(url))


def test_no_import_of_the_light_session_brings_aiohttp() -> None:
    code = "import sys, reconciler.controller.once.applying; print(sorted(n for n in sys.modules if 'aiohttp' in n))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, env=os.environ, text=True)
    assert found.stdout.strip() == "[]"
