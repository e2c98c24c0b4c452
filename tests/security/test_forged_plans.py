"""Files of a pull request that look like a repository never stand in for the one that will be applied.

Source: design#hostile-input; Git, `safe.bareRepository`.
"""

from __future__ import annotations

import json
from pathlib import Path

import pygit2
import pytest

from reconciler.errors import StoreError
from reconciler.store import StoreKind, locate_store, open_store
from tests.fakes.store_trees import commit_all, forged_repository, write_files
from tests.present import present
from tests.unit.cli.command_line import APP, CLUSTERS, FLEET, run
from tests.unit.store.test_source import content, opened

BEFORE, AFTER = "key: value", "key: evil"
FOLDERS = ("fleet", "")
"""The store's folder in its repository."""


@pytest.fixture(params=FOLDERS, ids=["in a subfolder", "at the root"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A committed store, in its repository's subfolder or at its root."""
    root = tmp_path / "repo"
    folder: Path = root / request.param
    write_files(folder, {"app.yaml": APP, "fleet.yaml": FLEET + CLUSTERS})
    commit_all(root, new=True)
    return folder


def _root(store: Path) -> Path:
    return store if (store / ".git").exists() else store.parent


def _edited(store: Path, *, hides: bool, own_objects: bool) -> tuple[str, str]:
    """Base and head of a pull request with a forged repository.

    `hides`: the app is changed, and the forgery shows the base; else nothing is changed, and it shows a change.
    """
    root = _root(store)
    base = str(pygit2.Repository(str(root)).head.target)
    write_files(store, {"app.yaml": APP.replace(BEFORE, AFTER)})
    changed = commit_all(root)
    if not hides:
        write_files(store, {"app.yaml": APP})
        commit_all(root)
    forged_repository(store, root, base if hides else changed, own_objects=own_objects)
    return base, commit_all(root)


@pytest.mark.parametrize("own_objects", [False, True], ids=["with alternates", "with objects"])
@pytest.mark.parametrize("hides", [True, False], ids=["hides a change", "shows a change"])
class TestEachReaderSeesTheCommit:
    def test_diff(self, store: Path, *, hides: bool, own_objects: bool) -> None:
        base, head = _edited(store, hides=hides, own_objects=own_objects)
        for revisions in (("--base", base, "--head", head), ("--base", base), ("--base", base, "--head", "HEAD")):
            ran = run("diff", str(store), *revisions, "-o", "json")
            assert bool(json.loads(ran.out)["changes"]) is hides, ran

    def test_render_and_validate(self, store: Path, *, hides: bool, own_objects: bool) -> None:
        _edited(store, hides=hides, own_objects=own_objects)
        for revision in ((), ("--rev", "HEAD"), ("--rev", "main")):
            assert ("evil" in run("render", str(store), *revision).out) is hides
        write_files(store, {"bad.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {}\n"})
        commit_all(_root(store))
        for revision in ((), ("--rev", "HEAD"), ("--rev", "main")):
            assert "bad.yaml:3" in run("validate", str(store), *revision).out

    async def test_the_service(self, store: Path, tmp_path: Path, *, hides: bool, own_objects: bool) -> None:
        for rev in (None, "HEAD", "main"):
            async with opened(str(store), tmp_path / "state", rev=rev) as source:
                present(await source.read())
                _, head = _edited(store, hides=hides, own_objects=own_objects)
                after = present(await source.read())
                assert after.revision == head
                assert ("evil" in content(after)[str(Path("app.yaml"))]) is hides


def test_a_link_in_the_store_leads_to_no_repository(tmp_path: Path) -> None:
    root = write_files(tmp_path / "repo", {"a.yaml": "1", "fleet": "-> .git", "out": "-> ../bare.git"})
    commit_all(root, new=True)
    pygit2.clone_repository(str(root), str(tmp_path / "bare.git"), bare=True)
    for name in ("fleet", "out"):
        with pytest.raises(StoreError, match="out of the work tree"):
            locate_store(str(root / name))


def test_git_s_own_folder_may_be_named(tmp_path: Path) -> None:
    root = write_files(tmp_path / "repo", {"a.yaml": "1"})
    commit_all(root, new=True)
    location = locate_store(str(root / ".git"))
    assert location.kind is StoreKind.BARE_REPOSITORY
    assert content(open_store(location)) == {"a.yaml": "1"}


def test_a_bare_repository_is_found_from_inside_a_work_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root = write_files(tmp_path / "repo", {"a.yaml": "1"})
    commit_all(root, new=True)
    pygit2.clone_repository(str(root), str(tmp_path / "bare.git"), bare=True)
    monkeypatch.chdir(root)
    assert locate_store("../bare.git").kind is StoreKind.BARE_REPOSITORY


def test_a_git_folder_that_is_broken_gives_way_to_nothing(tmp_path: Path) -> None:
    outer = write_files(tmp_path / "outer", {"inner/a.yaml": "outer"})
    commit_all(outer, new=True)
    inner = outer / "inner"
    (inner / ".git").mkdir()
    with pytest.raises(StoreError, match="not a Git repository"):
        open_store(locate_store(str(inner)))
    forged_repository(inner, outer, str(pygit2.Repository(str(outer)).head.target))
    with pytest.raises(StoreError, match="not a Git repository"):
        open_store(locate_store(str(inner)))


@pytest.mark.parametrize("path", ["a.yaml", "apps/web/a.yaml", "info/a.json"])
def test_a_bare_repository_with_documents_is_refused_as_ambiguous(tmp_path: Path, path: str) -> None:
    root = write_files(tmp_path / "repo", {"a.yaml": "1"})
    commit = commit_all(root, new=True)
    plain = write_files(tmp_path / "plain", {path: "2"})
    forged_repository(plain, root, commit)
    with pytest.raises(StoreError, match="--dir"):
        locate_store(str(plain))
    assert content(open_store(locate_store(str(plain), as_directory=True))) == {path: "2"}


def test_a_repository_below_a_store_is_no_part_of_it(tmp_path: Path) -> None:
    root = write_files(tmp_path / "repo", {"a.yaml": "1"})
    commit = commit_all(root, new=True)
    plain = write_files(tmp_path / "plain", {"b.yaml": "2"})
    forged_repository(plain / "below", root, commit)
    assert content(open_store(locate_store(str(plain)))) == {"b.yaml": "2"}
