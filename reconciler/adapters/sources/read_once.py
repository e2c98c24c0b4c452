"""A Git URL as a store that is read once: fetched into a bare clone that is kept, and read from there."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from reconciler.adapters.git.fetch import FetchRequest, fetch
from reconciler.adapters.git.snapshot import GitStore
from reconciler.adapters.git.url import GitUrl, check_revision
from reconciler.adapters.store.walk import Taker, as_read
from reconciler.model.fleet import Snapshot


async def fetch_snapshot(
    url: GitUrl,
    rev: str | None,
    clones: Path,
    environ: Mapping[str, str],
    *,
    known: Collection[str] = (),
    take: Taker = as_read,
    tell: Callable[[str], None],
) -> Snapshot:
    """Return the store at a branch, tag or full commit id of a server; None: its default branch.

    `clones`: the folder of our clones, so that the next fetch brings only what is new. `known`: what the caller has
    parsed already, by `memo_key`; such a file comes without its data. `take`: gets the others one by one. `tell`:
    called with what a fetch that takes a while waits for, or has brought.

    Raises:
        RevisionNotFound: the server has no such revision, or the revision no such folder.
        StoreError: the server cannot be used, or the clone cannot be written.
    """
    wanted = check_revision(rev) if rev is not None else None
    # One reference for each revision: two commands side by side never read each other's commit.
    key = hashlib.sha256((wanted or "HEAD").encode()).hexdigest()[:16]
    folder = clone_of(url, clones)
    request = FetchRequest(url=url, rev=wanted, folder=folder, into=f"refs/fleet/read/{key}")
    fetched = await fetch(request, environ, tell=tell)
    return GitStore(folder).snapshot(fetched.commit, url.subdir, known, take)


def clone_of(url: GitUrl, clones: Path) -> Path:
    """Return the folder of a URL's clone."""
    return clones / url.digest
