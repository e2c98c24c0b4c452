from __future__ import annotations

import asyncio
import errno
import os
import random
from pathlib import Path

import pygit2
import pytest

from reconciler.api.fleet import Snapshot
from reconciler.errors import StoreError, StoreFault
from reconciler.store import StoreSource
from reconciler.store import url_source as source_url
from reconciler.store.git import fetch as git_fetch
from reconciler.store.git.commit_history import in_force
from reconciler.store.git.fetch import fetch
from reconciler.store.source import open_source
from tests.fakes.clocks import TestClock
from tests.fakes.git_server import GitServer
from tests.fakes.raising import InterpreterFault
from tests.fakes.store_trees import AUTHOR, commit_all, write_files
from tests.fakes.waiting import until
from tests.present import present
from tests.unit.store.test_source import content, opened, read_new


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Three commits on main; the last one has a.yaml with 3."""
    root = tmp_path / "work"
    commit_all(write_files(root, {"a.yaml": "1", "sub/b.yaml": "b"}), new=True)
    for text in ("2", "3"):
        write_files(root, {"a.yaml": text})
        commit_all(root)
    return root


def _move(work: Path, how: str) -> str:
    """Force main to something that does not follow from it."""
    repository = pygit2.Repository(str(work))
    head = repository.head.peel(pygit2.Commit)
    if how == "set back":
        target = head.parents[0].id
    else:
        parents = [head.parents[0].id] if how == "rewritten" else []
        target = repository.create_commit(None, AUTHOR, AUTHOR, how, head.parents[0].tree.id, parents)
    repository.references["refs/heads/main"].set_target(target)
    return str(target)


async def _first(source: StoreSource) -> dict[str, str]:
    snapshot = present(await source.read())
    source.accept(snapshot.revision, {})
    return content(snapshot)


async def _poll(source: StoreSource) -> Snapshot | None:
    """Return what the next look brings, which comes into force."""
    await source.changed()
    snapshot = await source.read()
    if snapshot is not None:
        source.accept(snapshot.revision, {})
    return snapshot


@pytest.mark.parametrize("how", ["set back", "rewritten", "another history"])
async def test_a_branch_that_leads_elsewhere_is_not_followed_unless_told_to(
    work: Path, tmp_path: Path, how: str
) -> None:
    url, state = f"file://{work}", tmp_path / "state"
    async with opened(url, state) as source:
        assert (await _first(source))["a.yaml"] == "3"
        moved = _move(work, how)
        for _ in range(2):
            with pytest.raises(StoreError, match=rf"{how}.*--accept-rewinds"):
                await _poll(source)
    async with opened(url, state) as source:
        assert (await _first(source))["a.yaml"] == "3", "a restart changes nothing about it"
        assert how in source.note
        with pytest.raises(StoreError, match=how):
            await _poll(source)
    async with opened(url, state, accept_rewinds=True) as source:
        assert present(await _poll(source)).revision == moved
        assert source.note == ""
    async with opened(url, state) as source:
        assert (await _poll(source)) is not None, "what was accepted once is in force"


async def test_what_was_not_accepted_is_nothing_that_a_branch_must_follow_from(work: Path, tmp_path: Path) -> None:
    url, state = f"file://{work}", tmp_path / "state"
    async with opened(url, state) as source:
        await _first(source)
        accepted = str(pygit2.Repository(str(work)).head.target)
        write_files(work, {"a.yaml": "4"})
        commit_all(work)
        await source.changed()
        refused = present(await source.read())
        pygit2.Repository(str(work)).references["refs/heads/main"].set_target(pygit2.Oid(hex=accepted))
        assert present(await _poll(source)).revision == accepted
        assert content(present(source.recall(refused.revision)))["a.yaml"] == "4"
        assert source.recall("dir:00") is None


async def test_what_was_in_force_survives_in_the_clone(work: Path, tmp_path: Path) -> None:
    repository = pygit2.Repository(str(work))
    old = str(repository.head.target)
    async with opened(f"file://{work}", tmp_path / "state", accept_rewinds=True) as source:
        await _first(source)
        new = _move(work, "another history")
        assert await _poll(source) is not None
    (clone,) = (path for path in (tmp_path / "state/git").iterdir() if path.is_dir())
    kept = pygit2.Repository(str(clone)).references
    pinned = {str(kept[name].target) for name in kept if name.startswith(("refs/fleet/in-force/", "refs/fleet/kept/"))}
    assert pinned == {old, new}


async def test_a_correction_forward_is_followed_again(work: Path, tmp_path: Path) -> None:
    async with opened(f"file://{work}", tmp_path / "state") as source:
        await _first(source)
        good = pygit2.Repository(str(work)).head.target
        _move(work, "rewritten")
        with pytest.raises(StoreError):
            await _poll(source)
        pygit2.Repository(str(work)).references["refs/heads/main"].set_target(good)
        write_files(work, {"a.yaml": "4"})
        commit_all(work)
        assert (await read_new(source))["a.yaml"] == "4"


async def test_a_deleted_branch_and_an_emptied_repository_leave_the_last_good_revision(
    work: Path, tmp_path: Path
) -> None:
    async with opened(f"file://{work}", tmp_path / "state", rev="main") as source:
        await _first(source)
        repository = pygit2.Repository(str(work))
        repository.references.create("refs/heads/other", repository.head.target)
        repository.set_head("refs/heads/other")
        repository.references.delete("refs/heads/main")
        with pytest.raises(StoreError, match=r"no branch or tag main any more.*other"):
            await _poll(source)
        repository.references.delete("refs/heads/other")
        with pytest.raises(StoreError, match="no commit yet"):
            await _poll(source)


async def test_another_revision_is_no_rewind(work: Path, tmp_path: Path) -> None:
    repository = pygit2.Repository(str(work))
    old = repository.head.peel(pygit2.Commit).parents[0].id
    repository.references.create("refs/heads/stable", old)
    for rev, expected in (("main", "3"), ("stable", "2"), ("main", "3"), (str(old), "2")):
        async with opened(f"file://{work}", tmp_path / "state", rev=rev) as source:
            assert (await _first(source))["a.yaml"] == expected


async def test_a_restart_without_the_server_goes_on_with_what_was_in_force(work: Path, tmp_path: Path) -> None:
    url, state = f"file://{work}", tmp_path / "state"
    async with opened(url, state) as source:
        await _first(source)
    away = work.rename(tmp_path / "away")
    async with opened(url, state) as source:
        assert (await _first(source))["a.yaml"] == "3"
        assert "going on with" in source.note
        with pytest.raises(StoreError, match="no repository there"):
            await _poll(source)
        away.rename(work)
        assert await _poll(source) is None
        assert source.note == ""
    async with opened(url, tmp_path / "fresh") as source:
        work.rename(away)
        with pytest.raises(StoreError):
            await _poll(source)


async def test_reads_a_folder_of_the_repository(work: Path, tmp_path: Path) -> None:
    async with opened(f"file://{work}//sub", tmp_path / "state") as source:
        assert await _first(source) == {"b.yaml": "b"}
        assert source.description.endswith("//sub main")
    async with opened(f"file://{work}//nobody", tmp_path / "state2") as source:
        with pytest.raises(StoreError, match="has no folder nobody"):
            await _poll(source)


async def test_the_server_is_asked_at_intervals_that_differ_and_sooner_after_a_failure(
    work: Path, tmp_path: Path
) -> None:
    random.seed(7)
    clock = TestClock()
    source = await open_source(
        f"file://{work}", rev=None, as_directory=False, poll_s=60, state_folder=tmp_path / "s", clock=clock, environ={}
    )

    async def pause() -> float:
        started_s = clock.monotonic_s()
        await source.changed()
        return clock.monotonic_s() - started_s

    assert await pause() == 0
    pauses = []
    for _ in range(4):
        await source.read()
        pauses.append(await pause())
    assert all(54 <= found <= 66 for found in pauses)
    assert len(set(pauses)) == 4
    await source.read()
    work.rename(tmp_path / "away")
    for expected in (60, 5, 10, 20, 40, 60, 60):
        assert 0.9 * expected <= await pause() <= 1.1 * expected
        with pytest.raises(StoreError):
            await source.read()
    await source.close()


async def test_a_reading_asked_for_by_hand_brings_the_next_fetch_forward(work: Path, tmp_path: Path) -> None:
    async with opened(f"file://{work}", tmp_path / "state", poll_s=3600) as source:
        await _first(source)
        write_files(work, {"a.yaml": "4"})
        commit_all(work)
        assert await source.read() is None
        async with asyncio.timeout(60):
            snapshot = await _poll(source)
        assert snapshot is not None
        assert content(snapshot)["a.yaml"] == "4"


async def test_a_server_that_hangs_holds_up_neither_reading_nor_closing(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with GitServer(work.parent) as server:
        url = f"{server.url}/work/.git"
        async with opened(url, tmp_path / "state") as source:
            assert (await _first(source))["a.yaml"] == "3"
            server.is_silent = True
            before = len(server.asked)
            waiting = asyncio.create_task(source.changed())
            await until(lambda: len(server.asked) != before)
            assert await source.read() is None
            assert not waiting.done()
            waiting.cancel()
        monkeypatch.setattr(source_url, "_FIRST_WAIT_S", 0.2)
        async with opened(url, tmp_path / "state") as source:
            assert (await _first(source))["a.yaml"] == "3"
            assert "the first fetch is still running" in source.note
        async with opened(url, tmp_path / "fresh") as source:
            with pytest.raises(StoreError, match="the first fetch is still running"):
                await source.read()
            server.is_silent = False


async def test_a_fetch_that_takes_long_is_told_of_while_it_goes_on(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source_url, "_SLOW_S", 0.1)
    monkeypatch.setattr(source_url, "_FIRST_WAIT_S", 0.1)
    async with GitServer(work.parent) as server:
        url = f"{server.url}/work/.git"
        async with opened(url, tmp_path / "state") as source:
            server.stops_after = 100
            while not [path for path, _ in server.asked if path.endswith("git-upload-pack")]:
                await source.changed()
            with pytest.raises(StoreError, match="the first fetch is still running: "):
                await source.read()
        server.stops_after = None
        monkeypatch.setattr(source_url, "_FIRST_WAIT_S", 60)
        async with opened(url, tmp_path / "state") as source:
            assert (await _first(source))["a.yaml"] == "3"
            server.is_silent = True
            while not source.note:
                await source.changed()
                assert await source.read() is None
            assert source.note.startswith(f"{url}: the fetch takes long: ")
            server.is_silent = False


async def test_cancelling_the_wait_leaves_the_fetch_and_its_end_is_told(work: Path, tmp_path: Path) -> None:
    async with opened(f"file://{work}", tmp_path / "state", poll_s=3600) as source:
        waiting = asyncio.create_task(source.changed())
        await asyncio.sleep(0.05)  # a fetch in a process is begun, at any point of it
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        async with asyncio.timeout(60):
            await source.changed()
        assert (await _first(source))["a.yaml"] == "3"


async def test_a_fetch_that_cannot_be_started_says_so(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def exhausted(*wanted: object, tell: object) -> object:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(source_url, "fetch", exhausted)
    async with opened(f"file://{work}", tmp_path / "state") as source:
        with pytest.raises(StoreError, match=r"no fetch can be started.*temporarily unavailable"):
            await source.read()


async def test_a_fetch_that_fails_by_a_fault_of_ours_keeps_the_last_one_and_says_so(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def faulty(*wanted: object, tell: object) -> object:
        raise InterpreterFault("hunter2")

    async with opened(f"file://{work}", tmp_path / "state") as source:
        await _first(source)
        monkeypatch.setattr(source_url, "fetch", faulty)
        for _ in range(2):
            with pytest.raises(StoreFault, match=r"internal-error: it cannot be read: InterpreterFault") as told:
                await _poll(source)
            assert isinstance(told.value.__cause__, InterpreterFault)
            assert "hunter2" not in str(told.value)
        write_files(work, {"a.yaml": "4"})
        commit_all(work)
        monkeypatch.setattr(source_url, "fetch", fetch)
        assert content(present(await _poll(source)))["a.yaml"] == "4"


async def test_a_commit_that_cannot_be_looked_at_for_a_fault_of_ours_says_so_and_is_tried_again(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def faulty(*given: object) -> str | None:
        raise InterpreterFault

    async with opened(f"file://{work}", tmp_path / "state") as source:
        await _first(source)
        monkeypatch.setattr(source_url, "in_force", faulty)
        with pytest.raises(StoreFault, match="internal-error"):
            await _poll(source)
        write_files(work, {"a.yaml": "4"})
        commit_all(work)
        monkeypatch.setattr(source_url, "in_force", in_force)
        assert await _poll(source) is not None


async def test_who_asks_now_reads_what_the_server_has_now(work: Path, tmp_path: Path) -> None:
    async with opened(f"file://{work}", tmp_path / "state") as source:
        assert (await _first(source))["a.yaml"] == "3"
        write_files(work, {"a.yaml": "4"})
        commit_all(work)
        await source.ask_now()
        assert (await _first(source))["a.yaml"] == "4"
        work.rename(tmp_path / "away")
        with pytest.raises(StoreError, match="no repository"):
            await source.ask_now()


@pytest.mark.parametrize(
    ("number", "remedy"),
    [
        (errno.ENOSPC, r"free some space there, or inodes \(`df -i`\)"),
        (errno.EACCES, f"let user {os.geteuid()} have it, or remove it: it is fetched again"),
    ],
)
async def test_a_clone_without_room_or_right_is_told_with_what_helps(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, remedy: str
) -> None:
    def fails(*folder: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(git_fetch, "prepare", fails)
    async with opened(f"file://{work}", tmp_path / "state") as source:
        with pytest.raises(StoreError, match=f"{os.strerror(number)}; {remedy}"):
            await source.read()
