"""Histories as an attacker can push them into a repository on this machine: what each question about one costs."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

import pygit2
import pytest

from reconciler.errors import StoreError
from reconciler.store.git import repository as bounds
from reconciler.store.git.commit_history import Relation, ancestry, last_authors, newest_with, relation
from reconciler.store.git.repository import MAX_COMMIT_BYTES, MAX_TAGS
from reconciler.store.git.snapshot import GitStore
from tests.fakes.packs import BY_OFFSET, COMMIT, Entry, loose, number, object_name, write_pack
from tests.fakes.store_trees import commit_all, write_files
from tests.security.command_line import reconciler
from tests.security.test_hostile_stores import GOOD, assert_bounded

Commits = Iterable[tuple[list[int], int]]
"""The numbers of the parents of each commit, and its time."""
NOON = 1_700_000_000


def imported(root: Path, commits: Commits) -> list[str]:
    """A bare repository with these commits on its branch; their ids."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(root)], check=True)
    lines = []
    for mark, (parents, time_s) in enumerate(commits, start=1):
        lines.append(f"commit refs/heads/main\nmark :{mark}\ncommitter a <a@b> {time_s} +0000\ndata 0\n")
        lines += [f"{'merge' if place else 'from'} :{parent + 1}\n" for place, parent in enumerate(parents)]
        lines.append(f"M 100644 inline good.yaml\ndata {len(GOOD)}\n{GOOD}\n" if mark == 1 else "")
    marks = root / "marks"
    command = ["git", "-C", str(root), "fast-import", "--quiet", f"--export-marks={marks}"]
    subprocess.run(command, input="".join(lines).encode(), check=True)
    found = dict(line.split() for line in marks.read_text().splitlines())
    return [found[f":{mark}"] for mark in range(1, len(found) + 1)]


def raw_commit(root: Path, parents: Iterable[str], *, time_s: int = NOON, message: str = "x") -> str:
    """A commit of the first one's tree, with whatever is said to be its parents."""
    repository = pygit2.Repository(str(root))
    tree = repository.head.peel(pygit2.Tree).id
    above = "".join(f"parent {parent}\n" for parent in parents)
    text = f"tree {tree}\n{above}author a <a> {time_s} +0000\ncommitter a <a> {time_s} +0000\n\n{message}"
    return str(repository.odb.write(pygit2.enums.ObjectType.COMMIT, text.encode()))


def chain(count: int, *, step_s: int = 1) -> list[tuple[list[int], int]]:
    return [([place - 1] if place else [], NOON + step_s * place) for place in range(count)]


def criss_cross(levels: int) -> Commits:
    """Two branches that merge each other at every step."""
    yield [], NOON
    yield [0], NOON
    yield [0], NOON
    for level in range(1, levels):
        yield from [([2 * level - 1, 2 * level], NOON + level), ([2 * level, 2 * level - 1], NOON + level)]


def octopuses(root: Path) -> list[str]:
    """Two hundred commits that each have the five hundred before them as parents."""
    found = imported(root, chain(500))
    for later in range(200):
        found.append(raw_commit(root, reversed(found[-500:]), time_s=NOON + 1_000 + later))
    return found


def large(root: Path) -> list[str]:
    found = imported(root, chain(1))
    for _ in range(60):
        found.append(raw_commit(root, found[-1:], message="x" * (MAX_COMMIT_BYTES - 300)))
    return found


HISTORIES: dict[str, Callable[[Path], list[str]]] = {
    "more commits than are walked": lambda root: imported(root, chain(6_000)),
    "clocks that go backwards": lambda root: imported(root, chain(2_000, step_s=-1)),
    "merges that cross": lambda root: imported(root, criss_cross(2_000)),
    "commits of many parents": octopuses,
    "commits of a mebibyte": large,
}


