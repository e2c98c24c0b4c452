from __future__ import annotations

import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.fleet import Snapshot
from reconciler.store.git.git_past import SnapshotReader
from reconciler.store.git.snapshot import GitStore
from tests.fakes.store_trees import commit_all, write_files

PATHS = (
    "a.yaml",
    "sub/b.yaml",
    "sub/deep/c.json",
    "sub",
    "d.yaml",
    ".hidden/e.yaml",
    "notes.md",
    "#f.yaml#",
    "link.yaml",
)
CONTENTS = ("1", "2", "3", "-> a.yaml", "-> sub", "version https://git-lfs.github.com/spec/v1")
edits = st.one_of(
    st.tuples(st.sampled_from(PATHS), st.sampled_from((*CONTENTS, "1", "2", None))),
    st.tuples(st.just("sub/.reconcilerignore"), st.sampled_from(("deep/\n", None, None))),
)


def remove(path: Path) -> None:
    if path.is_symlink() or path.is_file():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def write(root: Path, path: str, content: str | None) -> None:
    folder = root
    for part in path.split("/")[:-1]:
        folder /= part
        if folder.is_symlink() or folder.is_file():
            folder.unlink()
    remove(root / path)
    if content is not None:
        write_files(root, {path: content})


@settings(max_examples=40, deadline=None)
@given(st.lists(st.lists(edits, max_size=3), min_size=2, max_size=6), st.sampled_from(("", "sub")))
def test_reads_every_commit_as_a_full_reading_does(series: list[list[tuple[str, str | None]]], subdir: str) -> None:
    with TemporaryDirectory() as folder:
        root = Path(folder)
        write_files(root, {"a.yaml": "1", "sub/b.yaml": "2", "sub/z.yaml": "3"})
        commit_all(root, new=True)
        store, reader = GitStore(root), SnapshotReader(subdir)
        for number, edited in enumerate(series):
            for path, content in edited:
                write(root, path, content)
            write_files(root, {"sub/z.yaml": f"{number}"} if (root / "sub").is_dir() else {"y.yaml": "1"})
            commit = commit_all(root)
            if subdir and not (root / "sub").is_dir():
                continue
            assert reader.read(store, commit) == store.snapshot(commit, subdir)


def test_an_older_commit_is_read_beside_and_shares_its_files(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": "1", "b.yaml": "1"})
    old = commit_all(tmp_path, new=True)
    write_files(tmp_path, {"a.yaml": "2"})
    head = commit_all(tmp_path)
    store, reader = GitStore(tmp_path), SnapshotReader()
    assert reader.read_older(store, old) == store.snapshot(old)
    last = reader.read(store, head)
    beside = reader.read_older(store, old)
    assert beside == store.snapshot(old)
    assert beside.files[1] is last.files[1]
    write_files(tmp_path, {"b.yaml": "3"})
    newest = reader.read(store, commit_all(tmp_path))
    assert newest.files[0] is last.files[0], "the next reading begins where the last one ended"


def test_keeps_the_files_that_did_not_change(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": "1", "b.yaml": "2"})
    first = commit_all(tmp_path, new=True)
    write_files(tmp_path, {"b.yaml": "3", "c.yaml": "4"})
    second = commit_all(tmp_path)
    reader = SnapshotReader()
    before, after = (reader.read(GitStore(tmp_path), commit) for commit in (first, second))
    assert after.files[0] is before.files[0]
    assert [(file.path, file.data) for file in after.files] == [("a.yaml", b"1"), ("b.yaml", b"3"), ("c.yaml", b"4")]


def test_reads_everything_when_the_last_commit_is_gone(tmp_path: Path) -> None:
    reader = SnapshotReader()
    for name in ("one", "other"):
        root = tmp_path / name
        write_files(root, {"a.yaml": name})
        commit = commit_all(root, new=True)
        seen: Snapshot = reader.read(GitStore(root), commit)
        assert [file.data for file in seen.files] == [name.encode()]


@pytest.mark.parametrize(("text", "is_shared"), [("all: test\n", True), ("apiVersion: v1\nkind: ConfigMap\n", False)])
def test_a_file_without_a_suffix_makes_it_read_all_only_if_it_looks_like_a_document(
    text: str, is_shared: bool, tmp_path: Path
) -> None:
    write_files(tmp_path, {"a.yaml": "1", "Makefile": "all:\n"})
    reader, first = SnapshotReader(), commit_all(tmp_path, new=True)
    store = GitStore(tmp_path)
    before = reader.read(store, first)
    write_files(tmp_path, {"Makefile": text})
    commit = commit_all(tmp_path)
    after = reader.read(store, commit)
    assert after == store.snapshot(commit)
    assert (after.files[0] is before.files[0]) == is_shared
