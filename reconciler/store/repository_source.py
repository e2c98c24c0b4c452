"""A Git repository on this machine that is followed: the commit that a name leads to, looked up every second."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.api.fleet import Snapshot
from reconciler.clock import Clock, wait_for
from reconciler.errors import StoreError
from reconciler.store.git.git_past import GitRevisions, SnapshotReader
from reconciler.store.git.repository import reference_folders
from reconciler.store.git.snapshot import GitStore
from reconciler.store.local_source import LocalSource, Watch
from reconciler.store.location import StoreKind, StoreLocation, locate_store, refuse_unsettled

_LOOK_S: Final = 1.0


class _SeenCommit(NamedTuple):
    """A commit, and where it was found: the path may lead to another work tree by now."""

    commit: str
    repository: Path
    subdir: str


class RepositorySource(GitRevisions, LocalSource):
    """Follows a revision of a work tree or bare repository, or whatever branch is checked out.

    Whoever can rewrite a branch here works on this machine and means it, so a rewritten branch is followed; a URL is
    another matter (`source_url`). The repository is a person's: no reference of ours may appear in it, or keep deleted
    commits. While its reflog names it, Git keeps a commit that no branch has any more, by default for 30 days. One that
    a garbage collection takes is missing then, and its clusters stay as they are.
    """

    def __init__(self, location: StoreLocation, rev: str | None, clock: Clock) -> None:
        """Begin to watch its references. Without a revision: the checked-out one, or HEAD of a bare repository."""
        assert location.repository is not None
        GitRevisions.__init__(self, location.repository, location.subdir)
        LocalSource.__init__(self, clock)
        self._location = self._found = location
        self._rev = rev
        self._watched = location.repository
        self._watches = self._watch()

    def _watch(self) -> list[Watch]:
        return [
            Watch([folder], self.hint, self.clock, recursive=recursive)
            for folder, recursive in reference_folders(self._watched)
        ]

    @property
    def name(self) -> str:
        """The absolute path of the work tree's folder, or of the bare repository; a link on the way stays one."""
        return str(self._location.path.absolute())

    @property
    def description(self) -> str:
        """Return the repository and the followed revision."""
        return f"{self._location.kind} {self._location} at {self._rev or 'HEAD'}"

    def look(self) -> _SeenCommit:
        """The commit id: 0.4 ms. Links are followed and the repository is opened anew, so that a swap is seen."""
        location = self._found = locate_store(str(self._location.path), known=self._found)
        if location.repository is None:
            raise StoreError(f"{location}: is no Git work tree any more; with --dir it would be read as it lies")
        with GitStore(location.repository) as store:
            if self._rev is not None or location.kind is not StoreKind.WORK_TREE:
                return _SeenCommit(store.resolve(self._rev or "HEAD"), location.repository, location.subdir)
            refuse_unsettled(location, store)
            commit = store.resolve("HEAD")
            # An operation that began or ended meanwhile may have moved HEAD to an intermediate commit.
            refuse_unsettled(location, store)
            return _SeenCommit(commit, location.repository, location.subdir)

    def load(self, seen: _SeenCommit) -> Snapshot:
        """The files of the commit."""
        if seen.subdir != self.past.subdir:
            self._reader = SnapshotReader(seen.subdir)
        self.past.repository, self.past.subdir = seen.repository, seen.subdir
        with GitStore(seen.repository) as store:
            return self._reader.read(store, seen.commit)

    def unripe_s(self, seen: _SeenCommit) -> float | None:
        """A commit id is never too young."""
        return None

    async def pause(self) -> None:
        """Until a reference was written, or a second."""
        if self._watched != self.past.repository:
            await self.close()
            self._watched = self.past.repository
            self._watches = self._watch()
        await wait_for(self.hint, _LOOK_S, self.clock)

    async def close(self) -> None:
        """Stop watching."""
        await asyncio.gather(*(watch.close() for watch in self._watches))
