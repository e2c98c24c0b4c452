"""Bring a branch, tag or commit of a Git server into a bare clone, with `git`."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, NamedTuple

import pygit2
from msgspec import Struct

from reconciler.errors import RevisionNotFound, StoreError
from reconciler.store.git.clone import has_many_packs, locked, prepare, private_folder
from reconciler.store.git.remote_git import FetchSession, Patience, Remote, programs_on
from reconciler.store.git.repository import opened
from reconciler.store.git.url import GitUrl, access_from, choose

_FAULTS: Final = (pygit2.GitError, KeyError, ValueError, OSError)
_ALL: Final = ("+refs/heads/*:refs/fleet/heads/*", "+refs/tags/*:refs/fleet/tags/*")


class Fetched(NamedTuple):
    """The server's commit. `reference` is the branch's or tag's full name, empty for a commit id."""

    commit: str
    reference: str


class FetchRequest(Struct, frozen=True, kw_only=True):
    """A request to fetch. `rev` None: the default branch. `into`: the reference of the clone to write."""

    url: GitUrl
    rev: str | None
    folder: Path
    into: str


def _tell_nobody(text: str) -> None:
    pass


async def fetch(
    wanted: FetchRequest,
    environ: Mapping[str, str],
    *,
    tell: Callable[[str], None] = _tell_nobody,
    patience: Patience = Patience(),  # noqa: B008 - a value
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
    patience: Patience,
    stop: threading.Event,
) -> Fetched:
    access = access_from(environ, wanted.url)
    try:
        programs = programs_on(environ, wanted.url)
        with (
            locked(wanted.folder, lambda pid: tell(_waiting(pid)), stop) as lock,
            private_folder(wanted.folder) as home,
        ):
            session = FetchSession(home, lock, patience, stop)
            remote = Remote(wanted.url, wanted.folder, access, programs, session, tell)
            return _bring(wanted, remote)
    except (RevisionNotFound, StoreError) as error:
        raise type(error)(f"{wanted.url}: {error}") from error
    except _FAULTS as error:
        raise StoreError(f"{wanted.url}: the clone in {wanted.folder} cannot be used: {error}") from error


def _bring(wanted: FetchRequest, remote: Remote) -> Fetched:
    """Fetch the server's commit into the clone, and return it."""
    prepare(wanted.folder, wanted.into)
    heads = remote.heads()
    reference = choose(heads, wanted.rev)
    commit = heads[reference].oid if reference else wanted.rev or ""
    with opened(wanted.folder) as repository:
        is_there = commit in repository and (not reference or _leads_to(repository, wanted.into) == commit)
    if not is_there:
        remote.bring([f"+{reference}:{wanted.into}"] if reference else _ALL)
        if has_many_packs(wanted.folder):
            remote.join_packs()
    with opened(wanted.folder) as repository:
        if not reference:
            if commit not in repository:
                raise RevisionNotFound(f"no branch or tag leads to a commit {commit}")
            repository.references.create(wanted.into, pygit2.Oid(hex=commit), force=True)
        found: Any = repository.references.get(wanted.into)
        if found is None:
            raise RevisionNotFound(f"{reference} went away while it was fetched")
        return Fetched(str(found.peel(pygit2.Commit).id), reference)


def _leads_to(repository: pygit2.Repository, name: str) -> str:
    """The object that a reference of the clone leads to; empty: there is none."""
    found: Any = repository.references.get(name)
    return str(found.target) if found is not None else ""


def _waiting(pid: int) -> str:
    return f"waiting for {f'process {pid}' if pid else 'another process'}, which fetches into the same clone"
