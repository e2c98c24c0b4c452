from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pygit2
import pytest

from reconciler.api.fleet import Snapshot
from reconciler.errors import ConfigurationError, RevisionNotFound, StoreError
from reconciler.store import StoreKind, locate_store, open_store
from tests.fakes.store_trees import commit_all, write_files


@pytest.fixture
def work_tree(tmp_path: Path) -> Path:
    """A committed store in the subfolder `fleet`, with an edit that is not committed."""
    root = write_files(tmp_path / "repo", {"fleet/a.yaml": "committed", "other.yaml": "x"})
    commit_all(root, new=True)
    write_files(root, {"fleet/a.yaml": "edited"})
    return root


def _content(snapshot: Snapshot) -> dict[str, str]:
    return {file.path: file.data.decode() for file in snapshot.files}


def test_finds_out_what_a_store_is(work_tree: Path, tmp_path: Path) -> None:
    pygit2.clone_repository(str(work_tree), str(tmp_path / "bare"), bare=True)
    plain = write_files(tmp_path / "plain", {"a.yaml": "1"})
    assert locate_store(str(work_tree)).kind is StoreKind.WORK_TREE
    assert locate_store(str(work_tree)).subdir == ""
    assert locate_store(str(work_tree / "fleet")).kind is StoreKind.WORK_TREE
    assert locate_store(str(work_tree / "fleet")).subdir == "fleet"
    assert locate_store(str(tmp_path / "bare")).kind is StoreKind.BARE_REPOSITORY
    assert locate_store(str(plain)).kind is StoreKind.DIRECTORY
    assert locate_store(str(work_tree), as_directory=True).kind is StoreKind.DIRECTORY


def test_reads_a_work_tree_as_its_files_lie_or_at_head(work_tree: Path) -> None:
    location = locate_store(str(work_tree / "fleet"))
    assert _content(open_store(location, as_files=True)) == {"a.yaml": "edited"}
    assert _content(open_store(location)) == {"a.yaml": "committed"}
    assert _content(open_store(location, rev="main", as_files=True)) == {"a.yaml": "committed"}


def test_finds_a_work_tree_through_a_link(work_tree: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(work_tree / "fleet")
    location = locate_store(str(tmp_path / "link"))
    assert _content(open_store(location)) == {"a.yaml": "committed"}
    assert _content(open_store(location, as_files=True)) == {"a.yaml": "edited"}


def test_reads_a_worktree_whose_git_is_a_file(work_tree: Path, tmp_path: Path) -> None:
    pygit2.Repository(str(work_tree)).add_worktree("side", str(tmp_path / "side"))
    location = locate_store(str(tmp_path / "side" / "fleet"))
    assert location.kind is StoreKind.WORK_TREE
    assert _content(open_store(location)) == {"a.yaml": "committed"}


def test_reads_a_bare_repository_at_head(work_tree: Path, tmp_path: Path) -> None:
    pygit2.clone_repository(str(work_tree), str(tmp_path / "bare"), bare=True)
    location = locate_store(str(tmp_path / "bare"))
    expected = {"fleet/a.yaml": "committed", "other.yaml": "x"}
    assert _content(open_store(location, as_files=True)) == _content(open_store(location)) == expected


def test_a_plain_directory_has_no_revisions(tmp_path: Path) -> None:
    location = locate_store(str(write_files(tmp_path, {"a.yaml": "1"})))
    assert _content(open_store(location)) == {"a.yaml": "1"}
    with pytest.raises(ConfigurationError, match="--rev"):
        open_store(location, rev="main")


def test_a_subfolder_that_was_never_committed_is_not_found(work_tree: Path) -> None:
    write_files(work_tree, {"new/a.yaml": "1"})
    with pytest.raises(RevisionNotFound, match="new"):
        open_store(locate_store(str(work_tree / "new")))


@pytest.mark.parametrize("name", ["nobody", "file.yaml"])
def test_what_is_no_directory_says_so(tmp_path: Path, name: str) -> None:
    (tmp_path / "file.yaml").write_text("a: 1")
    with pytest.raises(StoreError, match=name):
        locate_store(str(tmp_path / name))


def test_a_plain_directory_costs_no_import_of_git_or_kubernetes(tmp_path: Path) -> None:
    write_files(tmp_path, {"a.yaml": "x: 1"})
    program = (
        "import sys; from reconciler.store.location import *; "
        "from reconciler.fleet.parse import parse; parse(open_store(locate_store(sys.argv[1]))); "
        "print([name for name in ('pygit2', 'kubernetes', 'watchfiles', 'aiohttp', 'pathspec') if name in sys.modules])"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)
    assert done.stdout.strip() == "[]"
