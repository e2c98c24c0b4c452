from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.errors import StoreError, StoreUnsettled
from reconciler.store import directory as store_directory
from reconciler.store import read_directory
from reconciler.store.file_walk import Unreadable
from reconciler.store.scan import ScanState
from tests.fakes.store_trees import problems_of, write_files


def _problems(root: Path) -> list[str]:
    return sorted(
        f"{problem.severity} {problem.source} {problem.code}" for problem in problems_of(read_directory(root))
    )


def test_revision_depends_on_paths_and_contents_alone(tmp_path: Path) -> None:
    one = write_files(tmp_path / "one", {"b.yaml": "2", "a.yaml": "1", "notes.txt": "x"})
    other = write_files(tmp_path / "other", {"a.yaml": "1", "b.yaml": "2"})
    moved = write_files(tmp_path / "moved", {"a.yaml": "1", "c.yaml": "2"})
    edited = write_files(tmp_path / "edited", {"a.yaml": "1", "b.yaml": "3"})
    assert read_directory(one).revision == read_directory(other).revision
    assert len({read_directory(root).revision for root in (one, moved, edited)}) == 3
    assert read_directory(one).revision.startswith("dir:")


def test_equal_contents_have_equal_blobs(tmp_path: Path) -> None:
    files = read_directory(write_files(tmp_path, {"a.yaml": "1", "b.yaml": "1", "c.yaml": "2"})).files
    assert files[0].blob == files[1].blob != files[2].blob


def test_special_files_are_problems_and_never_block(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.yaml")
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket.json"))
        assert _problems(tmp_path) == ["error pipe.yaml not-a-file", "error socket.json not-a-file"]


def test_links_to_special_files_are_problems(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.yaml").symlink_to("pipe")
    assert _problems(tmp_path) == ["error a.yaml not-a-file"]


def test_names_that_are_not_utf8_are_problems(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"caf\xe9.yaml")).write_text("a: 1")
    assert _problems(tmp_path) == ["error caf\\udce9.yaml name-not-utf-8"]


def test_what_may_not_be_read_is_a_problem(as_nobody: Path) -> None:
    write_files(as_nobody, {"a.yaml": "1", "sub/b.yaml": "2"})
    (as_nobody / "a.yaml").chmod(0)
    (as_nobody / "sub").chmod(0)
    assert _problems(as_nobody) == ["error a.yaml file-unreadable", "error sub folder-unreadable"]
    (as_nobody / "sub").chmod(0o700)


def test_paths_beyond_the_limit_of_the_system_are_read(tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    for _ in range(50):
        os.mkdir("d" * 100, dir_fd=folder)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=folder)
        os.close(folder)
        folder = below
    os.close(folder)
    write_files(tmp_path, {"a.yaml": "1"})
    assert [file.path for file in read_directory(tmp_path).files] == ["a.yaml"]


@pytest.mark.parametrize("name", ["nobody", "file"])
def test_root_must_be_a_directory(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match=name):
        read_directory(tmp_path / name)


def test_root_may_be_a_link(tmp_path: Path) -> None:
    write_files(tmp_path / "store", {"a.yaml": "1"})
    (tmp_path / "link").symlink_to("store")
    assert [file.path for file in read_directory(tmp_path / "link").files] == ["a.yaml"]


def _scans(*versions: int) -> Iterator[ScanState]:
    for version in versions:
        yield ScanState({"": ((1, version),)}, racy=False)


def test_reads_again_until_nothing_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path, {"a.yaml": "1"})
    scans = _scans(1, 2, 3, 3)
    monkeypatch.setattr(store_directory, "scan", lambda root: next(scans))
    assert len(read_directory(tmp_path).files) == 1
    assert next(scans, None) is None


def test_gives_up_on_a_directory_that_never_rests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = _scans(*range(20))
    monkeypatch.setattr(store_directory, "scan", lambda root: next(scans))
    with pytest.raises(StoreUnsettled):
        read_directory(tmp_path)


def test_a_file_swapped_for_a_link_while_reading_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    root = write_files(tmp_path / "store", {"a.yaml": "1"})
    with store_directory.DirectoryTree(root) as tree:
        (entry,) = tree.children("")
        (root / "a.yaml").unlink()
        (root / "a.yaml").symlink_to("../secret")
        with pytest.raises(Unreadable, match="link"):
            tree.read("a.yaml", entry, 100)


def test_a_folder_swapped_for_a_link_while_reading_is_not_followed(tmp_path: Path) -> None:
    write_files(tmp_path / "outside", {"a.yaml": "secret"})
    root = write_files(tmp_path / "store", {"sub/a.yaml": "1"})
    with store_directory.DirectoryTree(root) as tree:
        (entry,) = tree.children("sub")
        list(tree.children(""))
        (root / "sub").rename(root / "old")
        (root / "sub").symlink_to("../outside")
        with pytest.raises(Unreadable):
            tree.read("sub/a.yaml", entry, 100)


def test_leaves_no_descriptor_open(tmp_path: Path) -> None:
    write_files(tmp_path, {"a/b/c.yaml": "1", "a/d.yaml": "2", "l.yaml": "-> nobody"})
    read_directory(tmp_path)
    # Descriptors of others may be closed at any time, so only those that lead here count.
    assert not [fd for fd in Path("/proc/self/fd").iterdir() if _leads_to(fd).startswith(str(tmp_path))]


def _leads_to(descriptor: Path) -> str:
    try:
        return str(descriptor.readlink())
    except FileNotFoundError:
        return ""
