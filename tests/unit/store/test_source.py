"""The source that STORE names, and what all of them promise."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pygit2
import pytest

from reconciler.api.rollouts import Ancestry
from reconciler.clock import Clock, SystemClock
from reconciler.errors import ConfigurationError, RevisionNotFound, StoreError
from reconciler.store import StoreSource
from reconciler.store.local_source import DirectorySource, RepositorySource
from reconciler.store.source import open_source
from reconciler.store.url_source import UrlSource
from tests.fakes.git_server import needed
from tests.fakes.store_trees import AUTHOR, commit_all, write_files
from tests.present import present

Change = Callable[[str], None]


@asynccontextmanager
async def opened(
    text: str, state: Path, *, rev: str | None = None, as_directory: bool = False, clock: Clock | None = None,
    accept_rewinds: bool = False, poll_s: float = 0.05,
) -> AsyncIterator[StoreSource]:  # fmt: skip
    source = await open_source(
        text,
        rev=rev,
        as_directory=as_directory,
        poll_s=poll_s,
        state_folder=state,
        clock=clock or SystemClock(),
        accept_rewinds=accept_rewinds,
        environ={},
    )
    try:
        yield source
    finally:
        await source.close()


def content(snapshot: object) -> dict[str, str]:
    return {file.path: file.data.decode() for file in snapshot.files}  # type: ignore[attr-defined]  # of a Snapshot


async def read_new(source: StoreSource) -> dict[str, str]:
    """Return what the store holds when it has changed; several changes may come as one or as many."""
    async with asyncio.timeout(60):
        while True:
            await source.changed()
            snapshot = await source.read()
            if snapshot is not None:
                source.accept(snapshot.revision, {})
                return content(snapshot)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "work"
    commit_all(write_files(root, {"a.yaml": "1"}), new=True)
    return root


async def test_store_names_a_directory_a_repository_or_a_url(work: Path, tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    bare = tmp_path / "bare.git"
    pygit2.clone_repository(str(work), str(bare), bare=True)
    url = "https://git.example.com/x.git"
    cases: list[tuple[str, bool, type, str, str]] = [
        (str(plain), False, DirectorySource, str(plain), f"directory {plain}"),
        (str(work), True, DirectorySource, str(work), f"directory {work}"),
        (str(work), False, RepositorySource, str(work), f"work tree {work} at HEAD"),
        (str(bare), False, RepositorySource, str(bare), f"bare repository {bare} at HEAD"),
        (f"file://{bare}", False, UrlSource, f"file://{bare}", f"file://{bare} default branch"),
        ("https://ann:pw@git.example.com/x.git", False, UrlSource, url, f"{url} default branch"),
    ]
    for text, as_directory, kind, name, description in cases:
        async with opened(text, tmp_path / "state", as_directory=as_directory) as source:
            assert isinstance(source, kind)
            assert (source.name, source.description) == (name, description)
            assert source.note == ""


async def test_a_store_named_from_here_is_recorded_as_it_is_found_from_anywhere(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(work)
    for as_directory in (False, True):
        async with opened(".", tmp_path / "state", as_directory=as_directory) as source:
            assert source.name == str(work)


async def test_what_makes_no_sense_together_is_refused(work: Path, tmp_path: Path) -> None:
    for text, rev, as_directory, fault in [
        ("https://example.com/x.git", None, True, ConfigurationError),
        ("http://example.com/x.git", None, False, ConfigurationError),
        ("https://example.com/x.git", "main~1", False, RevisionNotFound),
        (str(work), "main", True, ConfigurationError),
        (str(tmp_path / "nobody"), None, False, StoreError),
    ]:
        with pytest.raises(fault):
            async with opened(text, tmp_path / "state", rev=rev, as_directory=as_directory):
                pass


def _stores(work: Path) -> list[tuple[str, bool, Change]]:
    def edit(text: str) -> None:
        (work / "a.yaml").write_text(text)

    def commit(text: str) -> None:
        edit(text)
        commit_all(work)

    return [(str(work), True, edit), (str(work), False, commit), (f"file://{work}", False, commit)]


@pytest.mark.parametrize("index", range(3), ids=["directory", "repository", "url"])
async def test_follows_changes_and_tells_of_nothing_else(work: Path, tmp_path: Path, index: int) -> None:
    text, as_directory, change = _stores(work)[index]
    async with opened(text, tmp_path / "state", as_directory=as_directory) as source:
        assert await read_new(source) == {"a.yaml": "1"}
        for number in ("2", "3"):
            waiting = asyncio.create_task(read_new(source))
            await asyncio.sleep(0)
            change(number)
            assert await waiting == {"a.yaml": number}
        assert await source.read() is None


@pytest.mark.parametrize("index", range(3), ids=["directory", "repository", "url"])
async def test_cancelling_the_wait_loses_no_change(work: Path, tmp_path: Path, index: int) -> None:
    text, as_directory, change = _stores(work)[index]
    async with opened(text, tmp_path / "state", as_directory=as_directory) as source:
        assert await read_new(source) == {"a.yaml": "1"}
        for number in range(20):
            waiting = asyncio.create_task(source.changed())
            await asyncio.sleep(0.003 * number)
            if number == 5:
                change("2")
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        assert await read_new_after_cancelled(source) == {"a.yaml": "2"}


async def read_new_after_cancelled(source: StoreSource) -> dict[str, str]:
    """As `read_new`; a call that had ended before it was cancelled has told already, so one reading comes first."""
    snapshot = await source.read()
    return content(snapshot) if snapshot is not None else await read_new(source)


@pytest.mark.parametrize("index", range(2), ids=["directory", "repository"])
async def test_a_change_is_told_once_while_it_waits_to_be_read(work: Path, tmp_path: Path, index: int) -> None:
    text, as_directory, change = _stores(work)[index]
    async with opened(text, tmp_path / "state", as_directory=as_directory) as source:
        assert await read_new(source) == {"a.yaml": "1"}
        change("2")
        async with asyncio.timeout(60):
            await source.changed()
        # Stamps may move once more while the first is told; then there is rest, though nothing was read.
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1):
                for _ in range(5):
                    await source.changed()


@pytest.mark.parametrize("index", range(3), ids=["directory", "repository", "url"])
async def test_goes_on_after_the_store_was_away(work: Path, tmp_path: Path, index: int) -> None:
    text, as_directory, change = _stores(work)[index]
    async with opened(text, tmp_path / "state", as_directory=as_directory) as source:
        assert await read_new(source) == {"a.yaml": "1"}
        away = work.rename(tmp_path / "away")
        async with asyncio.timeout(60):
            await source.changed()
        with pytest.raises(StoreError):
            await source.read()
        away.rename(work)
        change("2")
        assert await read_new(source) == {"a.yaml": "2"}


@pytest.mark.parametrize("index", [1, 2], ids=["repository", "url"])
async def test_older_blobs_can_be_read(work: Path, tmp_path: Path, index: int) -> None:
    text, as_directory, change = _stores(work)[index]
    async with opened(text, tmp_path / "state", as_directory=as_directory) as source:
        first = present(await source.read())
        blob = first.files[0].blob
        change("2")
        assert await read_new(source) == {"a.yaml": "2"}
        stored = present(source.read_blob("a.yaml", blob))
        assert (stored.path, stored.data) == ("a.yaml", b"1")
        assert source.read_blob("a.yaml", "0" * 40) is None


@pytest.mark.parametrize("index", [1, 2], ids=["repository", "url"])
async def test_older_revisions_are_ordered_named_and_read(work: Path, tmp_path: Path, index: int) -> None:
    text, as_directory, change = _stores(work)[index]
    async with opened(text, tmp_path / "state", as_directory=as_directory) as source:
        first = present(await source.read())
        old = first.revision
        change("2")
        assert await read_new(source) == {"a.yaml": "2"}
        head = str(pygit2.Repository(str(work)).head.target)
        assert source.ancestry([old, "f" * 40], head) == Ancestry(order=(old, head), missing=frozenset({"f" * 40}))
        assert source.resolve([old[:9], head, "HEAD", "main", "HEAD~1"]) == {old[:9]: old, head: head}
        assert content(present(source.recall(old))) == {"a.yaml": "1"}
        assert source.recall("f" * 40) is None
        change("3")
        assert await read_new(source) == {"a.yaml": "3"}, "what was recalled is no base of what is read next"


async def test_a_directory_has_no_revisions(work: Path, tmp_path: Path) -> None:
    async with opened(str(work), tmp_path / "state", as_directory=True) as source:
        snapshot = present(await source.read())
        missing = frozenset({"f" * 40, snapshot.revision})
        assert source.ancestry(["f" * 40], snapshot.revision) == Ancestry(missing=missing)
        assert source.resolve(["f" * 40, "v1"]) == {}
        source.keep(["f" * 40])


async def test_nothing_is_written_into_a_repository_of_a_person(work: Path, tmp_path: Path) -> None:
    async with opened(str(work), tmp_path / "state") as source:
        snapshot = present(await source.read())
        before = sorted(pygit2.Repository(str(work)).references)
        source.keep([snapshot.revision])
        assert sorted(pygit2.Repository(str(work)).references) == before
        git("update-ref", "-d", "refs/heads/main", at=work)
        git("reflog", "expire", "--expire=now", "--all", at=work)
        git("gc", "--quiet", "--prune=now", at=work)
        assert source.ancestry([snapshot.revision], snapshot.revision).missing == {snapshot.revision}
        assert source.recall(snapshot.revision) is None


async def test_what_is_kept_outlasts_a_force_push_fetches_and_a_collection(work: Path, tmp_path: Path) -> None:
    write_files(work, {"a.yaml": "old"})
    old = commit_all(work)
    async with opened(f"file://{work}", tmp_path / "state", accept_rewinds=True) as source:
        assert await read_new(source) == {"a.yaml": "old"}
        source.keep([old])
        repository = pygit2.Repository(str(work))
        tree = repository.head.peel(pygit2.Commit).tree.id
        other = repository.create_commit(None, AUTHOR, AUTHOR, "another history", tree, [])
        repository.references["refs/heads/main"].set_target(other)
        git("reflog", "expire", "--expire=now", "--all", at=work)
        git("gc", "--quiet", "--prune=now", at=work)
        assert pygit2.Repository(str(work)).get(old) is None
        head = str(other)
        for number in range(2):
            write_files(work, {"a.yaml": f"new {number}"})
            head = commit_all(work)
            assert await read_new(source) == {"a.yaml": f"new {number}"}
        (clone,) = (path for path in (tmp_path / "state/git").iterdir() if path.is_dir())
        # Beside the references for what was in force, which keep it as well.
        for name in [name for name in pygit2.Repository(str(clone)).references if "/kept/" in name]:
            pygit2.Repository(str(clone)).references.delete(name)
        git("gc", "--quiet", "--prune=now", at=clone)
        assert source.ancestry([old], head) == Ancestry(order=(head,))
        assert content(present(source.recall(old))) == {"a.yaml": "old"}
        source.keep([])
        git("gc", "--quiet", "--prune=now", at=clone)
        assert source.ancestry([old], head) == Ancestry(order=(head,), missing=frozenset({old}))
        assert source.recall(old) is None


def git(*words: str, at: Path) -> None:
    subprocess.run([needed("git"), "-C", str(at), *words], check=True, capture_output=True)