@pytest.mark.parametrize("name", HISTORIES)
def test_each_question_about_a_history_is_bounded(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a tenth of the steps: no question takes more of them than there may be."""
    monkeypatch.setattr(bounds, "_WALKED_MAX", 5_000)
    commits = HISTORIES[name](tmp_path)
    old, new = commits[0], commits[-1]
    started_s = time.process_time()
    older = ancestry(tmp_path, commits[:: max(1, len(commits) // 20)], new)
    assert older.order[-1] == new
    assert relation(tmp_path, commits[-5], new) is Relation.FORWARD
    assert relation(tmp_path, new, commits[-5]) is Relation.REWOUND
    assert relation(tmp_path, old, new) in (Relation.FORWARD, Relation.UNRELATED)
    assert last_authors(tmp_path, old, new, ["good.yaml", "other.yaml"]) == {}
    assert newest_with(tmp_path, new, "Promoted-to: prod") is None
    with GitStore(tmp_path) as store:
        assert len(list(islice(store.first_parents(new), 500))) >= 50
        assert store.last_change(new, "good.yaml") in (old, new)
    # Measured on an idle machine: 1 s at most.
    assert time.process_time() - started_s < 10


def test_a_commit_of_many_bytes_is_not_read_and_hides_nothing_before_it(tmp_path: Path) -> None:
    first, *_ = imported(tmp_path, chain(1))
    at = raw_commit(tmp_path, [first], message="x")
    rest = MAX_COMMIT_BYTES - pygit2.Repository(str(tmp_path)).odb.read_header(pygit2.Oid(hex=at))[1]
    at, beyond = (raw_commit(tmp_path, [first], message="x" * (1 + rest + more)) for more in (0, 1))
    head = raw_commit(tmp_path, [beyond])
    with GitStore(tmp_path) as store:
        assert store.resolve(at) == at
        for asked in (beyond, f"{head}~1", f"{head}~2"):
            with pytest.raises(StoreError, match="more than a tree or commit"):
                store.resolve(asked)
        with pytest.raises(StoreError, match="more than a tree or commit"):
            list(store.first_parents(head))
    with pytest.raises(StoreError, match="more than a tree or commit"):
        newest_with(tmp_path, head, "y")
    assert relation(tmp_path, first, head) is Relation.UNRELATED
    assert last_authors(tmp_path, first, head, ["good.yaml"]) == {}


def test_tags_lead_to_one_another_up_to_a_limit(tmp_path: Path) -> None:
    found, *_ = imported(tmp_path, chain(1))
    repository = pygit2.Repository(str(tmp_path))
    for place in range(MAX_TAGS):
        kind = "tag" if place else "commit"
        text = f"object {found}\ntype {kind}\ntag t{place}\ntagger a <a> 0 +0000\n\n"
        found = str(repository.odb.write(pygit2.enums.ObjectType.TAG, text.encode()))
        repository.references.create(f"refs/tags/t{place}", pygit2.Oid(hex=found))
    with GitStore(tmp_path) as store:
        assert store.resolve(f"t{MAX_TAGS - 2}") == str(repository.head.target)
        with pytest.raises(StoreError, match="tags lead to one another"):
            store.resolve(f"t{MAX_TAGS - 1}")


@pytest.mark.parametrize("what", ["tree", "blob", "nothing"])
def test_a_parent_that_is_no_commit_ends_the_history_with_a_reason(what: str, tmp_path: Path) -> None:
    first, *_ = imported(tmp_path, chain(1))
    repository = pygit2.Repository(str(tmp_path))
    objects = {"tree": str(repository.head.peel(pygit2.Tree).id), "blob": str(repository.create_blob(b"x"))}
    head = raw_commit(tmp_path, [objects.get(what, "1" * 40), first])
    with GitStore(tmp_path) as store, pytest.raises(StoreError, match=r"is no commit|missing or corrupt"):
        list(store.first_parents(head))
    with GitStore(tmp_path) as store, pytest.raises(StoreError, match=r"corrupt|where a commit belongs"):
        store.last_change(head, "good.yaml")
    assert last_authors(tmp_path, first, head, ["good.yaml"]) == {}
    # What is not here may be beyond the end of a shallow clone: the rest counts.
    is_known = what == "nothing"
    assert relation(tmp_path, first, head) is (Relation.FORWARD if is_known else Relation.UNRELATED)
    assert ancestry(tmp_path, [first], head).order == ((first, head) if is_known else ())


def test_what_is_unpacked_of_a_repository_is_bounded_in_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A base that may be unpacked with one commit may not be unpacked with each of them all."""
    found = imported(tmp_path, chain(1))
    tree = pygit2.Repository(str(tmp_path)).head.peel(pygit2.Tree).id
    entries = [Entry(COMMIT, b"\n" * 2**20)]
    for _ in range(20):
        text = f"tree {tree}\nparent {found[-1]}\nauthor a <a> 0 +0000\ncommitter a <a> 0 +0000\n\nx\n".encode()
        parts = b"".join(bytes([len(part)]) + part for part in (text[:100], text[100:]))
        found.append(object_name("commit", text))
        entries.append(Entry(BY_OFFSET, number(2**20, 7) + number(len(text), 7) + parts, 0, found[-1]))
    write_pack(tmp_path, entries)
    with GitStore(tmp_path) as store:
        assert len(list(store.first_parents(found[-1]))) == 20
    monkeypatch.setattr(bounds, "MAX_UNPACKED_BYTES", 10 * 2**20)
    with GitStore(tmp_path) as store, pytest.raises(StoreError, match="would be unpacked"):
        list(store.first_parents(found[-1]))
    with GitStore(tmp_path) as store:
        assert store.resolve(found[-1]) == found[-1]


ROLLOUT = """\
apiVersion: fleet.reconciler/v1alpha1
kind: Rollout
metadata: {name: web}
spec:
  stages:
  - {name: one, clusters: {clusterNames: [m1]}, after: {approval: true}}
  - {name: two, clusters: {}}
  approvals: [{stage: one, revision: %s}]
  pin: {m1: %s}
"""


def test_a_review_of_approvals_and_pins_reads_no_bomb(tmp_path: Path) -> None:
    """An id in a pull request is that of a bomb, and so is a commit of its history, whose authors are asked for."""
    store = write_files(tmp_path / "store", {"good.yaml": GOOD})
    base = commit_all(store, new=True)
    git = store / ".git"
    bomb = loose(git, "blob", 2**28)
    beyond = raw_commit(git, [base], message="x" * 2 * MAX_COMMIT_BYTES)
    repository = pygit2.Repository(str(store))
    repository.references.create("refs/heads/main", pygit2.Oid(hex=raw_commit(git, [beyond])), force=True)
    write_files(store, {"rollout.yaml": ROLLOUT % (bomb[:12], beyond[:12])})
    head = commit_all(store)
    ran = reconciler("diff", store, "--base", base, "--head", head, "--detailed-exitcode", home=tmp_path)
    assert_bounded(ran)
    assert ran.code == 1
    for text in (bomb[:12], beyond[:12]):
        assert f"{text} names no commit of the repository" in ran.out.decode()
