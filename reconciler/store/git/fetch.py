"""Bring a branch, tag or commit of a Git server into a bare clone, with `git`; one fetch at a time holds its lock."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import pygit2
from msgspec import Struct

from reconciler.errors import RevisionNotFound, StoreError
from reconciler.store.git.remote_git import FetchSession, FetchTimeouts, Remote, programs_on
from reconciler.store.git.repository import FAULTS, peeled, skip_unreadable_settings, using_repository
from reconciler.store.git.url import GitUrl, access_from, choose

_REPORT_S: Final = 1.0
_CHECK_S: Final = 0.05
_STALE_S: Final = 60.0
"""A lock of a reference is held for milliseconds."""
_UNFINISHED: Final = ("pack_git2_*", "tmp_*", ".tmp-*", "*.keep")
"""Temporary files of git, and of libgit2 before version 0.2, while a pack comes in."""
_PACKS_MAX: Final = 64


@contextlib.contextmanager
def locked(folder: Path, tell: Callable[[str], None], stop: threading.Event) -> Iterator[int]:
    """Return the file descriptor of the lock: the clone is ours until it and its copies in other processes are closed.

    `tell`: called after each second of waiting, with the process that has it where that is known.
    Raises StoreError: `stop` was set.
    """
    folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        told_s = time.monotonic()
        while True:
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            if stop.wait(_CHECK_S):
                raise StoreError("the fetch was stopped")
            if time.monotonic() - told_s >= _REPORT_S:
                told_s = time.monotonic()
                written = os.pread(descriptor, 20, 0)
                who = f"process {int(written)}" if written.isdigit() and int(written) else "another process"
                tell(f"waiting for {who}, which fetches into the same clone")
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield descriptor
    finally:
        os.close(descriptor)


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
        skip_unreadable_settings()
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


_ALL: Final = ("+refs/heads/*:refs/fleet/heads/*", "+refs/tags/*:refs/fleet/tags/*")


class Fetched(NamedTuple):
    """The server's commit, or the digest of the artifact. `reference` is the full name of the branch or tag.

    Of a commit id it is empty.
    """

    commit: str
    reference: str


class FetchRequest(Struct, frozen=True, kw_only=True):
    """A request to fetch. `rev` None: the default branch. `into`: the reference of the clone to write."""

    url: GitUrl
    rev: str | None
    folder: Path
    into: str


async def fetch(
    wanted: FetchRequest,
    environ: Mapping[str, str],
    *,
    tell: Callable[[str], None] = lambda _: None,
    patience: FetchTimeouts = FetchTimeouts(),  # noqa: B008 - a value
) -> Fetched:
    """Ask the server, and make the clone hold the commit. The event loop stays free; cancelling ends all processes.

    `tell`: called about each second with what is waited for or has come, as the end of a sentence.

    Raises:
        RevisionNotFound: the server has no such branch, tag or commit, or no commit at all.
        StoreError: the server or its answer is unusable; the message says why and holds no credentials.
    """
    loop, stop = asyncio.get_running_loop(), threading.Event()

    def hear(text: str) -> None:
        loop.call_soon_threadsafe(tell, text)

    # A thread of its own: it may be busy for hours.
    with ThreadPoolExecutor(1, "fetch") as thread:
        job = loop.run_in_executor(thread, _fetch, wanted, environ, hear, patience, stop)
        try:
            return await asyncio.shield(job)
        except asyncio.CancelledError:
            stop.set()
            await asyncio.wait({job})
            job.exception()
            raise


def _fetch(
    wanted: FetchRequest,
    environ: Mapping[str, str],
    tell: Callable[[str], None],
    patience: FetchTimeouts,
    stop: threading.Event,
) -> Fetched:
    try:
        if wanted.url.is_artifact:
            # Imported here: aiohttp, which few need.
            from reconciler.store.git.artifact_commits import bring_artifact  # noqa: PLC0415

            with locked(wanted.folder, tell, stop):
                prepare(wanted.folder, wanted.into)
                digest = bring_artifact(wanted.folder, wanted.url, wanted.rev, environ, tell, stop)
                return Fetched(digest, f"sha256:{digest}")
        access = access_from(environ, wanted.url)
        programs = programs_on(environ, wanted.url)
        with locked(wanted.folder, tell, stop) as lock, private_folder(wanted.folder) as home:
            session = FetchSession(home, lock, patience, stop)
            remote = Remote(wanted.url, wanted.folder, access, programs, session, tell)
            prepare(wanted.folder, wanted.into)
            reference, commit = choose(remote.heads(), wanted.rev)
            with using_repository(wanted.folder) as repository:
                former: Any = repository.references.get(wanted.into)
                is_led_to = former is not None and str(former.target) == commit
                is_there = commit in repository.odb and (not reference or is_led_to)
            if not is_there:
                remote.bring([f"+{reference}:{wanted.into}"] if reference else _ALL)
                # Each fetch adds a pack, and each read searches all.
                if len(list((wanted.folder / "objects/pack").glob("pack-*.pack"))) >= _PACKS_MAX:
                    remote.join_packs()
            with using_repository(wanted.folder) as repository:
                if not reference:
                    if commit not in repository.odb:
                        raise RevisionNotFound(f"no branch or tag leads to a commit {commit}")
                    repository.references.create(wanted.into, pygit2.Oid(hex=commit), force=True)
                result: Any = repository.references.get(wanted.into)
                if result is None:
                    raise RevisionNotFound(f"{reference} went away while it was fetched")
                return Fetched(str(peeled(repository, result.resolve().target).id), reference)
    except (RevisionNotFound, StoreError) as error:
        raise type(error)(f"{wanted.url}: {error}") from error
    except FAULTS as error:
        is_full = isinstance(error, OSError) and error.errno == errno.ENOSPC
        remedy = "; free some space there, or inodes (`df -i`)" if is_full else ""
        if isinstance(error, PermissionError):
            remedy = f"; let user {os.geteuid()} have it, or remove it: it is fetched again"
        raise StoreError(f"{wanted.url}: the clone in {wanted.folder} cannot be used: {error}{remedy}") from error
