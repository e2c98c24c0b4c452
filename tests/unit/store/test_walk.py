"""The rules that hold for a directory and for a commit alike, on the same files."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.fleet import ParsedAsRead, ParsedFile, memo_key, parse
from reconciler.store import read_directory
from reconciler.store.git.snapshot import GitStore
from tests.fakes.store_trees import commit_all, problems_of, write_files


@pytest.fixture(params=["directory", "commit"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def _read(kind: str, root: Path, files: dict[str, str | bytes]) -> Snapshot:
    write_files(root, files)
    if kind == "directory":
        return read_directory(root)
    commit = commit_all(root, new=True)
    return GitStore(root).snapshot(commit)


def _content(snapshot: Snapshot) -> dict[str, str]:
    return {file.path: file.data.decode() for file in snapshot.files if not file.faults}


def _problems(snapshot: Snapshot) -> list[str]:
    return sorted(f"{problem.severity} {problem.source} {problem.code}" for problem in problems_of(snapshot))


def test_reads_documents_of_every_layout_in_path_order(kind: str, tmp_path: Path) -> None:
    snapshot = _read(
        kind, tmp_path, {"b/c.yml": "1", "a.yaml": "2", "b/d/e.json": "3", "README.md": "4", "b.yaml": "5"}
    )
    assert _content(snapshot) == {"a.yaml": "2", "b.yaml": "5", "b/c.yml": "1", "b/d/e.json": "3"}
    assert list(_content(snapshot)) == sorted(_content(snapshot))
    assert not problems_of(snapshot)


def test_passes_over_hidden_folders_and_editors_leftovers(kind: str, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        ".github/w.yaml": "x", "a/.cache/b.yaml": "x", "#a.yaml#": "x", ".#a.yaml": "-> nobody@host:1", "a.yaml~": "x",
        ".a.yaml.swp": "x", "._a.yaml": "x", ".visible.yaml": "1", "dir.yaml/a.yaml": "2",
    }  # fmt: skip
    snapshot = _read(kind, tmp_path, files)
    assert _content(snapshot) == {".visible.yaml": "1", "dir.yaml/a.yaml": "2"}
    assert not problems_of(snapshot)


def test_obeys_ignore_files_of_every_folder(kind: str, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        ".reconcilerignore": "# draft\n*.draft.yaml\n/build/\n!keep.draft.yaml\ndocs/**/x.yaml\n",
        "a.draft.yaml": "no", "keep.draft.yaml": "1", "build/a.yaml": "no", "sub/build/a.yaml": "2",
        "docs/deep/er/x.yaml": "no", "docs/y.yaml": "3",
        "sub/.reconcilerignore": "!a.draft.yaml\nz.yaml\n", "sub/a.draft.yaml": "4", "sub/z.yaml": "no", "z.yaml": "5",
    }  # fmt: skip
    snapshot = _read(kind, tmp_path, files)
    assert sorted(_content(snapshot).values()) == ["1", "2", "3", "4", "5"]
    assert not problems_of(snapshot)


@pytest.mark.parametrize("pattern", ["*a*b*c*d*e*f*g*h*", "x" * 300, "[z-a].yaml/["])
def test_refuses_ignore_patterns_that_cannot_be_trusted(kind: str, tmp_path: Path, pattern: str) -> None:
    snapshot = _read(kind, tmp_path, {".reconcilerignore": f"{pattern}\n", "a.yaml": "1"})
    assert _content(snapshot) == {"a.yaml": "1"}
    if not pattern.startswith("["):
        assert _problems(snapshot) == ["error .reconcilerignore:1 ignore-pattern-refused"]


def test_follows_links_within_the_store_to_what_is_not_read_anyway(kind: str, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.yaml": "-> ..data/a.yaml", "..data": "-> ..v1", "..v1/a.yaml": "1", "..v1/b.yaml": "no",
        "current": "-> .releases/7", ".releases/7/b.yaml": "2", ".releases/7/c/d.yaml": "3",
    }  # fmt: skip
    snapshot = _read(kind, tmp_path, files)
    assert _content(snapshot) == {"a.yaml": "1", "current/b.yaml": "2", "current/c/d.yaml": "3"}
    assert not problems_of(snapshot)


def test_reads_nothing_twice_through_links(kind: str, tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {
        "a.yaml": "1", "b.yaml": "-> a.yaml", "sub/c.yaml": "-> ../a.yaml", "again": "-> sub", "self": "-> .",
        "sub/up": "-> ..", "README.yaml.md": "-> a.yaml",
    }  # fmt: skip
    snapshot = _read(kind, tmp_path, files)
    assert _content(snapshot) == {"a.yaml": "1"}
    assert not problems_of(snapshot)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("../outside.yaml", "out of the store"),
        ("sub/../../outside.yaml", "out of the store"),
        ("/etc/passwd", "absolute"),
        ("nobody.yaml", "to nothing"),
        ("a.yaml/x", "to nothing"),
        ("loop.yaml", "circle"),
        ("link.yaml", "circle"),
    ],
)
def test_never_follows_a_link_out_of_the_store(kind: str, tmp_path: Path, target: str, words: str) -> None:
    (tmp_path / "outside.yaml").write_text("secret")
    root = tmp_path / "store"
    files: dict[str, str | bytes] = {
        "a.yaml": "1", "sub/b.yaml": "2", "link.yaml": f"-> {target}", "loop.yaml": "-> link.yaml"}  # fmt: skip
    snapshot = _read(kind, root, files)
    assert _content(snapshot) == {"a.yaml": "1", "sub/b.yaml": "2"}
    assert "error link.yaml link-refused" in _problems(snapshot)
    assert any(words in problem.message for problem in problems_of(snapshot))


def test_only_warns_of_broken_links_without_the_suffix_of_documents(kind: str, tmp_path: Path) -> None:
    snapshot = _read(kind, tmp_path, {"a.yaml": "1", "latest": "-> nobody", "out": "-> ../.."})
    assert _content(snapshot) == {"a.yaml": "1"}
    assert _problems(snapshot) == ["warning latest link-refused", "warning out link-refused"]


def test_refuses_pointers_of_git_lfs(kind: str, tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n"
    snapshot = _read(kind, tmp_path, {"a.yaml": pointer, "b.yaml": "1"})
    assert _content(snapshot) == {"b.yaml": "1"}
    assert _problems(snapshot) == ["error a.yaml lfs-pointer"]


def test_cuts_files_that_are_too_large(kind: str, tmp_path: Path) -> None:
    snapshot = _read(kind, tmp_path, {"a.yaml": b"x" * (5 * 2**20)})
    assert [len(file.data) for file in snapshot.files] == [4 * 2**20 + 1]


def test_tells_of_a_repository_inside_the_store(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": "1", "vendor/b.yaml": "2", "vendor/.git": "gitdir: elsewhere\n"})
    snapshot = read_directory(tmp_path)
    assert _content(snapshot) == {"a.yaml": "1"}
    assert _problems(snapshot) == ["hint vendor submodule-skipped"]


def test_a_file_of_a_commit_is_taken_as_soon_as_it_is_read(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": "1", "b.yaml": "2", "c.yaml": "3"})
    commit = commit_all(tmp_path, new=True)
    whole = GitStore(tmp_path).snapshot(commit)
    given: list[StoreFile] = []

    def take(file: StoreFile) -> StoreFile:
        given.append(file)
        return StoreFile(path=file.path, blob=file.blob, data=b"")

    taken = GitStore(tmp_path).snapshot(commit, known={memo_key(whole.files[1])}, take=take)
    assert given == [whole.files[0], whole.files[2]]
    assert [(file.path, file.blob, file.data) for file in taken.files] == [
        (file.path, file.blob, b"") for file in whole.files
    ]


def test_a_store_that_is_parsed_as_it_is_read_is_the_same_fleet(tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: %s, namespace: demo}\n"
    write_files(tmp_path, {"a.yaml": text % "a", "b.yaml": text % "b", "broken.yaml": "a: [", "empty.yaml": ""})
    commit, parsed = commit_all(tmp_path, new=True), dict[str, ParsedFile]()
    take = ParsedAsRead(parsed)
    snapshot = GitStore(tmp_path).snapshot(commit, take=take)
    assert {file.data for file in snapshot.files} == {b""}
    assert take.count == len(parsed) == 3
    assert parse(snapshot, parsed) == parse(GitStore(tmp_path).snapshot(commit))


def test_what_a_link_reads_by_another_name_is_not_told_as_unread(kind: str, tmp_path: Path) -> None:
    text = "apiVersion: v1\nkind: ConfigMap\n"
    snapshot = _read(kind, tmp_path, {"notes.txt": text, "a.yaml": "-> notes.txt", "other.txt": text})
    assert _content(snapshot) == {"a.yaml": text}
    assert _problems(snapshot) == ["hint other.txt file-not-read"]
