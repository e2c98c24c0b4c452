"""The pages on a real port: drawn of what `/api/v1` answers with, for who has the token, and kept for a moment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from reconciler.server.pages import CACHE_CONTROL, fleet_page
from tests.unit.report.views.sights import sight_of
from tests.unit.server.test_api import TOKEN, asking, journal_of, scene, token_file

__all__ = ["token_file"]

PAGES = ("/", "/?troubles=1&q=app&kind=*", "/problems", "/history", "/history?since=2h", "/clusters/m1",
         "/objects/configmap/demo/app")  # fmt: skip


async def test_every_page_is_drawn_and_allows_nothing_but_its_own_files(tmp_path: Path) -> None:
    sight = sight_of(scene().facts())
    async with asking(sight, journal_of(tmp_path, sight)) as asker:
        for path in PAGES:
            status, body, headers = await asker.get(path)
            assert (status, body.count("<h1")) == (200, 1), path
            assert headers["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'; script-src")
            assert headers["Content-Type"] == "text/html; charset=utf-8"
            for address in re.findall(r'(?:src|href)="(/static/[^"]+)"', body):
                status, _, headers = await asker.get(address)
                assert (status, headers["Cache-Control"]) == (200, CACHE_CONTROL), address
        _, body, _ = await asker.get("/objects/configmap/demo/app")
        assert "1 of 3 replicas are available" in body


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/objects/configmap/demo/ap", 404, "/objects/ConfigMap/demo/app"),
        ("/clusters/m9", 404, "there is no such cluster"),
        ("/?offset=x", 400, "offset: it is no number"),
        ("/history?since=yesterday", 400, "write 2h, 2d or 2026-11-21T18:00:00Z"),
        ("/static/page-000000000000.css", 404, "is not there"),
    ],
)
async def test_what_is_not_there_or_not_understood_is_said(path: str, status: int, words: str, tmp_path: Path) -> None:
    sight = sight_of(scene().facts())
    async with asking(sight, journal_of(tmp_path, sight)) as asker:
        found, body, headers = await asker.get(path)
        assert (found, words in body) == (status, True), body
        assert "yesterday" not in body
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")


async def test_before_the_first_round_the_fleet_page_says_so() -> None:
    async with asking(None) as asker:
        status, body, _ = await asker.get("/")
        assert (status, "no round yet" in body) == (200, True)
        status, body, _ = await asker.get("/problems")
        assert (status, "no round has ended yet" in body) == (503, True)


async def test_a_process_that_stands_by_shows_nothing_of_when_it_led(tmp_path: Path) -> None:
    sight = sight_of(scene().facts())
    async with asking(sight, journal_of(tmp_path, sight)) as asker:
        asker.vitals.phase = "standing by; ops2 leads"
        asker.vitals.stand_by()
        status, body, _ = await asker.get("/")
        assert (status, "ops2 leads" in body, "this process stands by" in body) == (200, True, True)
        status, body, _ = await asker.get("/clusters/m1")
        assert (status, "ask the process that leads" in body) == (503, True)
        _, body, _ = await asker.get("/metrics")
        assert "fleet_reconciler_leader 0.0" in body
        assert "fleet_reconciler_cluster_up{" not in body


async def test_pages_ask_for_the_token_as_the_api_does(token_file: Path) -> None:
    async with asking(sight_of(scene().facts()), token_file=token_file) as asker:
        for path in ("/", "/problems", "/static/page-000000000000.css"):
            status, body, headers = await asker.get(path)
            assert (status, headers["WWW-Authenticate"].startswith("Basic ")) == (401, True), body
        status, _, _ = await asker.get("/", Authorization=f"Bearer {TOKEN}")
        assert status == 200


async def test_a_page_that_was_just_drawn_is_sent_again_until_something_is_otherwise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[int] = []

    def counted(*of: object) -> str:
        drawn.append(1)
        return fleet_page(*of)  # type: ignore[arg-type]

    monkeypatch.setattr("reconciler.server.site.fleet_page", counted)
    sight = sight_of(scene().facts())
    async with asking(sight) as asker:
        _, _, headers = await asker.get("/")
        for _ in range(3):
            assert (await asker.get("/"))[0] == 200
        assert len(drawn) == 1
        assert (await asker.get("/", If_None_Match=headers["ETag"]))[0] == 304
        other = scene()
        other.health = {}
        shown = asker.vitals.snapshot
        assert shown is not None
        asker.vitals.status.publish(type(shown)(picture=sight_of(other.facts()).picture, since=shown.since))
        assert (await asker.get("/", If_None_Match=headers["ETag"]))[0] == 200
        assert len(drawn) == 2
