"""The clone on the disk: what killed fetches leave is taken away, and one at a time fetches."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pygit2
import pytest

from reconciler.errors import StoreError
from reconciler.store.git.fetch import locked, prepare

INTO = "refs/fleet/fetched/x"


def _pack(folder: Path, contents: list[bytes]) -> set[str]:
    """One pack more in the clone; the names of its objects."""
    repository = pygit2.Repository(str(folder))
    beside = folder.with_name("beside.git")
    builder = pygit2.PackBuilder(pygit2.init_repository(str(beside), bare=True))
    made = pygit2.Repository(str(beside))
    oids = [made.create_blob(content) for content in contents]
    for oid in oids:
        builder.add(oid)
    builder.write(str(Path(repository.path) / "objects/pack"))
    return {str(oid) for oid in oids}


def _packs(folder: Path) -> list[Path]:
    return sorted((folder / "objects/pack").glob("pack-*.pack"))


def test_what_killed_fetches_left_is_taken_away(tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    prepare(folder, INTO)
    _pack(folder, [b"kept"])
    sound = _packs(folder)
    packs = folder / "objects/pack"
    left = [packs / name for name in ("pack_git2_12ab", "tmp_pack_x", "tmp_idx_x", "pack-1.pack", "pack-2.idx")]
    left += [sound[0].with_suffix(".keep"), folder / f"{INTO}.lock", folder / "config.lock"]
    for file in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    os.utime(folder / "config.lock", (1, 1))
    prepare(folder, INTO)
    assert [file.name for file in left if file.exists()] == []
    assert _packs(folder) == sound
    assert len(list(pygit2.Repository(str(folder)))) == 1


def test_a_lock_that_somebody_may_hold_just_now_stays(tmp_path: Path) -> None:
    prepare(tmp_path / "clone", INTO)
    lock = tmp_path / "clone/refs/fleet/in-force/x.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    prepare(tmp_path / "clone", INTO)
    assert lock.exists()


@pytest.mark.parametrize("begun", ["clone", "clone.new"])
def test_a_clone_that_is_half_made_is_made_anew(tmp_path: Path, begun: str) -> None:
    (tmp_path / begun / "objects").mkdir(parents=True)
    (tmp_path / begun / "config").write_text("[core")
    prepare(tmp_path / "clone", INTO)
    assert pygit2.Repository(str(tmp_path / "clone")).is_bare
    assert [found.name for found in tmp_path.iterdir()] == ["clone"]


def test_who_waits_can_be_stopped(tmp_path: Path) -> None:
    stop = threading.Event()
    with (
        locked(tmp_path / "clone", lambda pid: None, stop),
        pytest.raises(StoreError, match="stopped"),
        locked(tmp_path / "clone", lambda pid: stop.set(), stop),
    ):
        pass
