"""The clone on the disk: what killed fetches leave is taken away, and many packs become few in bounded memory."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pygit2
import pytest

from reconciler.adapters.git.child import clone
from reconciler.adapters.git.child.clone import join_packs, locked, opened
from tests.fakes.git_server import needed

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
    opened(folder, INTO)
    _pack(folder, [b"kept"])
    sound = _packs(folder)
    packs = folder / "objects/pack"
    left = [packs / name for name in ("pack_git2_12ab", "tmp_pack_x", "tmp_idx_x", "pack-1.pack", "pack-2.idx")]
    left += [sound[0].with_suffix(".keep"), folder / f"{INTO}.lock", folder / "config.lock"]
    for file in left:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"x")
    os.utime(folder / "config.lock", (1, 1))
    repository = opened(folder, INTO)
    assert [file.name for file in left if file.exists()] == []
    assert _packs(folder) == sound
    assert len(list(repository)) == 1


def test_a_lock_that_somebody_may_hold_just_now_stays(tmp_path: Path) -> None:
    opened(tmp_path / "clone", INTO)
    lock = tmp_path / "clone/refs/fleet/in-force/x.lock"
    lock.parent.mkdir(parents=True)
    lock.touch()
    opened(tmp_path / "clone", INTO)
    assert lock.exists()


@pytest.mark.parametrize("begun", ["clone", "clone.new"])
def test_a_clone_that_is_half_made_is_made_anew(tmp_path: Path, begun: str) -> None:
    (tmp_path / begun / "objects").mkdir(parents=True)
    (tmp_path / begun / "config").write_text("[core")
    assert opened(tmp_path / "clone", INTO).is_bare
    assert [found.name for found in tmp_path.iterdir()] == ["clone"]


def test_many_small_packs_become_one_and_the_large_ones_stay(tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    opened(folder, INTO)
    names: set[str] = set()
    for number in range(80):
        names |= _pack(folder, [os.urandom(50_000 if number < 16 else 10), b"the same in all"])
    large = set(sorted(_packs(folder), key=lambda pack: pack.stat().st_size)[-16:])
    written = {pack: pack.stat().st_mtime_ns for pack in large}
    join_packs(pygit2.Repository(str(folder)), folder)
    after = _packs(folder)
    assert len(after) == 17
    assert {pack: pack.stat().st_mtime_ns for pack in after if pack in large} == written
    assert {str(oid) for oid in pygit2.Repository(str(folder))} == names
    checked = subprocess.run([needed("git"), "-C", str(folder), "fsck", "--full"], check=False, capture_output=True)
    assert (checked.returncode, b"error" in checked.stderr) == (0, False), checked.stderr
    join_packs(pygit2.Repository(str(folder)), folder)
    assert _packs(folder) == after, "few packs are left as they are"


def test_joining_that_was_killed_before_it_took_the_old_ones_away_is_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clone, "_MAX_PACKS", 4)
    monkeypatch.setattr(clone, "_LARGEST", 1)
    folder = tmp_path / "clone"
    opened(folder, INTO)
    _pack(folder, [os.urandom(100_000)])
    names = [_pack(folder, [bytes([number])]) for number in range(4)]
    repository = pygit2.Repository(str(folder))
    builder = pygit2.PackBuilder(repository)
    for name in set.union(*names):
        builder.add(pygit2.Oid(hex=name))
    builder.write(str(folder / "objects/pack"))
    assert len(_packs(folder)) == 6
    join_packs(repository, folder)
    assert len(_packs(folder)) == 2
    assert set.union(*names) < {str(oid) for oid in pygit2.Repository(str(folder))}


def test_packs_beyond_a_limit_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "clone"
    opened(folder, INTO)
    for number in range(10):
        # A megabyte that is small as long as nobody unpacks it.
        _pack(folder, [bytes([number]) * 2_000_000])
    monkeypatch.setattr(clone, "_MAX_PACKS", 4)
    monkeypatch.setattr(clone, "_LARGEST", 1)
    before = _packs(folder)
    join_packs(pygit2.Repository(str(folder)), folder)
    assert _packs(folder) == before
    monkeypatch.setattr(clone, "_OBJECT_BYTES", 2**22)
    monkeypatch.setattr(clone, "_JOINED_BYTES", sum(sorted(pack.stat().st_size for pack in before)[:3]))
    join_packs(pygit2.Repository(str(folder)), folder)
    assert len(_packs(folder)) == 8, "three of them are one"


_JOIN = """
import resource, sys
from pathlib import Path
import pygit2
from reconciler.adapters.git.child.clone import join_packs
folder = Path(sys.argv[1])
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
join_packs(pygit2.Repository(str(folder)), folder)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_joining_needs_no_memory_for_what_is_large(tmp_path: Path) -> None:
    folder = tmp_path / "clone"
    opened(folder, INTO)
    for _ in range(16):
        _pack(folder, [os.urandom(3_000_000)])
    for number in range(60):
        _pack(folder, [b"%d" % number * 1000])
    done = subprocess.run([sys.executable, "-c", _JOIN, str(folder)], check=True, capture_output=True, text=True)
    assert len(_packs(folder)) == 17
    assert int(done.stdout) * 1024 < 24e6, "48 MB are there, and were all unpacked side by side"


def test_who_waits_is_told_who_has_the_clone(tmp_path: Path) -> None:
    told: list[int] = []
    folder = tmp_path / "clone"
    with locked(folder, told.append):
        pass
    holder = os.open(f"{folder}.lock", os.O_RDWR)
    fcntl.flock(holder, fcntl.LOCK_EX)

    def hear(pid: int) -> None:
        told.append(pid)
        os.close(holder)

    with locked(folder, hear):
        assert told == [os.getpid()]
