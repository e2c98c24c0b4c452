"""A work tree is followed while Git works in it, and behind links that are swapped.

With the `git` that users have: the states that it leaves behind are what counts.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.errors import StoreError, StoreUnsettled
from reconciler.store import StoreSource, locate_store, open_store
from tests.fakes.store_trees import write_files
from tests.unit.store.test_source import content, opened, read_new

_ENVIRONMENT = {
    **{key: value for key, value in os.environ.items() if not key.startswith("GIT_")},
    **{"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_EDITOR": "true"},
    **{f"GIT_{who}_{what}": f"a@{who}.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}


def git(folder: Path, *arguments: str, fails: bool = False) -> str:
    """Return what Git prints. `fails`: it stops with a conflict."""
    command = ["git", "-c", "init.defaultBranch=main", "-c", "protocol.file.allow=always", *arguments]
    done = subprocess.run(command, cwd=folder, env=_ENVIRONMENT, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) is fails, done
    return done.stdout.strip()


def commit(folder: Path, files: dict[str, str | bytes]) -> str:
    write_files(folder, files)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "change")
    return git(folder, "rev-parse", "HEAD")


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """`main` has a.yaml with 3 and b.yaml; `side` has another a.yaml."""
    root = tmp_path / "work"
    root.mkdir()
    git(root, "init", "-q")
    commit(root, {"a.yaml": "1"})
    git(root, "branch", "side")
    commit(root, {"a.yaml": "2"})
    commit(root, {"a.yaml": "3", "b.yaml": "b"})
    git(root, "switch", "-q", "side")
    commit(root, {"a.yaml": "side"})
    git(root, "switch", "-q", "main")
    return root


OPERATIONS = [
    pytest.param(["rebase", "side"], ["rebase", "--abort"], "a rebase", id="rebase"),
    pytest.param(["rebase", "--apply", "side"], ["rebase", "--abort"], "a rebase", id="rebase --apply"),
    pytest.param(["merge", "side"], ["merge", "--abort"], "a merge", id="merge"),
    pytest.param(["cherry-pick", "side"], ["cherry-pick", "--abort"], "a cherry-pick", id="cherry-pick"),
    pytest.param(["revert", "--no-edit", "HEAD~1"], ["revert", "--abort"], "a revert", id="revert"),
    pytest.param(["am", "-q", "../side.patch"], ["am", "--abort"], "a git am", id="am"),
]


async def waits(source: StoreSource, words: str) -> None:
    """Return once it says what it waits for; nothing is read until then."""
    async with asyncio.timeout(60):
        while True:
            await source.changed()
            try:
                assert await source.read() is None
            except StoreUnsettled as error:
                assert words in str(error)
                return


@pytest.mark.parametrize(("begin", "end", "words"), OPERATIONS)
async def test_what_is_checked_out_in_the_middle_of_something_is_not_followed(
    work: Path, tmp_path: Path, begin: list[str], end: list[str], words: str
) -> None:
    (tmp_path / "side.patch").write_text(git(work, "format-patch", "-1", "side", "--stdout") + "\n")
    async with opened(str(work), tmp_path / "state") as source:
        assert (await read_new(source))["a.yaml"] == "3"
        git(work, *begin, fails=True)
        await waits(source, words)
        with pytest.raises(StoreUnsettled, match=r"has been under way since 20.*waiting for its end"):
            await source.read()
        with pytest.raises(StoreUnsettled, match=r"give --rev HEAD to mean"):
            open_store(locate_store(str(work)), is_settled=True)
        assert open_store(locate_store(str(work)), rev="HEAD", is_settled=True).files
        assert open_store(locate_store(str(work))).files, "what only looks goes on"
        git(work, *end)
        async with asyncio.timeout(60):
            await source.changed()
        assert await source.read() is None, "all is as before"
        commit(work, {"a.yaml": "4"})
        assert (await read_new(source))["a.yaml"] == "4"
    # The first reading of a service that was started meanwhile.
    git(work, "rebase", "side", fails=True)
    async with opened(str(work), tmp_path / "state") as source:
        with pytest.raises(StoreUnsettled):
            await source.read()
        git(work, "rebase", "--abort")
        assert (await read_new(source))["a.yaml"] == "4"


async def test_a_rebase_that_ends_is_one_step(work: Path, tmp_path: Path) -> None:
    async with opened(str(work), tmp_path / "state") as source:
        await read_new(source)
        git(work, "rebase", "side", fails=True)
        await waits(source, "HEAD is detached at")
        write_files(work, {"a.yaml": "2"})
        git(work, "add", "-A")
        git(work, "rebase", "--continue")
        assert await read_new(source) == {"a.yaml": "3", "b.yaml": "b"}


async def test_a_bisect_and_a_detached_head_are_waited_out(work: Path, tmp_path: Path) -> None:
    async with opened(str(work), tmp_path / "state") as source:
        await read_new(source)
        git(work, "bisect", "start", "HEAD", "HEAD~2")
        await waits(source, "a bisect has been under way")
        git(work, "bisect", "reset")
        git(work, "checkout", "-q", "--detach", "HEAD~1")
        await waits(source, "waiting for a branch to be checked out")
        git(work, "switch", "-q", "side")
        assert await read_new(source) == {"a.yaml": "side"}, "another branch is a wish"


async def test_whoever_names_head_means_what_is_checked_out(work: Path, tmp_path: Path) -> None:
    git(work, "checkout", "-q", "--detach", "HEAD~1")
    assert content(open_store(locate_store(str(work)), is_settled=True)) == {"a.yaml": "2"}, "pipelines check out so"
    async with opened(str(work), tmp_path / "state", rev="HEAD") as source:
        assert await read_new(source) == {"a.yaml": "2"}
        git(work, "bisect", "start", "main", "main~2")
        git(work, "checkout", "-q", "side")
        assert await read_new(source) == {"a.yaml": "side"}


async def test_a_submodule_is_detached_by_nature(work: Path, tmp_path: Path) -> None:
    parent = tmp_path / "parent"
    parent.mkdir()
    git(parent, "init", "-q")
    git(parent, "submodule", "--quiet", "add", str(work), "fleet")
    commit(parent, {"README.md": ""})
    git(parent / "fleet", "checkout", "-q", "--detach")
    async with opened(str(parent / "fleet"), tmp_path / "state") as source:
        assert (await read_new(source))["a.yaml"] == "3"
        git(parent / "fleet", "checkout", "-q", "--detach", "HEAD~1")
        assert await read_new(source) == {"a.yaml": "2"}
        git(parent / "fleet", "merge", "-q", "origin/side", fails=True)
        await waits(source, "a merge")


class Synced:
    """A folder as git-sync keeps it: each commit in a detached work tree of its own, and a link to the newest."""

    def __init__(self, work: Path, root: Path, *, has_git: bool) -> None:
        self.work, self.root, self.has_git = work, root, has_git
        self.link = root / "current"
        git(work, "clone", "-q", str(work), str(root))

    def to(self, revision: str) -> None:
        """Swap the link, and delete what it led to."""
        git(self.root, "fetch", "-q", "origin", "+refs/heads/*:refs/remotes/origin/*")
        commit_id = git(self.work, "rev-parse", revision)
        target = self.root / ".worktrees" / commit_id
        git(self.root, "worktree", "add", "-q", "--detach", str(target), commit_id)
        if not self.has_git:
            (target / ".git").unlink()
        before = self.link.resolve() if self.link.is_symlink() else None
        swap = self.root / "swap"
        swap.symlink_to(target.relative_to(self.root))
        swap.replace(self.link)
        if before is not None:
            shutil.rmtree(before)
            git(self.root, "worktree", "prune")


@pytest.mark.parametrize("subdir", ["", "sub"])
@pytest.mark.parametrize(("has_git", "as_directory"), [(True, False), (False, False), (True, True)])
async def test_a_link_that_is_swapped_is_followed(
    work: Path, tmp_path: Path, subdir: str, has_git: bool, as_directory: bool
) -> None:
    def files(text: str) -> dict[str, str]:
        return {"a.yaml": text} if subdir else {"a.yaml": text, "sub/a.yaml": text}

    commit(work, {"a.yaml": "4", "sub/a.yaml": "4"})
    git(work, "rm", "-q", "b.yaml")
    git(work, "commit", "-qm", "less")
    synced = Synced(work, tmp_path / "synced", has_git=has_git)
    synced.to("main")
    text = str(synced.link / subdir)
    if not has_git:
        # Without its .git file the work tree is a folder of the repository around it.
        shutil.move(synced.root / ".git", tmp_path / "git")
    async with opened(text, tmp_path / "state", as_directory=as_directory or not has_git) as source:
        assert await read_new(source) == files("4")
        assert source.name == text
        if not has_git:
            shutil.move(tmp_path / "git", synced.root / ".git")
        for value in ("5", "6"):
            commit(work, {"a.yaml": value, "sub/a.yaml": value})
            synced.to("main")
            assert await read_new(source) == files(value)


async def test_a_link_that_leads_nowhere_leaves_what_is_in_force(work: Path, tmp_path: Path) -> None:
    synced = Synced(work, tmp_path / "synced", has_git=True)
    synced.to("main")
    for as_directory in (False, True):
        async with opened(str(synced.link), tmp_path / "state", as_directory=as_directory) as source:
            assert (await read_new(source))["a.yaml"] == "3"
            target = synced.link.resolve()
            target.rename(tmp_path / "away")
            async with asyncio.timeout(60):
                await source.changed()
            with pytest.raises(StoreError, match="current"):
                await source.read()
            (tmp_path / "away").rename(target)
            async with asyncio.timeout(60):
                await source.changed()
            assert await source.read() is None


async def test_the_volume_of_a_config_map_is_followed(tmp_path: Path) -> None:
    """Source: Kubernetes, `atomic_writer.go`: files are links into `..data`, a link that is swapped."""
    volume = tmp_path / "volume"
    write_files(volume, {"..1/a.yaml": "1", "..data": "-> ..1", "a.yaml": "-> ..data/a.yaml"})
    async with opened(str(volume), tmp_path / "state") as source:
        assert await read_new(source) == {"a.yaml": "1"}
        for value in ("2", "3"):
            write_files(volume, {f"..{value}/a.yaml": value, "..tmp": f"-> ..{value}"})
            before = (volume / "..data").resolve()
            (volume / "..tmp").replace(volume / "..data")
            shutil.rmtree(before)
            assert await read_new(source) == {"a.yaml": value}
