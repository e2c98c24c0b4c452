"""The bare clone on the disk: whose turn it is, what a killed fetch left in it, and its packs."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pygit2

_TOLD_S: Final = 1.0
_LOOK_S: Final = 0.05
_STALE_S: Final = 60.0
"""A lock of a reference is held for milliseconds."""
_UNFINISHED: Final = ("pack_git2_*", "tmp_*", "*.keep")
"""What libgit2 and git write while a pack comes in, and take away at its end."""


@contextlib.contextmanager
def locked(folder: Path, tell: Callable[[int], None]) -> Iterator[None]:
    """The clone is ours alone until the block ends; a process that dies gives it back.

    `tell`: called after each second of waiting, with the process that has it, 0 when that is not known.
    """
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        told_s = time.monotonic()
        while not _is_taken(descriptor):
            time.sleep(_LOOK_S)
            if time.monotonic() - told_s >= _TOLD_S:
                told_s = time.monotonic()
                written = os.pread(descriptor, 20, 0)
                tell(int(written) if written.isdigit() else 0)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def opened(folder: Path, into: str) -> Any:
    """The clone, made when it is not there, without what killed fetches left. Only for who has it locked.

    `into`: the reference that only fetches write.
    """
    if not (folder / "HEAD").exists():
        # Made beside it and moved there, so that one that is half made is never met again.
        begun = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(begun, ignore_errors=True)
        pygit2.init_repository(str(begun), bare=True)
        shutil.rmtree(folder, ignore_errors=True)
        begun.rename(folder)
    _sweep(folder, into)
    return pygit2.Repository(str(folder))


def is_at(repository: Any, name: str, wanted: str) -> bool:
    """Whether a reference of the clone is there and leads to the object."""
    found = repository.references.get(name)
    return found is not None and str(found.target) == wanted


def _sweep(folder: Path, into: str) -> None:
    packs = folder / "objects/pack"
    for pattern in _UNFINISHED:
        for left in packs.glob(pattern):
            left.unlink(missing_ok=True)
    for left in packs.glob("pack-*"):
        whole = left.with_suffix(".pack").exists() and left.with_suffix(".idx").exists()
        if not whole:
            left.unlink(missing_ok=True)
    # Whoever follows the clone may be writing its own reference just now; the one of fetches is ours.
    (folder / f"{into}.lock").unlink(missing_ok=True)
    for lock in folder.rglob("*.lock"):
        with contextlib.suppress(FileNotFoundError):
            if time.time() - lock.stat().st_mtime > _STALE_S:
                lock.unlink()


_MAX_PACKS: Final = 64
_LARGEST: Final = 16
"""These stay as they are, so that what is old and large is not written anew each time."""
_JOINED_BYTES: Final = 64 * 2**20
_JOINED_OBJECTS: Final = 200_000
_OBJECT_BYTES: Final = 2**20
"""Objects are unpacked to be packed again, some of them side by side."""


def join_packs(repository: Any, folder: Path) -> None:
    """Make one pack of the smaller ones when there are many: each fetch adds one, and each read looks through all.

    Memory is bounded by the limits above, whatever the size of the clone; packs beyond them stay as they are.
    """
    packs = sorted((folder / "objects/pack").glob("pack-*.pack"), key=lambda pack: pack.stat().st_size)
    if len(packs) < _MAX_PACKS:
        return
    chosen: list[Path] = []
    objects: dict[bytes, None] = {}
    size = 0
    for pack in packs[:-_LARGEST]:
        size += pack.stat().st_size
        held = _objects(pack.with_suffix(".idx"))
        if size > _JOINED_BYTES or len(objects) + len(held) > _JOINED_OBJECTS:
            break
        if all(repository.odb.read_header(pygit2.Oid(raw=oid))[1] <= _OBJECT_BYTES for oid in held):
            chosen.append(pack)
            objects.update(dict.fromkeys(held))
    if len(chosen) < 2:
        return
    # One of them holds all where a fetch was killed just here, with the old ones still beside the new one.
    joined = next((pack for pack in chosen if objects.keys() <= set(_objects(pack.with_suffix(".idx")))), None)
    if joined is None:
        builder = pygit2.PackBuilder(repository)
        builder.set_threads(1)
        for oid in objects:
            builder.add(pygit2.Oid(raw=oid))
        builder.write(str(folder / "objects/pack"))
    for pack in chosen:
        if pack != joined:
            # The index first: a pack without one is not read, and is swept away.
            for part in (".idx", ".rev", ".bitmap", ".pack"):
                pack.with_suffix(part).unlink(missing_ok=True)


def _objects(index: Path) -> list[bytes]:
    """The ids that a pack's index lists; none of an index of another version than 2, the only one written since 2008.

    Source: gitformat-pack(5), "Version 2 pack-*.idx files".
    """
    with index.open("rb") as file:
        if file.read(8) != b"\xfftOc\0\0\0\2":
            return []
        (count,) = struct.unpack(">I", file.read(256 * 4)[-4:])
        ids = file.read(count * 20)
    return [ids[at : at + 20] for at in range(0, len(ids), 20)]
