"""The comment of a pull request, against a server that speaks the APIs of GitHub and GitLab."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from reconciler.errors import ForgeError
from reconciler.notify.forge_comments import PublishedComment, Requests, marker_of, publish
from reconciler.notify.forges import GitHub, GitLab, pull_request
from tests.fakes.forge import FakeForge

PLAN = "<!-- fleet-plan -->\n### 2 deletions\n"
NEWER = "<!-- fleet-plan -->\n### 3 deletions\n"
SHOP = "<!-- fleet-plan shop -->\n### no changes\n"

Client = GitHub | GitLab
Make = Callable[[FakeForge], Client]


def github(forge: FakeForge, *, token: str = "", number: int = 7) -> GitHub:
    return GitHub(
        api=forge.url,
        graphql=f"{forge.url}/graphql",
        repository="acme/fleet",
        number=number,
        token=token or forge.token,
        pause=lambda _: None,
    )


def gitlab(forge: FakeForge, *, token: str = "", number: int = 7) -> GitLab:
    return GitLab(
        api=f"{forge.url}/api/v4", project="42", number=number, token=token or forge.token, pause=lambda _: None
    )


@pytest.fixture
def forge() -> Iterator[FakeForge]:
    with FakeForge() as made:
        yield made


both = pytest.mark.parametrize("make", [github, gitlab])


@both
def test_the_first_plan_is_a_comment(forge: FakeForge, make: Make) -> None:
    assert publish(make(forge), PLAN) is PublishedComment.CREATED
    assert [one.body for one in forge.comments] == [PLAN]


@both
def test_the_next_plan_edits_it_whatever_others_said_since(forge: FakeForge, make: Make) -> None:
    forge.add("Looks good", "a person")
    publish(make(forge), PLAN)
    for number in range(5):
        forge.add(f"talk {number}", "us")
    assert publish(make(forge), NEWER) is PublishedComment.UPDATED
    assert [one.body for one in forge.comments if "fleet-plan" in one.body] == [NEWER]
    assert len(forge.comments) == 7


@both
def test_the_same_plan_is_not_written_again(forge: FakeForge, make: Make) -> None:
    forge.add(PLAN.replace("\n", "\r\n"))
    assert publish(make(forge), PLAN) is PublishedComment.SAME
    assert not [target for method, target in forge.asked if method == "PUT" or target.endswith("comments")]


@both
def test_comments_of_others_and_of_other_fleets_are_never_touched(forge: FakeForge, make: Make) -> None:
    theirs = forge.add(PLAN, "a person")
    shop = forge.add(SHOP)
    assert publish(make(forge), NEWER) is PublishedComment.CREATED
    assert (theirs.body, shop.body, forge.comments[-1].body) == (PLAN, SHOP, NEWER)
    assert not theirs.is_minimized
    assert not shop.is_minimized


@both
def test_older_comments_of_ours_are_marked_as_outdated_once(forge: FakeForge, make: Make) -> None:
    old = [forge.add(f"{PLAN}{number}") for number in range(3)]
    newest = forge.add(PLAN)
    publish(make(forge), NEWER)
    assert newest.body == NEWER
    assert not newest.is_minimized
    assert all(one.is_minimized or "Outdated fleet plan</summary>\n\n### 2 deletions" in one.body for one in old)
    before = len([method for method, _ in forge.asked if method == "PUT"])
    assert publish(make(forge), NEWER) is PublishedComment.SAME
    assert len([method for method, _ in forge.asked if method == "PUT"]) == before


def test_a_comment_that_somebody_hid_stays_hidden(forge: FakeForge) -> None:
    hidden = forge.add(PLAN, is_minimized=True)
    assert publish(github(forge), NEWER) is PublishedComment.CREATED
    assert hidden.body == PLAN


@both
def test_a_plan_without_changes_makes_no_comment_but_corrects_one(forge: FakeForge, make: Make) -> None:
    assert publish(make(forge), PLAN, creates=False) is PublishedComment.NOT_WANTED
    assert forge.comments == []
    publish(make(forge), PLAN)
    assert publish(make(forge), NEWER, creates=False) is PublishedComment.UPDATED


@both
def test_a_job_that_was_overtaken_writes_nothing(forge: FakeForge, make: Make) -> None:
    publish(make(forge), NEWER, head=forge.head)
    assert publish(make(forge), PLAN, head="0ld") is PublishedComment.OVERTAKEN
    assert [one.body for one in forge.comments] == [NEWER]


@both
def test_a_forge_that_is_briefly_not_well_is_asked_again_but_nothing_is_written_twice(
    forge: FakeForge, make: Make
) -> None:
    forge.faults = [502, 429]
    assert publish(make(forge), PLAN) is PublishedComment.CREATED
    client = make(forge)
    forge.faults = [503]
    with pytest.raises(ForgeError, match="503 not now"):
        client.create(PLAN)
    assert len(forge.comments) == 1


@both
def test_a_redirect_is_not_followed_since_the_token_would_go_along(forge: FakeForge, make: Make) -> None:
    forge.faults = [302]
    with pytest.raises(ForgeError, match="302"):
        publish(make(forge), PLAN)


@pytest.mark.parametrize(
    ("client", "words"),
    [
        (lambda forge: github(forge, token="wrong"), "401 Bad credentials; the token is not known there"),
        (lambda forge: gitlab(forge, token="wrong"), "401 Bad credentials; the token is not known there"),
        (lambda forge: github(forge, number=8), "acme/fleet has no pull request 8 that the token may see"),
        (lambda forge: gitlab(forge, number=8), "404 Not Found; it is not there"),
    ],
)
def test_a_refusal_says_what_to_look_at(forge: FakeForge, client: Make, words: str) -> None:
    with pytest.raises(ForgeError, match=words):
        publish(client(forge), PLAN)


@both
@pytest.mark.parametrize("raw", [b"<html>", b"[1]", b"{}", b"null", b'{"data": {}, "errors": [{"message": "no"}]}'])
def test_an_answer_that_is_none_is_a_refusal(forge: FakeForge, make: Make, raw: bytes) -> None:
    forge.raw = raw
    with pytest.raises(ForgeError):
        publish(make(forge), PLAN)


def test_nobody_there_is_a_refusal() -> None:
    with FakeForge() as gone:
        client = github(gone)
    with pytest.raises(ForgeError, match="no answer"):
        publish(client, PLAN)


@pytest.mark.parametrize("base", ["file:///etc", "ftp://x", "api.github.com"])
def test_only_http_is_spoken(base: str) -> None:
    with pytest.raises(ForgeError, match="begins with https://"):
        Requests(base, {})


@pytest.mark.parametrize("text", ["", "# Readme\n", "<!-- fleet-plan\n-->", "x <!-- fleet-plan -->"])
def test_only_a_plan_is_published(text: str) -> None:
    with pytest.raises(ForgeError, match="the file is no plan"):
        marker_of(text)


def test_a_repository_has_an_owner_and_a_name(forge: FakeForge) -> None:
    with pytest.raises(ForgeError, match="is not OWNER/NAME"):
        GitHub(api=forge.url, graphql=forge.url, repository="fleet", number=1, token="x")


class TestSurroundings:
    def test_both_runners_tell_the_pull_request(self, forge: FakeForge, tmp_path: Path) -> None:
        event = tmp_path / "event.json"
        event.write_text(json.dumps(forge.github_event()))
        for environment in (forge.github(str(event)), forge.gitlab()):
            at, head = pull_request(environment)
            assert head == forge.head
            assert publish(at, PLAN, head=head) in (PublishedComment.CREATED, PublishedComment.SAME)
        assert len(forge.comments) == 1

    def test_a_merged_result_is_about_the_commit_of_the_branch(self, forge: FakeForge) -> None:
        merged = {**forge.gitlab(), "CI_COMMIT_SHA": "merged", "CI_MERGE_REQUEST_SOURCE_BRANCH_SHA": forge.head}
        assert pull_request(merged)[1] == forge.head

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"GITHUB_ACTIONS": ""}, "no job of GitHub Actions or GitLab CI"),
            ({"GITHUB_EVENT_PATH": ""}, "about no pull request"),
            ({"GITHUB_EVENT_PATH": "/nowhere"}, "cannot be read"),
            ({"GITHUB_TOKEN": ""}, "set RECONCILER_FORGE_TOKEN or GITHUB_TOKEN"),
        ],
    )
    def test_what_is_missing_is_named(
        self, forge: FakeForge, tmp_path: Path, change: dict[str, str], words: str
    ) -> None:
        event = tmp_path / "event.json"
        event.write_text(json.dumps(forge.github_event()))
        with pytest.raises(ForgeError, match=words):
            pull_request({**forge.github(str(event)), **change})

    def test_a_pipeline_of_a_branch_is_about_no_merge_request(self, forge: FakeForge) -> None:
        with pytest.raises(ForgeError, match="about no merge request"):
            pull_request({**forge.gitlab(), "CI_MERGE_REQUEST_IID": ""})
        with pytest.raises(ForgeError, match="set RECONCILER_FORGE_TOKEN"):
            pull_request({**forge.gitlab(), "RECONCILER_FORGE_TOKEN": ""})
