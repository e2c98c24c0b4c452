"""`/api/v1` on a real port: what is answered, to whom, and what a question that makes no sense is told."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from reconciler.api.ledger import Event
from reconciler.cli.remote import RemoteService
from reconciler.controller.vitals.service_vitals import StatusSnapshot, StatusStore, Vitals
from reconciler.errors import ConfigurationError, ServiceError
from reconciler.journal import Journal
from reconciler.report.status import state_document
from reconciler.report.views import ViewModel, matrix_view
from reconciler.server import live_views
from reconciler.server.api import Events
from reconciler.server.http_server import Listening
from reconciler.server.routes import PageRequest, ReaderLimits
from reconciler.state import Degraded
from tests.fakes.clocks import TestClock
from tests.unit.report.views.sights import sight_of
from tests.unit.server.vital_signs import serving
from tests.unit.state.scenes import APP, Scene

TOKEN = "s3cret-of-this-test"
ENDPOINTS = ("fleet", "status", "matrix", "problems", "history", "explain/configmap/demo/app", "objects/cm/demo/app",
             "clusters", "clusters/m1")  # fmt: skip


def scene() -> Scene:
    found = Scene("m1", "m2")
    found.apply()
    found.health = {("m1", APP): Degraded("1 of 3 replicas are available")}
    return found


def showing(sight: ViewModel | None) -> Vitals:
    vitals = Vitals(fleet="test", is_ready=True)
    if sight is not None:
        vitals.status.publish(StatusSnapshot(picture=sight.picture, since="2026-11-21T09:00:00Z"))
    return vitals


def journal_of(folder: Path, sight: ViewModel) -> Path:
    path = folder / "journal.db"
    with Journal.open(path) as journal:
        journal.record_fleet("test")
        journal.record_state(state_document(sight.picture))
        journal.record_events([Event(round=1, time="2026-11-21T10:00:00Z", kind="created", subject=f"{APP} @ m1")])
    return path


class Asker:
    def __init__(self, session: aiohttp.ClientSession, address: str, vitals: Vitals) -> None:
        self.session, self.address, self.vitals = session, address, vitals

    async def get(self, path: str, method: str = "GET", **headers: str) -> tuple[int, Any, Mapping[str, str]]:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        async with self.session.request(method, f"http://{self.address}{path}", headers=sent) as answer:
            text = await answer.text()
            is_json = answer.content_type == "application/json" and text
            return answer.status, json.loads(text) if is_json else text, answer.headers


@asynccontextmanager
async def asking(sight: ViewModel | None, journal: Path | None = None, **listening: Any) -> AsyncIterator[Asker]:
    vitals = showing(sight)
    where = Listening(address="127.0.0.1:0", **listening)
    async with (
        serving(where, vitals, TestClock(), journal=journal) as address,
        aiohttp.ClientSession(auto_decompress=True) as session,
    ):
        yield Asker(session, address, vitals)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


async def test_every_endpoint_answers_with_json_and_the_headers_of_all_pages(tmp_path: Path) -> None:
    sight = sight_of(scene().facts())
    async with asking(sight, journal_of(tmp_path, sight)) as asker:
        for path in ENDPOINTS:
            status, body, headers = await asker.get(f"/api/v1/{path}")
            assert status == 200, (path, body)
            assert path == "clusters" or body["version"] == 1, path
            assert headers["Content-Security-Policy"].startswith("default-src 'none'"), path
            assert headers["Cache-Control"] == "no-store", path
            assert "Server" not in headers, path
        _, fleet, _ = await asker.get("/api/v1/fleet")
        assert (fleet["clusters"]["total"], fleet["since"]) == (2, "2026-11-21T09:00:00Z")
        assert [need["what"] for need in fleet["needs"]] == ["degraded"]
        assert [event["event"] for event in fleet["events"]] == ["created"]
        _, found, _ = await asker.get("/api/v1/objects/cm/demo/app")
        assert [copy["lastWrite"] and copy["lastWrite"]["action"] for copy in found["copies"]] == ["created", None]
        _, found, headers = await asker.get("/api/v1/history?resource=cm/app&cluster=m1&limit=1")
        assert (len(found["events"]), headers["Fleet-Last-Event"]) == (1, "1")
        assert (await asker.get("/api/v1/history?after=1"))[1]["events"] == []


async def test_before_the_first_round_the_fleet_says_so_and_the_rest_is_to_be_asked_again() -> None:
    async with asking(None) as asker:
        asker.vitals.source = "https://bob:hunter2secret@example.com/"
        asker.vitals.source_error = "no such branch of https://bob:hunter2secret@example.com/"
        status, fleet, _ = await asker.get("/api/v1/fleet")
        assert (status, fleet["round"], fleet["commit"]) == (200, 0, None)
        assert [(need["what"], need["why"]) for need in fleet["needs"]] == [("source", fleet["source"]["error"])]
        assert fleet["source"]["error"].startswith("no such branch")
        assert "hunter2secret" not in str(fleet)
        status, body, headers = await asker.get("/api/v1/matrix")
        assert (status, headers["Retry-After"]) == (503, "5")
        assert "no round has ended yet" in body["error"]


async def test_a_journal_that_cannot_be_read_is_said_and_takes_nothing_else_along(tmp_path: Path) -> None:
    path = tmp_path / "journal.db"
    path.write_text("this is no journal, and long enough to be looked at as one by whoever opens it")
    async with asking(sight_of(scene().facts()), path) as asker:
        for endpoint in ("history", "status"):
            status, body, _ = await asker.get(f"/api/v1/{endpoint}")
            assert status == 503, endpoint
            assert body["todo"], endpoint
        status, fleet, _ = await asker.get("/api/v1/fleet")
        assert status == 200
        assert "the journal cannot be read" in [need["title"] for need in fleet["needs"]]
        for endpoint in ("matrix", "objects/cm/demo/app", "clusters/m1"):
            assert (await asker.get(f"/api/v1/{endpoint}"))[0] == 200, endpoint


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ("matrix?limit=SECRET", "limit"), ("matrix?limit=0", "limit"), ("matrix?limit=10001", "limit"),
        ("matrix?offset=-1", "offset"), ("matrix?troubles=yes", "troubles"), ("clusters/m1?offset=1e3", "offset"),
        ("history?since=yesterday", "since"), ("history?limit=%D9%A3", "limit"), ("history?after=x", "after"),
        ("matrix?SECRET=1", "q, namespace, team, kind"), ("fleet?SECRET=1", "parameter"), ("status?x=", "parameter"),
    ],
)  # fmt: skip
async def test_a_bad_question_is_told_which_parameter_and_never_repeated(path: str, named: str) -> None:
    async with asking(sight_of(scene().facts())) as asker:
        status, body, _ = await asker.get(f"/api/v1/{path}")
    assert status == 400
    assert named in body["error"]
    assert "api.md" in body["todo"]
    assert "SECRET" not in json.dumps(body)


async def test_what_is_not_there_leads_to_what_may_have_been_meant(tmp_path: Path) -> None:
    sight = sight_of(Scene("m1", "m2", names=("frontend", "backend")).facts())
    async with asking(sight, journal_of(tmp_path, sight)) as asker:
        status, body, _ = await asker.get("/api/v1/objects/configmap/demo/frontent")
        assert (status, body["todo"]) == (404, "did you mean ConfigMap/frontend -n demo?")
        assert (await asker.get("/api/v1/explain/configmap/-/frontend"))[0] == 200
        assert (await asker.get("/api/v1/objects/configmap.apps/demo/frontend"))[0] == 404
        assert (await asker.get("/api/v1/objects/configmaps/other/frontend"))[0] == 404
        status, body, _ = await asker.get("/api/v1/clusters/m9")
        assert (status, body["error"]) == (404, "there is no such cluster; there is m1, m2")
        assert (await asker.get("/api/v1/history?resource=cm/nothing"))[0] == 404
        for path in ("/api/v1", "/api/v2/fleet", "/api/v1/objects/cm/demo/a/b", "/api/v1/fleet/"):
            assert (await asker.get(path))[:2] == (404, "Not Found\n"), path


async def test_names_are_parts_of_a_path_whatever_is_in_them() -> None:
    async with asking(sight_of(scene().facts())) as asker:
        for name in ("a%2Fb", "%00", "%ff", "a%3Fb", "%3Cscript%3E"):
            status, body, _ = await asker.get(f"/api/v1/clusters/{name}")
            assert status == 404, name
            assert isinstance(body, dict), name
            assert "script" not in json.dumps(body), name


async def test_who_has_an_answer_already_is_not_sent_it_again() -> None:
    async with asking(sight_of(scene().facts())) as asker:
        _, _, headers = await asker.get("/api/v1/matrix")
        status, body, again = await asker.get("/api/v1/matrix", If_None_Match=f'"other", W/{headers["ETag"]}')
        assert (status, body, again["ETag"]) == (304, "", headers["ETag"])
        status, body, again = await asker.get("/api/v1/matrix", "HEAD")
        assert (status, body, again["ETag"]) == (200, "", headers["ETag"])
        other = sight_of(Scene("m1").facts())
        asker.vitals.status.publish(StatusSnapshot(picture=other.picture))
        assert (await asker.get("/api/v1/matrix", If_None_Match=headers["ETag"]))[0] == 200


async def test_a_long_answer_is_packed_for_who_can_unpack_it() -> None:
    many = Scene("m1", "m2", names=tuple(f"app-{number:03}" for number in range(200)))
    async with asking(sight_of(many.facts())) as asker:
        _, plain, headers = await asker.get("/api/v1/matrix?kind=*", Accept_Encoding="identity")
        assert "Content-Encoding" not in headers
        _, unpacked, packed = await asker.get("/api/v1/matrix?kind=*", Accept_Encoding="br, gzip;q=0.5")
        assert packed["Content-Encoding"] == "gzip"
        assert unpacked == plain
        assert int(packed["Content-Length"]) < int(headers["Content-Length"])


async def test_ten_readers_cost_one_making(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def counted(sight: ViewModel, question: Any) -> Any:
        made.append(question.limit)
        return matrix_view(sight, question)

    monkeypatch.setattr(live_views, "matrix_view", counted)
    sight = sight_of(scene().facts())
    async with asking(sight) as asker:
        await asyncio.gather(*(asker.get("/api/v1/matrix?limit=7") for _ in range(10)))
        assert made == [7]
        asker.vitals.status.publish(StatusSnapshot(picture=sight.picture))
        await asker.get("/api/v1/matrix?limit=7")
        assert made == [7, 7]


def basic(password: str, user: str = "anyone") -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.mark.parametrize("given", [f"Bearer {TOKEN}", f"bearer   {TOKEN}", basic(TOKEN), basic(TOKEN, "")])
async def test_the_token_opens_everything(given: str, token_file: Path) -> None:
    async with asking(sight_of(scene().facts()), token_file=token_file) as asker:
        for path in ("/api/v1/fleet", "/metrics", "/"):
            assert (await asker.get(path, Authorization=given))[0] == 200, path


REFUSED = (
    *("", "Bearer", "Bearer ", "Bearer wrong", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", TOKEN, f"Digest {TOKEN}"),
    *(basic("wrong"), "Basic %%%", "Basic " + base64.b64encode(TOKEN.encode()).decode(), "Bearer \u00fc"),
)


@pytest.mark.parametrize("given", REFUSED)
async def test_without_the_token_only_health_is_told(given: str, token_file: Path) -> None:
    headers = {"Authorization": given} if given else {}
    async with asking(sight_of(scene().facts()), token_file=token_file) as asker:
        for path in ("/api/v1/fleet", "/api/v1/events", "/metrics", "/status.json", "/", "/no/such/page"):
            status, body, answered = await asker.get(path, **headers)
            assert (status, answered["WWW-Authenticate"].partition(" ")[0]) == (401, "Basic"), path
            assert TOKEN not in body
        for path in ("/livez", "/readyz"):
            assert (await asker.get(path, **headers))[0] != 401, path


@pytest.mark.parametrize(
    ("text", "mode", "words"),
    [
        ("", 0o600, "it is empty"),
        ("  \n", 0o600, "it is empty"),
        ("a b", 0o600, "one line"),
        ("a\nb", 0o600, "one line"),
        ("x" * 5000, 0o600, "one line"),
        ("\udcff", 0o600, "one line"),
        (TOKEN, 0o644, "everybody on this machine can read it"),
    ],
)
async def test_a_file_that_holds_no_secret_is_refused(text: str, mode: int, words: str, tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_bytes(text.encode(errors="surrogateescape"))
    path.chmod(mode)
    with pytest.raises(ConfigurationError, match=words) as refused:
        async with asking(None, token_file=path):
            pass
    assert "--listen-token-file" in str(refused.value)
    assert TOKEN not in str(refused.value)


async def test_the_token_is_found_among_the_credentials_of_systemd(
    token_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    token_file.rename(tmp_path / "listen-token")
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(tmp_path))
    async with asking(None) as asker:
        assert (await asker.get("/api/v1/fleet"))[0] == 401
        assert (await asker.get("/api/v1/fleet", Authorization=f"Bearer {TOKEN}"))[0] == 200
    async with serving(Listening(address="0.0.0.0:0"), Vitals(), TestClock()):
        assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_whoever_listens_hears_of_each_moment_until_the_end() -> None:
    stop = asyncio.Event()
    vitals = showing(sight_of(scene().facts()))
    async with (
        serving(Listening(address="127.0.0.1:0"), vitals, TestClock(), stop=stop) as address,
        aiohttp.ClientSession() as session,
        session.get(f"http://{address}/api/v1/events") as stream,
    ):
        assert stream.content_type == "text/event-stream"
        first = await stream.content.readuntil(b"\n\n")
        assert first.startswith(b"event: round\nid: 1\n")
        assert json.loads(first.partition(b"data: ")[2]) == {"round": 7, "time": "2026-11-21T10:00:00Z"}
        vitals.status.wake()
        assert (await stream.content.readuntil(b"\n\n")).startswith(b"event: round\nid: 2\n")
        stop.set()
        assert await stream.content.read() == b""


async def test_a_silent_stream_says_that_it_lives() -> None:
    events = Events(StatusStore(), ReaderLimits(), beat_s=0.01)

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        return await events.stream(PageRequest({}, {}, request))

    runner = web.ServerRunner(web.Server(answer), shutdown_timeout=1.0)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    async with aiohttp.ClientSession() as session:
        stream = await session.get(url)
        await stream.content.readuntil(b"\n\n")
        assert await stream.content.readuntil(b"\n\n") == b": alive\n\n"
        events.stop()
        await stream.read()
        async with session.get(url) as refused:
            assert refused.status == 503
    await runner.cleanup()


def asked(url: str, path: str = "fleet", **options: Any) -> dict[str, Any]:
    return RemoteService(url, **options).get(path).document


async def test_another_machine_is_told_the_same_over_a_port_and_a_socket(tmp_path: Path, token_file: Path) -> None:
    sight = sight_of(scene().facts())
    async with asking(sight, token_file=token_file) as asker:
        found = await asyncio.to_thread(asked, f"http://{asker.address}/", token=TOKEN)
        assert found == (await asker.get("/api/v1/fleet", Authorization=f"Bearer {TOKEN}"))[1]
        for token, words in ((TOKEN + "x", "it refuses the token"), ("", "--server-token-file")):
            with pytest.raises(ServiceError, match=words):
                await asyncio.to_thread(asked, f"http://{asker.address}", token=token)
    socket = tmp_path / "http.sock"
    async with serving(Listening(address=f"unix:{socket}"), showing(sight), TestClock()):
        assert (await asyncio.to_thread(asked, f"unix:{socket}", token=TOKEN))["clusters"]["total"] == 2
        with pytest.raises(ServiceError, match="no round has been recorded yet"):
            await asyncio.to_thread(asked, f"unix:{socket}", "status")
    with pytest.raises(ServiceError, match="nobody listens there"):
        await asyncio.to_thread(asked, f"unix:{socket}.gone")
