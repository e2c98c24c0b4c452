"""Files of a store that lie otherwise than the commit at HEAD has them: what `diff` shows and `apply` does not make."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from reconciler.cli.store_reading import read_fleet
from reconciler.store import locate_store
from reconciler.store.source import Commits, uncommitted
from reconciler.yaml import MAX_BYTES
from tests.fakes.store_trees import commit_all, write_files

DOCUMENT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"


def git(folder: Path, *args: str) -> None:
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(["git", *identity, *args], cwd=folder, check=True, capture_output=True)


def head(folder: Path) -> str:
    return subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    for name in ("kept.yaml", "changed.yaml", "deleted.yaml"):
        (tmp_path / name).write_text(DOCUMENT)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "--quiet", "-m", "Begin")
    return tmp_path


def test_new_changed_and_deleted_files_are_named(store: Path) -> None:
    assert uncommitted(locate_store(str(store))) == {}
    (store / "changed.yaml").write_text(f"{DOCUMENT}data: {{a: b}}\n")
    (store / "deleted.yaml").unlink()
    (store / "staged.yaml").write_text(DOCUMENT)
    git(store, "add", "staged.yaml")
    (store / "notes.txt").write_text("no file of a store")
    (store / ".hidden").mkdir()
    (store / ".hidden/new.yaml").write_text(DOCUMENT)
    assert list(uncommitted(locate_store(str(store))).values()) == [
        "changed.yaml (changed)",
        "deleted.yaml (deleted)",
        "staged.yaml (new)",
    ]


def test_what_no_commit_can_make_readable_is_not_called_changed(store: Path) -> None:
    (store / "large.yaml").write_text("#" * (MAX_BYTES + 1))
    (store / "out.yaml").symlink_to("/etc/passwd")
    git(store, "add", ".")
    git(store, "commit", "--quiet", "-m", "Unreadable")
    assert uncommitted(locate_store(str(store))) == {}
    (store / "out.yaml").unlink()
    assert list(uncommitted(locate_store(str(store))).values()) == ["out.yaml (deleted)"]


def test_what_git_ignores_is_named_since_a_diff_shows_it(store: Path) -> None:
    (store / ".gitignore").write_text("*.yaml\n")
    (store / "ignored.yaml").write_text(DOCUMENT)
    assert list(uncommitted(locate_store(str(store))).values()) == ["ignored.yaml (new)"]


def test_only_the_folder_of_the_store_counts(store: Path) -> None:
    (store / "fleet").mkdir()
    (store / "fleet/app.yaml").write_text(DOCUMENT)
    git(store, "add", ".")
    git(store, "commit", "--quiet", "-m", "More")
    (store / "changed.yaml").write_text("")
    assert uncommitted(locate_store(str(store / "fleet"))) == {}


def test_a_folder_without_git_has_nothing_to_commit(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(DOCUMENT)
    assert uncommitted(locate_store(str(tmp_path))) == {}


def test_the_last_change_of_a_file_is_found_over_merges_and_after_its_deletion(store: Path) -> None:
    """Whoever commits something else later is not behind what a file brought."""

    def commit(name: str, *args: str) -> str:
        git(store, "add", "--all")
        git(store, "commit", "--quiet", "--allow-empty", "-m", name, *args)
        return head(store)

    (store / "apps").mkdir()
    git(store, "switch", "--quiet", "-c", "side")
    (store / "apps/web.yaml").write_text(DOCUMENT)
    added = commit("Add web")
    git(store, "switch", "--quiet", "-")
    (store / "kept.yaml").write_text("# edited\n")
    commit("Edit")
    git(store, "merge", "--quiet", "--no-ff", "-m", "Merge", "side")
    merged = head(store)
    (store / "apps/web.yaml").unlink()
    gone = commit("Take web out")
    (store / "kept.yaml").write_text(DOCUMENT)
    newest = commit("Edit back")
    commits = Commits(str(store), tuple)
    assert commits.last_change(merged, "apps/web.yaml") == added
    assert commits.last_change(newest, "apps/web.yaml") == gone
    assert commits.last_change(newest, "kept.yaml") == newest
    assert commits.last_change(newest, "never.yaml") == newest
    assert commits.last_change("dir:1234", "kept.yaml") == "dir:1234"
    (store / "apps").mkdir(exist_ok=True)
    assert Commits(str(store / "apps"), tuple).last_change(merged, "web.yaml") == added, "paths are of the store"


def test_a_folder_that_nobody_can_read_is_not_called_new_nor_what_is_in_it_deleted(as_nobody: Path) -> None:
    write_files(as_nobody, {"apps/a.yaml": DOCUMENT, "kept.yaml": DOCUMENT})
    commit_all(as_nobody, new=True)
    write_files(as_nobody, {"new/a.yaml": DOCUMENT})
    for folder in ("apps", "new"):
        (as_nobody / folder).chmod(0)
    try:
        assert list(uncommitted(locate_store(str(as_nobody))).values()) == ["new (new)"]
    finally:
        for folder in ("apps", "new"):
            (as_nobody / folder).chmod(0o700)


def test_a_sparse_checkout_is_told_and_deletes_nothing(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (store / "fleet").mkdir()
    (store / "fleet/app.yaml").write_text(DOCUMENT)
    git(store, "add", ".")
    git(store, "commit", "--quiet", "-m", "More")
    for command, count in (
        (("init",), 0),
        (("sparse-checkout", "set", "other"), 1),
        (("sparse-checkout", "disable"), 0),
    ):
        git(store, *command)
        assert (store / "fleet/app.yaml").exists() is not bool(count)
        assert uncommitted(locate_store(str(store))) == {}
        read_fleet(str(store))
        assert capsys.readouterr().err.count("is a sparse checkout") == count
