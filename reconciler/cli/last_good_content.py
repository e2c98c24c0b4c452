"""Revisions of before for one command: the last good content of unreadable files, and those that a Rollout needs."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from reconciler.api.fleet import Fleet, Snapshot
from reconciler.api.rollouts import Ancestry
from reconciler.cli.cluster_access import journal_for
from reconciler.cli.printing import remark
from reconciler.cli.store_reading import cache_folder, local_copy
from reconciler.controller.rollouts.rollout_inputs import RevisionsInForce
from reconciler.errors import StoreError
from reconciler.fleet import LAST_GOOD, ParsedFile, memo_key, parse_file
from reconciler.store.directory import DirectoryPast, StorePast
from reconciler.store.git.url import GitUrl, is_git_url, parse_git_url
from reconciler.store.location import StoreLocation
from reconciler.store.scan import StoreCopy

if TYPE_CHECKING:
    from reconciler.store.git.git_past import GitPast


class LastGood:
    """Gives a command the active fleet. A directory's content is kept beside the journal."""

    def __init__(self, journal: Path | None) -> None:
        """`journal`: the one that was named; None: that of the fleet."""
        self._journal = journal
        self._copy: StoreCopy | None = None
        self._to_save: tuple[StoreCopy, Snapshot, Mapping[str, str]] | None = None

    def in_force(
        self, fleet: Fleet, snapshot: Snapshot, files: dict[str, ParsedFile], store: str, *, as_directory: bool
    ) -> tuple[Fleet, Snapshot]:
        """Return both with the last good content of broken or lost files. `files`: gets each content, by `memo_key`."""
        if is_git_url(store) and cache_folder() is None:
            return fleet, snapshot
        past: StorePast | None
        location, is_files = local_copy(store, as_directory=as_directory), snapshot.revision.startswith("dir:")
        if location.repository is None:
            past = self._copied(location, fleet)
        else:
            from reconciler.store.git.git_past import GitPast, WorkTreePast

            past = (WorkTreePast if is_files else GitPast)(location.repository, location.subdir)
        if past is None:
            return fleet, snapshot
        blobs: Mapping[str, str] = {file.path: file.blob for file in snapshot.files}
        is_whole = not fleet.frozen and not past.earlier(snapshot.revision, blobs.keys(), ()).good
        if not is_whole or past.good_blobs(snapshot.revision, ()):
            from reconciler.controller.store_in_force import StoreInForce

            store_in_force = StoreInForce({}, past, parsed=files, is_followed=False)
            fleet, blobs = store_in_force.parse(snapshot), store_in_force.good_blobs
        self._to_save = (self._copy, snapshot, blobs) if self._copy is not None else None
        older = (problem.source.path for problem in fleet.problems if problem.code == LAST_GOOD)
        good = [file for path in older if (file := past.read_blob(path, blobs.get(path, ""))) is not None]
        files |= {memo_key(file): parse_file(file) for file in good}
        in_force = {file.path: file for file in (*snapshot.files, *good)}
        return fleet, replace(snapshot, files=tuple(in_force.values())) if good else snapshot

    def save(self, *, is_applied: bool) -> None:
        """Save the applied content of a directory for the next run. A failure to save is printed to stderr."""
        if self._to_save is None or not is_applied:
            return
        copy, snapshot, good_blobs = self._to_save
        try:
            copy.save(snapshot, good_blobs)
        except StoreError as error:
            remark(f"warning: {error}; what breaks in it later is frozen")

    def _copied(self, location: StoreLocation, fleet: Fleet) -> StorePast | None:
        journal = self._journal or journal_for(fleet, os.environ)
        if journal is None:
            return None
        self._copy = StoreCopy(journal.parent, location.path)
        return DirectoryPast(location.path, self._copy)


def older_revisions(store: str) -> RevisionsInForce | None:
    """The revisions of the store; None where it has none. Nothing of them is read before it is asked for."""
    location = local_copy(store)
    if location.repository is None:
        return None
    url = parse_git_url(store) if is_git_url(store) and cache_folder() is not None else None
    source = _Repository(location, location.repository, url)
    return RevisionsInForce(source, source.fleet_at)


class _Repository:
    """A repository on this machine: a person's, or the clone of a URL, into which a commit may still be fetched."""

    def __init__(self, location: StoreLocation, folder: Path, url: GitUrl | None) -> None:
        self._location = location
        self._folder = folder
        self._url = url

    @cached_property
    def _git(self) -> GitPast:
        # Git takes as long as all the rest of a small command.
        from reconciler.store.git.git_past import GitPast

        return GitPast(self._folder, self._location.subdir)

    def resolve(self, texts: Collection[str]) -> dict[str, str]:
        """Return the commits that texts name: HEAD if the files lie as it has them."""
        if "HEAD" in texts:
            from reconciler.store.git.snapshot import GitStore
            from reconciler.store.source import uncommitted

            with suppress(StoreError), GitStore(self._folder) as repository:
                return {} if uncommitted(self._location) else {"HEAD": repository.resolve("HEAD")}
        return self._git.resolve(texts)

    def ancestry(self, revisions: Collection[str], head: str) -> Ancestry:
        """Return the ancestry. Uncommitted files come after the checked-out commit."""
        from reconciler.store.git.snapshot import GitStore

        if head.startswith("dir:"):
            with suppress(StoreError), GitStore(self._folder) as repository:
                head = repository.resolve("HEAD")
        return self._git.ancestry(revisions, head)

    def keep(self, revisions: Collection[str]) -> None:
        """Do nothing: the service keeps its own revisions, and the repository belongs to the person."""

    async def fleet_at(self, revision: str) -> Fleet | None:
        """Return the fleet of a revision, with the last good content of files that it broke."""
        from reconciler.controller.store_in_force import StoreInForce

        snapshot = await asyncio.to_thread(self._git.recall, revision)
        if snapshot is None and self._url is not None:
            from reconciler.store.url_source import fetch_snapshot

            with suppress(StoreError):
                folder = self._folder.parent
                snapshot = await fetch_snapshot(self._url, revision, folder, os.environ, tell=lambda _: None)
        parse = StoreInForce({}, self._git).parse
        return await asyncio.to_thread(parse, snapshot) if snapshot is not None else None
