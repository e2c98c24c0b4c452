"""The active content for one command: the last good content of unreadable files, as in the service."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from reconciler.adapters.sources.location import StoreLocation
    from reconciler.adapters.sources.past import StorePast
    from reconciler.adapters.store.copy import StoreCopy
    from reconciler.model.fleet import Fleet, Snapshot, StoreFile
    from reconciler.stages.fleet import ParsedFile


class LastGood:
    """Gives a command the active fleet. A directory's content is kept beside the journal."""

    def __init__(self, journal: Path | None) -> None:
        """`journal`: the one that was named; None: that of the fleet."""
        self._journal = journal
        self._copy: StoreCopy | None = None
        self._kept: tuple[StoreCopy, Snapshot, Mapping[str, str]] | None = None

    def in_force(
        self, fleet: Fleet, snapshot: Snapshot, files: Mapping[str, ParsedFile], store: str, *, as_directory: bool
    ) -> Fleet:
        """Return the fleet with the last good content of files that are broken, or gone though nobody deleted them.

        `fleet`: from all files as they are. `files`: content of each, by `memo_key`.
        """
        from reconciler.adapters.git.url import is_git_url
        from reconciler.adapters.sources.location import locate_store

        if is_git_url(store):
            past = _clone_past(store)
        else:
            location = locate_store(store, as_directory=as_directory)
            if location.repository is not None and snapshot.revision.startswith("dir:") and not fleet.frozen:
                return fleet  # Most of all that people compare: nothing is imported for it.
            past = _past(location, snapshot) if location.repository is not None else self._copied(location, fleet)
        if past is None:
            return fleet
        paths = {file.path for file in snapshot.files}
        is_whole = not fleet.frozen and not past.earlier(snapshot.revision, paths, ()).good
        if is_whole and not past.good_blobs(snapshot.revision, ()):
            self._keep(snapshot, {file.path: file.blob for file in snapshot.files})
            return fleet
        from reconciler.daemon.loop.store_in_force import StoreInForce

        store_in_force = StoreInForce({}, past, _Parsed(files), is_followed=False)
        found = store_in_force.parse(snapshot)
        self._keep(snapshot, store_in_force.good_blobs)
        return found

    def save(self, *, is_applied: bool) -> None:
        """Save the applied content of a directory for the next run. A failure to save is printed to stderr."""
        if self._kept is None or not is_applied:
            return
        from reconciler.cli.printing import remark
        from reconciler.errors import StoreError

        copy, snapshot, good_blobs = self._kept
        try:
            copy.save(snapshot, good_blobs)
        except StoreError as error:
            remark(f"warning: {error}; what breaks in it later is frozen")

    def _copied(self, location: StoreLocation, fleet: Fleet) -> StorePast | None:
        from reconciler.adapters.sources.past import DirectoryPast
        from reconciler.adapters.store.copy import StoreCopy
        from reconciler.cli.journal_choice import journal_for

        journal = self._journal or journal_for(fleet, os.environ)
        if journal is None:
            return None
        self._copy = StoreCopy(journal.parent, location.path)
        return DirectoryPast(location.path, self._copy)

    def _keep(self, snapshot: Snapshot, good_blobs: Mapping[str, str]) -> None:
        self._kept = (self._copy, snapshot, good_blobs) if self._copy is not None else None


class _Parsed:
    """The files that a command has parsed, in place of a cache."""

    def __init__(self, files: Mapping[str, ParsedFile]) -> None:
        self._files = files

    def load(self, files: Iterable[StoreFile]) -> Mapping[str, ParsedFile]:
        return self._files

    def save(self, parsed: Mapping[str, ParsedFile]) -> None:
        """Nothing: it is kept already."""


def _clone_past(store: str) -> StorePast | None:
    from reconciler.adapters.git.url import parse_git_url
    from reconciler.adapters.sources.past import GitPast
    from reconciler.adapters.sources.read_once import clone_of
    from reconciler.cli.reading import cache_folder

    url, kept = parse_git_url(store), cache_folder()
    return GitPast(clone_of(url, kept / "git"), url.subdir) if kept is not None else None


def _past(location: StoreLocation, snapshot: Snapshot) -> StorePast:
    from reconciler.adapters.sources.past import GitPast, WorkTreePast

    assert location.repository is not None, "it is asked of a repository alone"
    if snapshot.revision.startswith("dir:"):
        return WorkTreePast(location.path, location.repository, location.subdir)
    return GitPast(location.repository, location.subdir)
