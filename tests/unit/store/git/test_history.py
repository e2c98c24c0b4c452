"""The order of revisions, the revision of a text, and what keeps a commit from being collected."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import pygit2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pygit2.enums import ObjectType

from reconciler.api.rollouts import Ancestry
from reconciler.errors import StoreError
from reconciler.store.git import commit_history as history
from reconciler.store.git import repository as repositories
from reconciler.store.git.commit_history import ancestry, keep_revisions, kept_below, resolve_revisions
from tests.fakes.store_trees import AUTHOR, commit_all, write_files

BELOW = kept_below(None, "")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    commit_all(write_files(tmp_path / "work", {"a.yaml": "0"}), new=True)
    return tmp_path / "work"


def commit(work: Path, text: str) -> str:
    write_files(work, {"a.yaml": text})
    return commit_all(work, message=text)


def grafted(repository: pygit2.Repository, parents: list[str], time_s: int) -> str:
    """A commit with these parents, made at this time."""
    author = pygit2.Signature("Ann", "ann@example.com", time_s, 0)
    tree = repository.head.peel(pygit2.Commit).tree.id
    return str(repository.create_commit(None, author, author, "x", tree, [pygit2.Oid(hex=one) for one in parents]))


def test_ancestors_come_in_the_order_of_descent_and_others_not_at_all(work: Path) -> None:
    commits = [commit(work, str(number)) for number in range(6)]
    repository = pygit2.Repository(str(work))
    aside = grafted(repository, [commits[1]], 1_700_000_000)
    gone = "f" * 40
    found = ancestry(work, [commits[4], aside, commits[0], gone, "main", "HEAD~1"], commits[5])
    assert found.order == (commits[0], commits[4], commits[5])
    assert found.missing == {gone, "main", "HEAD~1"}
    assert ancestry(work, [commits[5]], commits[2]).order == (commits[2],)
    assert ancestry(work, [], commits[2]).order == (commits[2],)


def test_a_head_or_a_repository_that_is_not_there_leaves_no_order(work: Path, tmp_path: Path) -> None:
    there = commit(work, "1")
    assert ancestry(work, [there], "e" * 40) == Ancestry(missing=frozenset({"e" * 40}))
    found = ancestry(tmp_path / "nowhere", [there], there)
    assert (found.order, found.missing) == ((), frozenset({there}))


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.tuples(st.lists(st.integers(0, 30), min_size=1, max_size=2), st.integers(0, 5)), max_size=12),
    st.data(),
)
def test_no_clock_of_an_author_turns_the_order_round(edges: list[tuple[list[int], int]], data: st.DataObject) -> None:
    with TemporaryDirectory() as folder:
        first = commit_all(write_files(Path(folder), {"a.yaml": "0"}), new=True)
        repository = pygit2.Repository(folder)
        commits = [first]
        for parents, time_s in edges:
            chosen = sorted({commits[number % len(commits)] for number in parents})
            commits.append(grafted(repository, chosen, 1_700_000_000 - 10 * time_s))
        head = commits[-1]
        wanted = data.draw(st.lists(st.sampled_from(commits), max_size=6))
        order = ancestry(Path(folder), wanted, head).order

        def descends(one: str, other: str) -> bool:
            return one == other or repository.descendant_of(pygit2.Oid(hex=one), pygit2.Oid(hex=other))

        assert set(order) == {one for one in (*wanted, head) if descends(head, one)}
        assert len(order) == len(set(order))
        for place, older in enumerate(order):
            assert not any(descends(older, newer) for newer in order[place + 1 :])


def test_the_same_question_walks_once_and_still_notices_what_is_gone(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commits = [commit(work, str(number)) for number in range(3)]
    walks: list[str] = []
    walk = repositories.descendants

    def counted(repository: pygit2.Repository, asked: list[pygit2.Oid]) -> dict[pygit2.Oid, int]:
        walks.append(str(asked[0]))
        return walk(repository, asked)

    monkeypatch.setattr(history, "descendants", counted)
    for _ in range(3):
        assert ancestry(work, [commits[0]], commits[2]).order == (commits[0], commits[2])
    assert walks == [commits[2]]
    (work / ".git/objects" / commits[0][:2] / commits[0][2:]).unlink()
    found = ancestry(work, [commits[0]], commits[2])
    assert (found.order, found.missing) == ((commits[2],), frozenset({commits[0]}))


def test_a_walk_ends_at_a_bound(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commits = [commit(work, str(number)) for number in range(10)]
    monkeypatch.setattr(repositories, "_WALKED_MAX", 4)
    found = ancestry(work, [commits[0], commits[8]], commits[9])
    assert (found.order, found.missing) == ((commits[8], commits[9]), frozenset())


def test_a_commit_without_its_tree_is_missing(work: Path) -> None:
    one, head = commit(work, "1"), commit(work, "2")
    tree = str(pygit2.Repository(str(work))[one].peel(pygit2.Tree).id)
    (work / ".git/objects" / tree[:2] / tree[2:]).unlink()
    found = ancestry(work, [one], head)
    assert (found.order, found.missing) == ((head,), frozenset({one}))
    assert resolve_revisions(work, [one, one[:9]]) == {}


def test_ids_abbreviations_and_tags_name_commits(work: Path) -> None:
    one, two = commit(work, "1"), commit(work, "2")
    repository = pygit2.Repository(str(work))
    repository.references.create("refs/tags/v1.0", pygit2.Oid(hex=one))
    repository.create_tag("release/2", pygit2.Oid(hex=two), ObjectType.COMMIT, AUTHOR, "signed")
    texts = [one, one[:7], two[:12], "v1.0", "release/2"]
    assert resolve_revisions(work, texts) == {
        one: one, one[:7]: one, two[:12]: two, "v1.0": one, "release/2": two
    }  # fmt: skip


@pytest.mark.parametrize(
    "text",
    ["", "HEAD", "@", "main", "refs/heads/main", "HEAD~1", "v1.0^0", "v1.0~1", "v1.0@{1}", ":/1", "v1.0..main",
     "abcdef", "../v1.0", "-v1.0", "v1.0/", "f" * 40, "F" * 40, "v1.0\n", "x" * 5000, "tree", "blob"],
)  # fmt: skip
def test_what_is_no_name_of_a_commit_names_none(work: Path, text: str) -> None:
    commit(work, "1")
    repository = pygit2.Repository(str(work))
    head = repository.head.peel(pygit2.Commit)
    repository.references.create("refs/tags/v1.0", head.id)
    repository.references.create("refs/tags/tree", head.tree.id)
    repository.references.create("refs/tags/blob", repository.create_blob(b"x"))
    assert resolve_revisions(work, [text]) == {}


def test_a_tag_that_reads_as_letters_of_another_commit_names_none(work: Path) -> None:
    one, two = commit(work, "1"), commit(work, "2")
    repository = pygit2.Repository(str(work))
    repository.references.create(f"refs/tags/{one[:8]}", pygit2.Oid(hex=two))
    repository.references.create(f"refs/tags/{two[:8]}", pygit2.Oid(hex=two))
    assert resolve_revisions(work, [one[:8], two[:8]]) == {two[:8]: two}


def kept(work: Path) -> set[str]:
    names = pygit2.Repository(str(work)).references
    return {name.rpartition("/")[2] for name in names if name.startswith("refs/fleet/rollouts/")}


def test_what_is_named_no_more_is_kept_no_more_and_other_stores_are_left_alone(work: Path) -> None:
    one, two = commit(work, "1"), commit(work, "2")
    keep_revisions(work, kept_below("release", ""), [two])
    keep_revisions(work, BELOW, [one, two, "f" * 40, "main", "../x", ""])
    assert kept(work) == {one, two}
    keep_revisions(work, BELOW, [one])
    keep_revisions(work, BELOW, [one])
    assert kept(work) == {one, two}
    keep_revisions(work, kept_below("release", ""), [])
    assert kept(work) == {one}
    keep_revisions(work, BELOW, [])
    assert kept(work) == set()


def test_a_clone_that_is_not_there_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be written"):
        keep_revisions(tmp_path / "nowhere", BELOW, ["f" * 40])
