"""Commits that come between two readings: each is judged by its own confirmation, which covers no other.

Source: design#settings-plan.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import pygit2
import pytest
import yaml

from reconciler.api.fleet import Fleet, StoreFile
from reconciler.api.plan import Direction
from reconciler.lint import setting_changes, settings_digest
from tests.fakes.store_trees import commit_all, write_files
from tests.unit.controller.test_store_follower import Followed

GUESS = "0123456789abcdef"


class Commit(NamedTuple):
    """Settings of the fleet. `confirm`: how many commits back it was reviewed; 0: as before; a text: that text."""

    frozen: bool
    heals: bool = True
    deletes: int = 10
    confirm: int | str = 0

    def text(self, review: str) -> str:
        """Return the Fleet document."""
        spec: dict[str, Any] = {"guards": {"maxDeletes": self.deletes}, "drift": {"selfHeal": self.heals}}
        if self.frozen:
            spec["windows"] = [{"kind": "deny", "cron": "0 0 * * *", "duration": "48h"}]
        if review:
            spec["review"] = {"confirm": review}
        body = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "shop"}, "spec": spec}
        return yaml.safe_dump(body)


def digest(before: str, after: str) -> str:
    """Return what a review of two Fleet documents names."""
    sides = [[StoreFile(path="fleet.yaml", blob=text, data=text.encode())] for text in (before, after)]
    return settings_digest(one for one in setting_changes(*sides) if one.direction is Direction.LOOSENS)


def documents(*commits: Commit) -> list[str]:
    """Return the Fleet document of each commit, the first of which was followed."""
    review, found = "", list[str]()
    for commit in commits:
        if isinstance(commit.confirm, str):
            review = commit.confirm
        elif commit.confirm:
            review = digest(found[-commit.confirm], commit.text(""))
        found.append(commit.text(review))
    return found


FROZEN, LIFTED = Commit(frozen=True), Commit(frozen=False)
UNHEALED, BOTH = Commit(frozen=True, heals=False), Commit(frozen=False, heals=False)
CASES: dict[str, tuple[bool, bool, tuple[Commit, ...]]] = {
    "one": (True, False, (LIFTED._replace(confirm=1),)),
    "two, each with its own": (True, False, (UNHEALED._replace(confirm=1), BOTH._replace(confirm=1))),
    "one, then an ordinary one": (True, False, (LIFTED._replace(confirm=1), LIFTED._replace(deletes=5))),
    "one, then one that takes it out": (True, False, (LIFTED._replace(confirm=1), LIFTED._replace(confirm=""))),
    "lifted, back, and lifted again": (
        True, False, (LIFTED._replace(confirm=1), FROZEN._replace(confirm=""), LIFTED._replace(confirm=1)),
    ),
    "two commits of one branch": (True, False, (LIFTED, LIFTED._replace(confirm=2))),
    "two commits of one branch, after another one": (
        True, False, (UNHEALED._replace(confirm=1), BOTH, BOTH._replace(confirm=2)),
    ),
    "one after an ordinary one": (True, False, (FROZEN._replace(deletes=5), LIFTED._replace(deletes=5, confirm=1))),
    "one that was mistyped": (True, False, (LIFTED._replace(confirm=GUESS), LIFTED._replace(confirm=2))),
    "one that nobody confirmed, before": (False, False, (UNHEALED, BOTH._replace(confirm=1))),
    "one that nobody confirmed, after": (False, False, (UNHEALED._replace(confirm=1), BOTH)),
    "one that nobody confirmed, in between": (
        False, False, (UNHEALED._replace(confirm=1), BOTH, BOTH._replace(deletes=20, confirm=1)),
    ),
    "one that nobody confirmed, in the same branch": (False, False, (LIFTED, BOTH._replace(confirm=1))),
    "a guess": (False, True, (LIFTED._replace(confirm=GUESS),)),
    "one, then a guess": (False, True, (UNHEALED._replace(confirm=1), BOTH._replace(confirm=GUESS))),
    "more than are judged": (False, True, tuple(LIFTED._replace(deletes=20 + n, confirm=1) for n in range(11))),
}  # fmt: skip


def judged(fleet: Fleet | None) -> tuple[bool, bool]:
    """Return whether a confirmation counts, and whether one is an error."""
    assert fleet is not None
    return bool(fleet.settings.review_confirm), "confirmation-fits-nothing" in {found.code for found in fleet.problems}


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "work tree") for name in CASES), ("two, each with its own", "url")]
)
async def test_each_commit_has_its_own_confirmation(name: str, kind: str, tmp_path: Path) -> None:
    counts, is_error, commits = CASES[name]
    followed, (first, *others) = Followed(tmp_path, kind), documents(FROZEN, *commits)
    followed.put({"fleet.yaml": first})
    async with followed.follower() as follower:
        await followed.until(follower)
    for text in others:
        followed.put({"fleet.yaml": text})
    for _ in range(2):
        async with followed.follower() as follower:
            assert judged(await followed.until(follower)) == (counts, is_error), "and so after a restart"
    followed.put({"notes.yaml": ""})
    async with followed.follower() as follower:
        assert judged(await followed.until(follower)) == (False, False), "it is for the revision that brings it"


async def test_a_merge_is_one_step_whatever_its_branch_has(tmp_path: Path) -> None:
    followed = Followed(tmp_path, "work tree")
    first, on_main, merged = documents(FROZEN, UNHEALED._replace(confirm=1), BOTH._replace(confirm=1))
    (lifted,) = documents(LIFTED)
    base = followed.put({"fleet.yaml": first})
    async with followed.follower() as follower:
        await followed.until(follower)
        repository = pygit2.Repository(str(followed.work))
        tip = followed.put({"fleet.yaml": lifted})
        followed.set_back(base)
        main = followed.put({"fleet.yaml": on_main})
        write_files(followed.work, {"fleet.yaml": merged})
        commit = repository[commit_all(followed.work)].peel(pygit2.Commit)
        author = commit.author
        found = repository.create_commit(None, author, author, "merge", commit.tree_id, [main, tip])
        followed.set_back(str(found))
        assert judged(await followed.until(follower)) == (True, False)


async def test_a_branch_that_was_rewritten_is_one_change(tmp_path: Path) -> None:
    followed, (first, lifted) = Followed(tmp_path, "work tree"), documents(FROZEN, LIFTED._replace(confirm=1))
    followed.put({"fleet.yaml": first})
    async with followed.follower() as follower:
        await followed.until(follower)
        repository = pygit2.Repository(str(followed.work))
        commit = repository[followed.put({"fleet.yaml": lifted})].peel(pygit2.Commit)
        author = commit.author
        followed.set_back(str(repository.create_commit(None, author, author, "root", commit.tree_id, [])))
        assert judged(await followed.until(follower)) == (True, False)
