from __future__ import annotations

import asyncio
import errno
import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pygit2
import pytest

from reconciler.errors import RevisionNotFound, StoreError, StoreFault
from reconciler.store.local_source import RepositorySource
from tests.fakes.clocks import TestClock
from tests.fakes.raising import InterpreterFault
from tests.fakes.store_trees import commit_all, write_files
from tests.unit.store.test_source import content, opened, read_new


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    commit_all(write_files(root, {"a.yaml": "1", "sub/b.yaml": "b"}), new=True)
    return root


async def test_edits_without_a_commit_change_nothing(work: Path, tmp_path: Path) -> None:
    async with opened(str(work), tmp_path) as source:
        await read_new(source)
        (work / "a.yaml").write_text("edited")
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.5):
                await source.changed()
        assert await source.read() is None


async def test_a_rewritten_branch_and_another_branch_are_followed(work: Path, tmp_path: Path) -> None:
    repository = pygit2.Repository(str(work))
    first = repository.head.target
    async with opened(str(work / "sub"), tmp_path) as source:
        assert await read_new(source) == {"b.yaml": "b"}
        write_files(work, {"sub/b.yaml": "bb"})
        commit_all(work)
        assert await read_new(source) == {"b.yaml": "bb"}
        repository.reset(first, pygit2.enums.ResetMode.HARD)
        assert await read_new(source) == {"b.yaml": "b"}
        repository.branches.local.create("side", repository.get(first))  # type: ignore[arg-type]  # it is a commit
        repository.set_head("refs/heads/side")
        write_files(work, {"sub/b.yaml": "side"})
        commit_all(work)
        assert await read_new(source) == {"b.yaml": "side"}


async def test_a_linked_work_tree_is_followed(work: Path, tmp_path: Path) -> None:
    linked = tmp_path / "linked"
    pygit2.Repository(str(work)).add_worktree("linked", str(linked))
    async with opened(str(linked), tmp_path / "state") as source:
        assert (await read_new(source))["a.yaml"] == "1"
        write_files(linked, {"a.yaml": "2"})
        commit_all(linked)
        assert (await read_new(source))["a.yaml"] == "2"


async def test_packed_references_are_followed(work: Path, tmp_path: Path) -> None:
    repository = pygit2.Repository(str(work))
    async with opened(str(work), tmp_path, rev="main") as source:
        assert (await read_new(source))["a.yaml"] == "1"
        write_files(work, {"a.yaml": "2"})
        tree = commit_all(work)
        assert (await read_new(source))["a.yaml"] == "2"
        repository.compress_references()
        assert await source.read() is None
        assert tree == str(repository.references["refs/heads/main"].target)


async def test_a_deleted_branch_says_so_and_its_return_is_noticed(work: Path, tmp_path: Path) -> None:
    repository = pygit2.Repository(str(work))
    repository.create_reference("refs/heads/prod", repository.head.target)
    async with opened(str(work), tmp_path, rev="prod") as source:
        await read_new(source)
        repository.references.delete("refs/heads/prod")
        async with asyncio.timeout(60):
            await source.changed()
        with pytest.raises(RevisionNotFound, match="prod"):
            await source.read()
        write_files(work, {"a.yaml": "2"})
        repository.create_reference("refs/heads/prod", pygit2.Oid(hex=commit_all(work)))
        assert (await read_new(source))["a.yaml"] == "2"


async def test_looking_at_a_repository_leaves_no_garbage(work: Path, tmp_path: Path) -> None:
    async with opened(str(work), tmp_path) as source:
        await read_new(source)
        assert isinstance(source, RepositorySource)
        source.probe()
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                source.probe()
            assert gc.collect() < 20
        finally:
            gc.enable()


@pytest.mark.parametrize("step", ["probe", "load"])
@pytest.mark.parametrize(
    ("fault", "told", "words"),
    [
        (InterpreterFault("hunter2"), StoreFault, "internal-error: it cannot be read: InterpreterFault; please report"),
        (
            PermissionError(errno.EACCES, "Permission denied", "/store/.git"),
            StoreError,
            "/store/.git: Permission denied",
        ),
        (OSError(errno.EIO, "Input/output error"), StoreError, "work: Input/output error"),
    ],
)
async def test_a_look_that_fails_is_a_fault_of_ours_unless_the_system_says_why(
    work: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    fault: Exception,
    told: type[StoreError],
    words: str,
) -> None:
    def faulty(*given: object) -> None:
        raise fault

    clock = TestClock()
    async with opened(str(work), tmp_path, clock=clock) as source:
        await read_new(source)
        write_files(work, {"a.yaml": "2"})
        commit_all(work)
        with monkeypatch.context() as patched:
            patched.setattr(RepositorySource, step, faulty)
            with pytest.raises(StoreError, match=words) as found:
                await source.read()
        assert type(found.value) is told
        snapshot = await source.read()
        assert snapshot is not None
        assert content(snapshot)["a.yaml"] == "2"


async def test_what_lies_in_a_bare_repository_is_searched_when_its_folder_is_another_one_only(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare, walked = tmp_path / "bare.git", list[str]()
    pygit2.clone_repository(str(work), str(bare), bare=True)
    write_files(bare, {"lfs/objects/aa/bb": "large"})
    walk = os.walk

    def counted(top: Path) -> Iterator[tuple[str, list[str], list[str]]]:
        for found in walk(top):
            walked.append(found[0])
            yield found

    monkeypatch.setattr(os, "walk", counted)
    async with opened(str(bare), tmp_path / "state") as source:
        assert isinstance(source, RepositorySource)
        await read_new(source)
        searched = len(walked)
        assert searched > 0
        for _ in range(10):
            source.probe()
        assert len(walked) == searched
        # A document that comes beside what is Git's, and a folder in the place of this one.
        write_files(bare, {"a.yaml": "forged"})
        with pytest.raises(StoreError, match="looks like a bare repository and holds documents"):
            source.probe()
        with pytest.raises(StoreError, match="looks like a bare repository and holds documents"):
            source.probe()
        (bare / "a.yaml").unlink()
        source.probe()
        bare.rename(tmp_path / "before.git")
        pygit2.clone_repository(str(work), str(bare), bare=True)
        write_files(bare, {"lfs/a.yaml": "forged"})
        with pytest.raises(StoreError, match="looks like a bare repository and holds documents"):
            source.probe()
