from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from reconciler.clock import SystemClock
from reconciler.errors import StoreError
from reconciler.store import local_source as source_watch
from reconciler.store.local_source import DirectorySource
from tests.fakes.clocks import TestClock
from tests.fakes.store_trees import write_files
from tests.fakes.waiting import until
from tests.unit.store.test_source import opened, read_new


async def test_a_folder_that_takes_the_place_of_the_root_is_followed(tmp_path: Path) -> None:
    """As git-sync and Kubernetes volumes do it: the root is a link that is swapped."""
    for name in ("one", "two", "three"):
        # Old enough that no second reading of young files finds the swap by chance.
        _settled(write_files(tmp_path / name, {"a.yaml": name}))
    root = tmp_path / "current"
    root.symlink_to("one")
    async with opened(str(root), tmp_path / "state") as source:
        assert await read_new(source) == {"a.yaml": "one"}
        for name in ("two", "three"):
            waiting = asyncio.create_task(read_new(source))
            await asyncio.sleep(0.3)  # past the look with which every wait begins
            (tmp_path / "next").symlink_to(name)
            (tmp_path / "next").rename(root)
            assert await waiting == {"a.yaml": name}
        (tmp_path / "three/a.yaml").write_text("after the swap")
        assert await read_new(source) == {"a.yaml": "after the swap"}


async def test_new_folders_are_read_though_their_events_get_lost(tmp_path: Path) -> None:
    root = write_files(tmp_path / "store", {"a.yaml": "1"})
    async with opened(str(root), tmp_path / "state") as source:
        await read_new(source)
        for number in range(20):
            write_files(root, {f"n{number}/deep/er/x.yaml": "x"})
        found: dict[str, str] = {}
        while len(found) < 21:
            found = await read_new(source)


async def test_an_event_is_told_within_a_moment(tmp_path: Path) -> None:
    root = _settled(write_files(tmp_path / "store", {"a.yaml": "1"}))
    async with opened(str(root), tmp_path / "state") as source:
        await read_new(source)
        loop = asyncio.get_running_loop()
        waiting = asyncio.create_task(source.changed())
        await asyncio.sleep(0.3)  # past the look with which every wait begins
        assert not waiting.done()
        started = loop.time()
        (root / "a.yaml").write_text("22")
        await waiting
        assert loop.time() - started < 20, "the scan each half minute, not an event, told of it"


def _settled(root: Path) -> Path:
    for path in root.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
    return root


async def test_a_file_too_young_for_its_stamp_is_read_once_more(tmp_path: Path) -> None:
    root = write_files(tmp_path / "store", {"a.yaml": "1"})
    clock = TestClock()
    source = DirectorySource(root, clock, tmp_path / "state")
    try:
        assert await source.read() is not None
        started_s = clock.monotonic_s()
        await source.changed()
        assert 2 <= clock.monotonic_s() - started_s <= 5
        _settled(root)
        assert await source.read() is None
        waiting = asyncio.create_task(source.changed())
        await until(lambda: clock.monotonic_s() - started_s > 60)
        assert not waiting.done(), "the clock ran, and nothing was told"
        waiting.cancel()
    finally:
        await source.close()


async def test_failed_readings_are_tried_again_with_growing_pauses(tmp_path: Path) -> None:
    root = tmp_path / "nobody"
    clock = TestClock()
    source = DirectorySource(root, clock, tmp_path / "state")
    try:
        pauses = []
        for _ in range(6):
            started_s = clock.monotonic_s()
            with pytest.raises(StoreError, match="nobody"):
                await source.read()
            await source.changed()
            pauses.append(clock.monotonic_s() - started_s)
        assert pauses == sorted(pauses)
        assert 2 <= pauses[0] <= 4
        assert 30 <= pauses[-1] <= 33
    finally:
        await source.close()


async def test_without_file_events_it_says_so_and_still_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*folders: Path, **options: object) -> object:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(source_watch, "awatch", exhausted)
    root = write_files(tmp_path / "store", {"a.yaml": "1"})
    source = DirectorySource(root, SystemClock(), tmp_path / "state")
    try:
        assert await read_new(source) == {"a.yaml": "1"}
        assert "No space left" in source.note
        assert "scanned every 5 s" in source.note
        (root / "a.yaml").write_text("22")
        assert await read_new(source) == {"a.yaml": "22"}
    finally:
        await source.close()


async def test_nothing_is_watched_after_closing(tmp_path: Path) -> None:
    root = write_files(tmp_path / "store", {"a.yaml": "1"})
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208
    for _ in range(3):
        async with opened(str(root), tmp_path / "state") as source:
            await read_new(source)
    # The thread that watched ends by itself.
    await until(lambda: len(os.listdir("/proc/self/fd")) <= before + 2)  # noqa: PTH208
