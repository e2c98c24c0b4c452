from __future__ import annotations

import asyncio
import json
import logging
import stat
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from msgspec.structs import replace

from reconciler.api.problem import NOWHERE, Problem, Severity
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import ConfigurationError
from reconciler.server.http_server import Listening, split_address
from tests.fakes.clocks import TestClock
from tests.unit.server.vital_signs import busy, serving, showing

HOSTILE = "\"'><script>alert(1)</script>\x1b[31m\u202e https://bob:hunter2secret@example.com/"


async def _get(vitals: Vitals, path: str, method: str = "GET") -> tuple[int, str, dict[str, str]]:
    clock = TestClock()
    clock.advance(103)
    async with (
        serving(Listening(address="127.0.0.1:0"), vitals, clock) as address,
        aiohttp.ClientSession() as session,
        session.request(method, f"http://{address}{path}") as answer,
    ):
        return answer.status, await answer.text(), dict(answer.headers)


async def test_livez_follows_the_progress_of_the_loop() -> None:
    vitals = busy()
    assert (await _get(vitals, "/livez"))[:2] == (200, "ok\n")
    vitals.heartbeat_s = -1000
    assert (await _get(vitals, "/livez"))[:2] == (503, "stalled while idle\n")


async def test_readyz_wants_a_store_and_a_journal_but_not_every_cluster() -> None:
    vitals = busy()
    status, body, _ = await _get(vitals, "/readyz")
    assert status == 200
    assert json.loads(body) == {
        "ready": True,
        "checks": {"source": "ok", "journal": "ok", "fleet": "ok"},
        "degraded": ["cluster m2: no answer"],
    }
    vitals.source_error = "the branch is gone"
    status, body, _ = await _get(vitals, "/readyz")
    assert status == 200
    assert "the last good revision stays in force" in json.loads(body)["degraded"][0]
    vitals.is_ready = False
    status, body, _ = await _get(vitals, "/readyz")
    assert (status, json.loads(body)["checks"]) == (
        503,
        {"source": "the branch is gone", "journal": "ok", "fleet": "ok"},
    )


@pytest.mark.parametrize(("another_is_up", "code"), [(True, 200), (False, 503)])
async def test_who_holds_the_fleet_nowhere_is_alive_but_not_ready(another_is_up: bool, code: int) -> None:
    """A copy of the journal holds it in m1. What could be begun again would not be fixed by it."""
    vitals = busy()
    problem = Problem(source=NOWHERE, code="fleet-held-elsewhere", message="by host b",
                      severity=Severity.ERROR, cluster="m1")  # fmt: skip
    other = replace(vitals.snapshot.clusters["m2"], why_away=None if another_is_up else "away")
    showing(vitals, clusters={**vitals.snapshot.clusters, "m2": other}, problems=(problem,))
    status, body, _ = await _get(vitals, "/readyz")
    assert status == code
    assert "cluster m1: by host b" in json.loads(body)["degraded"]
    assert (await _get(vitals, "/livez"))[0] == 200


async def test_readyz_says_why_the_store_is_not_there() -> None:
    status, body, _ = await _get(Vitals(), "/readyz")
    assert (status, json.loads(body)["checks"]["source"]) == (503, "the store is not loaded yet")
    status, body, _ = await _get(Vitals(source_error="no such branch"), "/readyz")
    assert (status, json.loads(body)["checks"]["source"]) == (503, "no such branch")


