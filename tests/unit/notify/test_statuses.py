"""Statuses of commits on forges that are unkind: told when they change, not too often, the last one always.

Source: GitHub, REST, "Commit statuses" and "Rate limits"; GitLab, REST, "Commits"; Gitea, API.

The status of a commit at forges, by the counts of the state.
"""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.errors import ConfigurationError
from reconciler.notify.commit_statuses import (
    APART_S,
    DESCRIPTION_MAX,
    REFUSALS_MAX,
    SETTLE_S,
    CommitStatus,
    CommitStatuses,
    ForgeKind,
    ForgeOptions,
    commit_status,
    repository_of,
)
from reconciler.notify.post import TIMEOUT_S, Deliveries, Poster
from reconciler.state import HealthWord, Lag, RevisionStep
from tests.fakes.clocks import TestClock
from tests.fakes.rollouts import AWAITED, DONE, PAUSED
from tests.fakes.scripted_server import CUT, HANG, ScriptedServer, reply

AT = "/repos/acme/fleet/statuses"
OLD, NEW = "0" * 40, "1" * 40
TOKEN = "t0ken-of-the-forge"
MADE = reply(201, {"id": 1})


class Scene:
    """A forge, and what is said of a commit."""

    def __init__(self, server: ScriptedServer, poster: Poster, token: Path, kind: ForgeKind) -> None:
        self.server, self.clock, self.told, self.token = server, TestClock(), Deliveries(), token
        self.now: CommitStatus | None = None
        repository = repository_of(kind, host="", path="", repository="acme/fleet", api=server.url)
        options = ForgeOptions(repository=repository, token=token, page_url="https://fleet.example.com/")
        self.statuses = CommitStatuses(
            options, poster, self.clock, lambda: self.now, lambda: "shop", self.told, jitter=lambda: 0.0
        )  # fmt: skip

    async def says(self, commit: str, state: str, words: str, after_s: float = 0.0) -> None:
        self.now = CommitStatus(commit=commit, state=state, description=words)
        self.clock.advance(after_s)
        await self.statuses.step()

    async def passes(self, seconds: float) -> None:
        for _ in range(int(seconds)):
            self.clock.advance(1)
            await self.statuses.step()

    @property
    def said(self) -> list[tuple[str, str]]:
        """Return what the forge was asked to say, in order."""
        bodies = (json.loads(asked.body) for asked in self.server.asked)
        return [(body["state"], body["description"]) for body in bodies]


@asynccontextmanager
async def scene(folder: Path, *script: bytes, kind: ForgeKind = ForgeKind.GITHUB) -> AsyncIterator[Scene]:
    token = folder / "token"
    token.write_text(f"{TOKEN}\n")
    async with ScriptedServer(*(script or (MADE,))) as server, Poster.open() as poster:
        yield Scene(server, poster, token, kind)


@pytest.mark.parametrize(
    ("kind", "target", "header", "state", "context"),
    [
        (ForgeKind.GITHUB, f"{AT}/{OLD}", ("authorization", f"Bearer {TOKEN}"), "failure", "context"),
        (ForgeKind.GITLAB, f"/projects/acme%2Ffleet/statuses/{OLD}", ("private-token", TOKEN), "failed", "name"),
        (ForgeKind.GITEA, f"{AT}/{OLD}", ("authorization", f"token {TOKEN}"), "failure", "context"),
    ],
)  # fmt: skip
async def test_each_forge_is_asked_as_its_api_says(
    kind: ForgeKind, target: str, header: tuple[str, str], state: str, context: str, tmp_path: Path
) -> None:
    async with scene(tmp_path, kind=kind) as it:
        await it.says(OLD, "failure", "2 failed")
        await it.passes(SETTLE_S)
        (asked,) = it.server.asked
        assert (asked.method, asked.target) == ("POST", target)
        assert asked.headers[header[0]] == header[1]
        assert json.loads(asked.body) == {
            "state": state, "description": "2 failed", "target_url": "https://fleet.example.com/",
            context: "fleet-reconciler/shop",
        }  # fmt: skip


