"""Older revisions of the store that a command was given, for clusters that are behind in a Rollout."""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.adapters.git.url import GitUrl
    from reconciler.daemon.rollouts.revisions_in_force import RevisionsInForce
    from reconciler.model.fleet import Fleet, Snapshot
    from reconciler.model.rollouts.lineage import Lineage


def older_revisions(store: str, fleet: Fleet) -> RevisionsInForce | None:
    """The revisions of the store; None where it has no Rollout, or no revisions."""
    if not fleet.rollouts:
        # Before anything is imported: Git takes as long as all the rest of a small command.
        return None
    from reconciler.adapters.git.url import is_git_url, parse_git_url
    from reconciler.adapters.sources.location import locate_store
    from reconciler.adapters.sources.read_once import clone_of
    from reconciler.cli.reading import cache_folder
    from reconciler.daemon.rollouts.revisions_in_force import RevisionsInForce

    if is_git_url(store):
        url, kept = parse_git_url(store), cache_folder()
        source = _Repository(clone_of(url, (kept or Path()) / "git"), url.subdir, url if kept is not None else None)
        return RevisionsInForce(source, source.fleet_at)
    location = locate_store(store)
    if location.repository is None:
        return None
    source = _Repository(location.repository, location.subdir, None)
    return RevisionsInForce(source, source.fleet_at)


class _Repository:
    """A repository on this machine: a person's, or the clone of a URL, into which a commit may still be fetched."""

    def __init__(self, folder: Path, subdir: str, url: GitUrl | None) -> None:
        from reconciler.adapters.git.history import OlderRevisions

        self._folder = folder
        self._subdir = subdir
        self._url = url
        self._older = OlderRevisions()

    def lineage(self, revisions: Collection[str], head: str) -> Lineage:
        """Return the ancestry. Uncommitted files come after the checked-out commit."""
        from reconciler.adapters.git.snapshot import GitStore
        from reconciler.errors import StoreError

        if not head.startswith("dir:"):
            return self._older.lineage(self._folder, revisions, head)
        try:
            with GitStore(self._folder) as repository:
                tip = repository.resolve("HEAD")
        except StoreError:
            tip = head
        return self._older.lineage(self._folder, revisions, tip)

    def resolve(self, texts: Collection[str]) -> dict[str, str]:
        """The commits that texts name."""
        from reconciler.adapters.git.history import resolve_revisions

        return resolve_revisions(self._folder, texts)

    def keep(self, revisions: Collection[str]) -> None:
        """Do nothing: the service keeps its own revisions, and the repository belongs to the person."""

    async def fleet_at(self, revision: str) -> Fleet | None:
        """The fleet of a commit; None: it is not there."""
        import asyncio

        snapshot = await asyncio.to_thread(self._snapshot, revision)
        if snapshot is None and self._url is not None:
            snapshot = await self._fetched(revision)
        return await asyncio.to_thread(self._in_force, snapshot) if snapshot is not None else None

    def _in_force(self, snapshot: Snapshot) -> Fleet:
        """Return the fleet of a revision, with the last good content of files that it broke."""
        from reconciler.adapters.sources.past import GitPast
        from reconciler.daemon.loop.store_in_force import StoreInForce

        return StoreInForce({}, GitPast(self._folder, self._subdir)).parse(snapshot)

    def _snapshot(self, revision: str) -> Snapshot | None:
        from reconciler.adapters.git.snapshot import GitStore
        from reconciler.errors import StoreError

        try:
            with GitStore(self._folder) as repository:
                return repository.snapshot(revision, self._subdir, ())
        except StoreError:
            return None

    async def _fetched(self, revision: str) -> Snapshot | None:
        from reconciler.adapters.sources.read_once import fetch_snapshot
        from reconciler.errors import StoreError

        assert self._url is not None, "only a clone is fetched into"
        try:
            return await fetch_snapshot(self._url, revision, self._folder.parent, os.environ, tell=lambda _: None)
        except StoreError:
            return None
