"""The bare clone on the disk: the lock that one fetch at a time holds, and what a killed fetch left in it."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pygit2

from reconciler.errors import StoreError

_TOLD_S: Final = 1.0
_LOOK_S: Final = 0.05
_STALE_S: Final = 60.0
"""A lock of a reference is held for milliseconds."""
_UNFINISHED: Final = ("pack_git2_*", "tmp_*", ".tmp-*", "*.keep")
"""Temporary files of git, and of libgit2 before version 0.2, while a pack comes in."""
_PACKS_MAX: Final = 64


@contextlib.contextmanager
def locked(folder: Path, tell: Callable[[int], None], stop: threading.Event) -> Iterator[int]:
    """Return the file descriptor of the lock: the clone is ours until it and its copies in other processes are closed.

    `tell`: called after each second of waiting, with the process that has it, 0 when that is not known.

    Raises:
        StoreError: `stop` was set.
    """
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        told_s = time.monotonic()
        while not _is_taken(descriptor):
            if stop.wait(_LOOK_S):
                raise StoreError("the fetch was stopped")
            if time.monotonic() - told_s >= _TOLD_S:
                told_s = time.monotonic()
                written = os.pread(descriptor, 20, 0)
                tell(int(written) if written.isdigit() else 0)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


def _is_taken(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def prepare(folder: Path, into: str) -> None:
    """Create a missing clone, and remove what killed fetches left. Only for the holder of its lock.

    `into`: the reference that only fetches write.
    """
    if not (folder / "HEAD").exists():
        # Made beside it and moved there, so that one that is half made is never met again.
        begun = folder.with_name(f"{folder.name}.new")
        shutil.rmtree(begun, ignore_errors=True)
        # A store may hold Secrets: only its owner may read our copy.
        begun.mkdir(mode=0o700)
        pygit2.init_repository(str(begun), bare=True).free()
        for path in begun.rglob("*"):
            path.chmod(path.stat().st_mode & 0o700)
        shutil.rmtree(folder, ignore_errors=True)
        begun.rename(folder)
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


def has_many_packs(folder: Path) -> bool:
    """Return whether some packs should become one: each fetch adds one, and each read searches all."""
    return len(list((folder / "objects/pack").glob("pack-*.pack"))) >= _PACKS_MAX


@contextlib.contextmanager
def private_folder(folder: Path) -> Iterator[Path]:
    """Return an empty folder beside the clone for the programs' files; one that a killed fetch left is emptied."""
    home = folder.with_name(f"{folder.name}.home")
    shutil.rmtree(home, ignore_errors=True)
    home.mkdir(mode=0o700)
    try:
        yield home
    finally:
        shutil.rmtree(home, ignore_errors=True)