async def test_a_status_is_told_when_it_changes_and_not_too_often_and_the_last_one_always(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.says(NEW, "pending", "0 of 42")
        for count in range(1, 43):
            await it.says(NEW, "pending", f"{count} of 42", after_s=1)
        await it.says(NEW, "success", "42 of 42")
        await it.passes(60)
        assert it.said[0] == ("pending", "0 of 42")
        assert it.said[-1] == ("success", "42 of 42")
        assert len(it.said) <= 2 + 42 / APART_S
        assert it.told.pending == 0


async def test_a_state_that_does_not_last_is_not_told(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.says(NEW, "pending", "0 of 1")
        await it.passes(60)
        await it.says(NEW, "success", "1 of 1")
        await it.says(NEW, "pending", "0 of 1", after_s=1)
        await it.passes(60)
        assert it.said == [("pending", "0 of 1")]


async def test_a_newer_commit_takes_the_place_of_one_that_could_not_be_told(tmp_path: Path) -> None:
    async with scene(tmp_path, reply(500), MADE) as it:
        await it.says(OLD, "pending", "old")
        await it.says(NEW, "pending", "new", after_s=1)
        await it.passes(20)
        assert [asked.target.rpartition("/")[2] for asked in it.server.asked] == [OLD, NEW]


@pytest.mark.parametrize("commit", ["dir:0123", "", "main", "0" * 39, "../" + "0" * 40])
async def test_only_of_a_commit_anything_is_said(commit: str, tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        await it.says(commit, "pending", "x")
        await it.passes(20)
        assert not it.server.asked


LATER = {
    "401": reply(401, {"message": "Bad credentials"}),
    "403": reply(403, {"message": "Resource not accessible"}),
    "500": reply(500),
    "502 html": reply(502, b"<html>bad gateway</html>"),
    "redirect": reply(301, Location="http://127.0.0.1:9/stolen"),
    "reset": CUT,
    "hang": HANG,
    "hostile": reply(500, b'{"message": ' + b"[" * 200_000),
    "huge": reply(500, b"x" * 5_000_000),
}


@pytest.mark.parametrize("answer", LATER.values(), ids=LATER)
async def test_what_was_not_taken_is_told_again_ever_more_rarely(
    answer: bytes, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "reconciler")
    async with scene(tmp_path, answer, answer, MADE) as it:
        it.server.patience_s = TIMEOUT_S
        await it.says(NEW, "pending", "0 of 1")
        await it.passes(30)
        assert it.said == [("pending", "0 of 1")] * 3
        assert (it.told.delivered, it.told.failed, it.told.pending) == (1, 2, 0)
    logged = [record.__dict__.get("event") for record in caplog.records]
    assert logged == ["CommitStatusFailed", "CommitStatusRecovered"]
    assert TOKEN not in caplog.text + str([record.__dict__ for record in caplog.records])


async def test_a_rate_limit_is_waited_for_until_it_is_reset(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        reset = 1_800_000_000 + 120
        limit = reply(403, X_RateLimit_Remaining="0", X_RateLimit_Reset=str(reset))
        it.server._script = [limit, MADE]
        await it.says(NEW, "pending", "0 of 1")
        await it.passes(110)
        assert len(it.said) == 1
        await it.passes(15)
        assert len(it.said) == 2


@pytest.mark.parametrize("status", [404, 422])
async def test_a_commit_that_takes_no_status_is_left_alone_after_a_while_and_the_next_one_is_not(
    status: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    refusal = reply(status, {"message": "This SHA and context has reached the maximum number of statuses."})
    async with scene(tmp_path, *[refusal] * REFUSALS_MAX, MADE) as it:
        await it.says(OLD, "pending", "0 of 1")
        await it.passes(600)
        await it.says(OLD, "success", "1 of 1")
        await it.passes(600)
        assert len(it.said) == REFUSALS_MAX
        await it.says(NEW, "pending", "0 of 1")
        await it.passes(1)
        assert it.server.asked[-1].target.endswith(NEW)
        assert it.told.dropped == 1
    assert sum(record.__dict__.get("event") == "CommitStatusRefused" for record in caplog.records) == 1


async def test_gitlab_refuses_a_state_that_it_has_already(tmp_path: Path) -> None:
    refusal = reply(400, {"message": 'Cannot transition status via :enqueue from :pending (Reason(s): Status cannot '
                                     'transition via "enqueue")'})  # fmt: skip
    async with scene(tmp_path, refusal, kind=ForgeKind.GITLAB) as it:
        await it.says(NEW, "pending", "0 of 1")
        await it.passes(60)
        assert (len(it.said), it.told.delivered) == (1, 1)


async def test_a_token_is_read_when_it_is_needed(tmp_path: Path) -> None:
    async with scene(tmp_path) as it:
        it.token.unlink()
        await it.says(NEW, "pending", "0 of 1")
        assert (it.said, it.told.failed) == ([], 1)
        it.token.write_text("renewed")
        await it.passes(5)
        assert it.server.asked[0].headers["authorization"] == "Bearer renewed"


@pytest.mark.parametrize(
    ("kind", "host", "path", "repository", "api", "expected"),
    [
        (ForgeKind.GITHUB, "github.com", "/acme/fleet.git", "", "", ("https://api.github.com", "acme/fleet")),
        (ForgeKind.GITHUB, "git.acme.com", "/acme/fleet", "", "", ("https://git.acme.com/api/v3", "acme/fleet")),
        (ForgeKind.GITLAB, "gitlab.com", "/a/b/fleet.git", "", "", ("https://gitlab.com/api/v4", "a/b/fleet")),
        (ForgeKind.GITEA, "codeberg.org", "/acme/fleet.git", "", "", ("https://codeberg.org/api/v1", "acme/fleet")),
        (ForgeKind.GITEA, "git.acme.com", "/x/y", "acme/fleet", "https://f.acme.com/api/v1/",
         ("https://f.acme.com/api/v1", "acme/fleet")),
        (ForgeKind.GITHUB, "", "", "acme/fleet", "", ("https://api.github.com", "acme/fleet")),
    ],
)  # fmt: skip
def test_where_statuses_go_follows_from_the_store(
    kind: ForgeKind, host: str, path: str, repository: str, api: str, expected: tuple[str, str]
) -> None:
    found = repository_of(kind, host=host, path=path, repository=repository, api=api)
    assert (found.api, found.path) == expected


@pytest.mark.parametrize(
    ("kind", "repository"), [(ForgeKind.GITEA, "acme/fleet"), (ForgeKind.GITHUB, ""), (ForgeKind.GITHUB, "a/b/c")]
)
def test_where_it_does_not_follow_it_has_to_be_named(kind: ForgeKind, repository: str) -> None:
    with pytest.raises(ConfigurationError, match="--forge-"):
        repository_of(kind, host="", path="", repository=repository, api="")


ALL = Lag.SYNCED
CASES: tuple[tuple[str, dict[str, Any], str, str, str], ...] = (
    ("all", {"in_step": 42}, "", "success", "42 of 42 clusters in step"),
    ("some", {"in_step": 12, "syncs": {Lag.PENDING: 9}}, "", "pending", "12 of 42 clusters in step"),
    ("away", {"in_step": 41, "away": ("m7",)}, "", "pending", "41 of 42 clusters in step; away: m7"),
    ("many away", {"in_step": 38, "away": ("a", "b", "c", "d")}, "", "pending",
     "38 of 42 clusters in step; away: a, b, c, …"),
    ("rolls out", {"in_step": 42, "healths": {HealthWord.PROGRESSING: 3}}, "", "pending",
     "42 of 42 clusters in step; 3 progressing"),
    ("failed", {"in_step": 41, "syncs": {Lag.FAILED: 2, Lag.REFUSED: 1}}, "", "failure",
     "41 of 42 clusters in step; 2 failed, 1 refused"),
    ("held by a person", {"in_step": 41, "syncs": {Lag.HELD: 5}, "waiting": 2}, "", "failure",
     "41 of 42 clusters in step; 2 held"),
    ("a move", {"in_step": 41, "syncs": {Lag.HELD: 5}}, "", "pending", "41 of 42 clusters in step"),
    ("fought", {"in_step": 41, "syncs": {Lag.FOUGHT: 1}}, "", "failure", "41 of 42 clusters in step; 1 fought"),
    ("degraded", {"in_step": 42, "healths": {HealthWord.DEGRADED: 1}}, "", "failure",
     "42 of 42 clusters in step; 1 degraded"),
    ("broken", {"in_step": 42, "errors": 1}, "", "error", "42 of 42 clusters in step; 1 error in the store"),
    ("not readable", {"in_step": 42, "broken": 2}, "", "error",
     "42 of 42 clusters in step; 2 files of the store cannot be read"),
    ("a kind", {"in_step": 41, "unread": 1}, "", "pending", "41 of 42 clusters in step; 1 kind not read"),
    ("placed nowhere", {"in_step": 42, "unplaced": 2}, "", "pending",
     "42 of 42 clusters in step; 2 not placed as wanted"),
    ("not followed", {"in_step": 42}, "boom", "error", "42 of 42 clusters in step; the store cannot be followed"),
    ("no cluster", {"clusters": 0, "in_step": 0}, "", "pending", "0 of 0 clusters in step"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("given", "source_error", "verdict", "words"), [row[1:] for row in CASES], ids=[row[0] for row in CASES]
)
def test_table(given: dict[str, Any], source_error: str, verdict: str, words: str) -> None:
    step = RevisionStep(**{"revision": "c0ffee", "clusters": 42, **given})
    assert commit_status(step, source_error) == (verdict, words)


def test_words_fit_what_forges_take() -> None:
    step = RevisionStep(revision="c0ffee", clusters=3, in_step=0, away=("x" * 100, "y" * 100, "z" * 100))
    assert len(commit_status(step)[1]) == DESCRIPTION_MAX


def test_a_commit_that_has_not_reached_all_stages_is_pending() -> None:
    """Each cluster is in step with its own revision, which is not yet that of the commit."""
    step = RevisionStep(revision="c0ffee", clusters=3, in_step=3)
    assert commit_status(step, "", (AWAITED,)) == (
        "pending",
        "3 of 3 clusters in step; default: canary done; the next stage needs an approval",
    )
    assert commit_status(step, "", (PAUSED,)) == ("failure", "3 of 3 clusters in step; default paused in canary")
    assert commit_status(step, "", (DONE,)) == ("success", "3 of 3 clusters in step")