async def test_serves_metrics() -> None:
    status, body, headers = await _get(busy(), "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert "fleet_reconciler_ready 1.0" in body


class _Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        assert not any(name.startswith("on") or name == "style" for name, _ in attrs), attrs

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


async def test_the_page_shows_what_strangers_wrote_as_text_alone() -> None:
    vitals = busy(HOSTILE)
    showing(vitals, suspended=(HOSTILE,))
    vitals.fleet = HOSTILE
    _, body, headers = await _get(vitals, "/")
    parser = _Tags()
    parser.feed(body)
    # The script and the style are ours, and files: nothing stands in the page itself.
    assert not parser.tags & {"img", "iframe", "object", "embed", "style"}
    assert body.count("<script") == 1
    assert '<script src="/static/page-' in body
    assert any("<script>alert(1)" in text for text in parser.texts)
    assert "\x1b" not in body
    assert "\u202e" not in body
    assert headers["Content-Security-Policy"].startswith("default-src 'none';")
    assert headers["X-Content-Type-Options"] == "nosniff"


@pytest.mark.parametrize("path", ["/", "/api/v1/fleet", "/readyz"])
async def test_no_page_shows_credentials_or_control_characters(path: str) -> None:
    vitals = busy(HOSTILE)
    vitals.source_error = f"failed{HOSTILE}"
    _, body, _ = await _get(vitals, path)
    assert "hunter2secret" not in body
    assert "\x1b" not in body
    assert "\u202e" not in body


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
async def test_only_reading_is_allowed(method: str) -> None:
    for path in ("/", "/livez", "/readyz", "/metrics", "/status.json"):
        status, _, headers = await _get(busy(), path, method)
        assert (status, headers["Allow"]) == (405, "GET,HEAD"), path


async def test_head_answers_without_a_body() -> None:
    status, body, _ = await _get(busy(), "/api/v1/fleet", "HEAD")
    assert (status, body) == (200, "")


async def test_an_unknown_path_is_not_repeated() -> None:
    status, body, headers = await _get(busy(), "/<script>alert(1)</script>")
    assert (status, body) == (404, "Not Found\n")
    assert "Content-Security-Policy" in headers


async def test_listens_at_a_unix_socket_even_where_one_was_left_behind(tmp_path: Path) -> None:
    path = tmp_path / "http.sock"
    for _ in range(2):
        async with serving(Listening(address=f"unix:{path}"), busy(), TestClock()) as address:
            assert address == f"unix:{path}"
            assert stat.S_IMODE(path.stat().st_mode) == 0o660
            connector = aiohttp.UnixConnector(str(path))
            async with aiohttp.ClientSession(connector=connector) as session, session.get("http://x/livez") as answer:
                assert answer.status == 200
    path.unlink(missing_ok=True)
    path.write_text("somebody else's")
    with pytest.raises(ConfigurationError, match="choose another address"):
        async with serving(Listening(address=f"unix:{path}"), busy(), TestClock()):
            pass


async def test_serves_nothing_without_an_address() -> None:
    async with serving(Listening(address=None), busy(), TestClock()) as address:
        assert address == ""


async def test_an_address_in_use_says_so() -> None:
    server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        with pytest.raises(ConfigurationError, match=f"--listen 127.0.0.1:{port}"):
            async with serving(Listening(address=f"127.0.0.1:{port}"), busy(), TestClock()):
                pass


async def test_warns_when_more_than_this_machine_can_read(caplog: pytest.LogCaptureFixture) -> None:
    async with serving(Listening(address="127.0.0.1:0"), busy(), TestClock()):
        assert not [record for record in caplog.records if record.levelname == "WARNING"]
    async with serving(Listening(address="0.0.0.0:0"), busy(), TestClock()):
        assert [record for record in caplog.records if record.levelname == "WARNING"]


@pytest.mark.parametrize("text", ["", "9180", ":9180", "localhost", "localhost:", "localhost:http", "x:70000", "x:٣"])
def test_refuses_what_is_no_address(text: str) -> None:
    with pytest.raises(ConfigurationError, match="HOST:PORT"):
        split_address(text)


async def _raw(request: bytes, **options: Any) -> bytes:
    """The answer to these bytes, up to the end of the connection."""
    async with serving(Listening(address="127.0.0.1:0", **options), busy(), TestClock()) as address:
        host, _, port = address.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(request)
        await writer.drain()
        async with asyncio.timeout(60):
            answer = await reader.read()
        writer.close()
        await writer.wait_closed()
        return answer


MALFORMED = {
    "no HTTP at all": b"SECRET-AND-MORE\r\n\r\n",
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03SECRET\r\n\r\n",
    "an illegal method": b"G\x00ET /SECRET HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "an illegal version": b"GET /SECRET HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "an illegal header": b"GET / HTTP/1.1\r\nHost: localhost\r\nSECRET\x00: x\r\n\r\n",
    "a header without a colon": b"GET / HTTP/1.1\r\nHost: localhost\r\nSECRET\r\n\r\n",
    "a line that is too long": b"GET /" + b"SECRET" * 2000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "too many headers": b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"a: SECRET\r\n" * 2000 + b"\r\n",
    "an illegal length": b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: SECRET\r\n\r\n",
    "an illegal chunk": b"POST / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    b"Transfer-Encoding: chunked\r\n\r\nSECRET\r\n\r\n",
}  # fmt: skip


@pytest.mark.parametrize("request_bytes", MALFORMED.values(), ids=MALFORMED)
async def test_what_is_no_request_gets_a_short_answer_of_ours_and_no_line_in_the_log(
    request_bytes: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    answer = await _raw(request_bytes)
    head, _, body = answer.partition(b"\r\n\r\n")
    assert head.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4")), answer
    assert b"SECRET" not in answer
    assert len(body) < 40
    assert b"Content-Security-Policy" in head
    assert not [record for record in caplog.records if record.levelno > logging.DEBUG and record.name != "reconciler"]
    assert not [record for record in caplog.records if record.exc_info and record.levelno > logging.DEBUG]


async def test_a_page_that_fails_says_nothing_of_why_and_is_logged_once(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> str:
        raise ValueError("hunter2secret")

    monkeypatch.setattr("reconciler.server.site.fleet_page", fail)
    request = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"
    answer = await _raw(request * 2 + request[:-2] + b"Connection: close\r\n\r\n")
    assert answer.count(b"HTTP/1.1 500") == 3
    assert b"hunter2secret" not in answer
    assert len([record for record in caplog.records if record.exc_info]) == 1


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost", 200),
        ("LocalHost:9180", 200),
        ("localhost.", 200),
        ("127.0.0.1", 200),
        ("10.1.2.3:9180", 200),
        ("[::1]:9180", 200),
        ("fleet.example", 200),
        ("Fleet.Example:9180", 200),
        ("rebound.example", 421),
        ("fleet.example.rebound.example", 421),
        ("localhost.rebound.example", 421),
        ("127.0.0.1.rebound.example", 421),
        ("[::1].rebound.example", 421),
    ],
)
async def test_answers_to_addresses_and_names_that_are_known(host: str, status: int) -> None:
    request = f"GET /api/v1/fleet HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
    answer = await _raw(request, names=("Fleet.example",))
    assert answer.startswith(f"HTTP/1.1 {status} ".encode()), answer[:200]
    assert (b'"clusters"' in answer) == (status == 200)


async def test_a_request_that_names_two_hosts_is_for_nobody_and_one_that_names_none_is_a_probe() -> None:
    two = await _raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: rebound.example\r\nConnection: close\r\n\r\n")
    assert two.startswith((b"HTTP/1.1 4", b"HTTP/1.0 4"))
    assert (await _raw(b"GET /livez HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.0 200")
