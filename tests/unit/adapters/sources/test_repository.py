from __future__ import annotations

import asyncio
import gc
from pathlib import Path

import pygit2
import pytest

from reconciler.adapters.sources.repository import RepositorySource
from reconciler.errors import RevisionNotFound
from tests.fakes.store_trees import commit_all, write_files
from tests.unit.adapters.sources.test_source import opened, read_new


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
        async with asyncio.timeout(10):
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
        source.look()
        gc.collect()
        gc.disable()
        try:
            for _ in range(20):
                source.look()
            assert gc.collect() < 20
        finally:
            gc.enable()
