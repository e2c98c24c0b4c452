"""Sources on this machine, a directory or a Git repository: a cheap look detects changes, hints only bring it forward.

Hints of the kernel that something below a folder changed may come late, twice, or never: of a directory, a scan of
names and stamps is the truth.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from watchfiles import awatch

from reconciler.api.fleet import Snapshot
from reconciler.clock import BackOff, Clock, wait_for
from reconciler.errors import StoreError
from reconciler.store.directory import DirectoryPast, StoreSource, read_directory, store_call
from reconciler.store.git.git_past import GitPast, SnapshotReader
from reconciler.store.git.repository import reference_folders
from reconciler.store.git.snapshot import GitStore
from reconciler.store.location import StoreKind, StoreLocation, locate_store, refuse_unsettled
from reconciler.store.scan import RACY_NS, ScanState, StoreCopy, scan

_BACK_OFF: Final = BackOff(least_s=2.0, most_s=30.0)


class LocalSource(StoreSource):
    """Compares looks. `changed` returns once for every new look; `read` makes its look the known one."""

    def __init__(self, clock: Clock) -> None:
        """Nothing is known yet, so that the first `changed` returns at once."""
        self.hint = asyncio.Event()
        self.clock = clock
        self.snapshot: Snapshot | None = None
        self._reported: Any = None
        self._retry_at_s: float | None = None
        self._failures = 0

    @abstractmethod
    def probe(self) -> Any:
        """Something comparable that differs when the store differs. Runs in a thread; may raise StoreError."""

    @abstractmethod
    def load(self, look: Any) -> Snapshot:
        """The snapshot that goes with a look. Runs in a thread; may raise StoreError."""

    def unripe_s(self, look: Any) -> float | None:
        """In how many seconds to read again because this look is too young to be trusted; None: it is sound."""
        return None

    @abstractmethod
    async def pause(self) -> None:
        """Until a hint, or until the next look is due."""

    async def changed(self) -> None:
        """Return when the store may have changed since it was last read, or a failed reading is due again."""
        while True:
            self.hint.clear()
            look, _ = await self._try_look()
            # No await between this note and the return, so a cancelled call has reported nothing.
            if look != self._reported:
                self._reported = look
                return
            if self.is_due:
                self._retry_at_s = None
                return
            await self.pause()

    async def ask_now(self) -> None:
        """Nothing is asked: each reading looks again."""
        self._retry_at_s = None

    @property
    def is_due(self) -> bool:
        """Return whether a reading that failed, or was too recent to be trusted, is to be tried again."""
        return self._retry_at_s is not None and self.clock.monotonic_s() >= self._retry_at_s

    async def read(self) -> Snapshot | None:
        """The store now; None when it is what the last successful reading gave."""
        self._reported, fault = await self._try_look()
        look = self._reported[0]
        try:
            if fault is not None:
                raise fault
            snapshot: Snapshot = await asyncio.to_thread(store_call, self.name, self.load, look)
        except StoreError:
            self._failures += 1
            self._retry_at_s = self.clock.monotonic_s() + _BACK_OFF.pause_s(self._failures)
            raise
        self._failures = 0
        wait = self.unripe_s(look)
        self._retry_at_s = self.clock.monotonic_s() + wait if wait is not None else None
        before, self.snapshot = self.snapshot, snapshot
        is_same = before and (before.revision, before.problems) == (snapshot.revision, snapshot.problems)
        return None if is_same else snapshot

    async def _try_look(self) -> tuple[tuple[Any, str], StoreError | None]:
        """Return the look, or how it failed: the same failure twice is no change."""
        try:
            return (await asyncio.to_thread(store_call, self.name, self.probe), ""), None
        except StoreError as error:
            return (None, str(error)), error


_QUIET_MS: Final = 20
_LONGEST_MS: Final = 500
_RETRY_S: Final = 5.0


class Watch:
    """Sets `hint` when something changes below the folders, until it is closed.

    A burst gives one hint: when nothing more has come for 20 ms, but after 500 ms at the latest. Where the kernel has
    no watches left (ENOSPC, EMFILE), `fault` says so, and it is tried again now and then; whoever needs to know polls.
    """

    def __init__(self, folders: Iterable[Path], hint: asyncio.Event, clock: Clock, *, recursive: bool = True) -> None:
        self.fault = ""
        self._folders = tuple(folders)
        self._hint = hint
        self._clock = clock
        self._recursive = recursive
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """Stop watching."""
        self._task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._task

    async def _run(self) -> None:
        while True:
            try:
                async for _ in awatch(
                    *self._folders,
                    watch_filter=None,
                    debounce=_LONGEST_MS,
                    step=_QUIET_MS,
                    recursive=self._recursive,
                    ignore_permission_denied=True,
                ):
                    self.fault = ""
                    self._hint.set()
            # watchfiles raises what its Rust part makes of the system's error: OSError or a RuntimeError of its own.
            except (OSError, RuntimeError) as error:
                self.fault = f"no file events ({error})"
            await self._clock.sleep(_RETRY_S)


_SCAN_S: Final = 30.0
_SCAN_WITHOUT_EVENTS_S: Final = 5.0
_TICK_S: Final = 1.0


class DirectorySource(DirectoryPast, LocalSource):
    """Follows the files of a directory as they lie."""

    def __init__(self, root: Path, clock: Clock, state_folder: Path) -> None:
        DirectoryPast.__init__(self, root, StoreCopy(state_folder, root))
        LocalSource.__init__(self, clock)
        self.name = str(root.absolute())
        """A link on the way stays one."""
        self.description = f"directory {root}"
        self._inode = _inode(root)
        self._watch = Watch([root], self.hint, clock)

    @property
    def note(self) -> str:
        """Says so when there are no file events."""
        fault = self._watch.fault
        return f"{fault}; the directory is scanned every {_SCAN_WITHOUT_EVENTS_S:.0f} s instead" if fault else ""

    def probe(self) -> ScanState:
        """Names and stamps of all files: 33 ms for ten thousand."""
        return scan(self._root)

    def load(self, look: ScanState) -> Snapshot:
        """One settled reading. It begins after the look, so what changes in between differs from the look."""
        return read_directory(self._root)

    def unripe_s(self, look: ScanState) -> float | None:
        """A file may change twice within a tick of its file system and keep its stamp."""
        return RACY_NS / 1e9 + 0.1 if look.racy else None

    async def pause(self) -> None:
        """Until a hint, a swap of the root, the end of the racy time, or half a minute."""
        limit_s = _SCAN_WITHOUT_EVENTS_S if self._watch.fault else _SCAN_S
        until_s = self.clock.monotonic_s() + limit_s
        while self.clock.monotonic_s() < until_s:
            # A watch stays with the folder that it began with, though another one may carry its name by now.
            if _inode(self._root) != self._inode:
                self._inode = _inode(self._root)
                await self._watch.close()
                self._watch = Watch([self._root], self.hint, self.clock)
                return
            if await wait_for(self.hint, _TICK_S, self.clock) or self.is_due:
                return

    def accept(self, revision: str, good_blobs: Mapping[str, str]) -> None:
        """Keep a copy of the files."""
        if self.snapshot is not None and self.snapshot.revision == revision:
            self._copy.save(self.snapshot, good_blobs)

    def recall(self, revision: str) -> Snapshot | None:
        """The copy, when it is of that revision."""
        return self._copy.snapshot(revision)

    async def close(self) -> None:
        """Stop watching."""
        await self._watch.close()


def _inode(root: Path) -> tuple[int, int] | None:
    try:
        status = root.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


_CHECK_S: Final = 1.0


_SeenCommit = tuple[str, Path, str]
"""A commit, and the repository and folder where it was found: the path may lead to another work tree by now."""


class RepositorySource(GitPast, LocalSource):
    """Follows a revision of a work tree or bare repository, or whatever branch is checked out.

    Whoever can rewrite a branch here works on this machine and means it, so a rewritten branch is followed; a URL is
    another matter (`source_url`). The repository is a person's: no reference of ours may appear in it, or keep deleted
    commits. While its reflog names it, Git keeps a commit that no branch has any more, by default for 30 days. One that
    a garbage collection takes is missing then, and its clusters stay as they are.
    """

    def __init__(self, location: StoreLocation, rev: str | None, clock: Clock) -> None:
        """Begin to watch its references. Without a revision: the checked-out one, or HEAD of a bare repository."""
        assert location.repository is not None
        GitPast.__init__(self, location.repository, location.subdir)
        LocalSource.__init__(self, clock)
        self.name = str(location.path.absolute())
        """The folder of the work tree, or of the bare repository; a link on the way stays one."""
        self.description = f"{location.kind} {location} at {rev or 'HEAD'}"
        self._location = self._located = location
        self._rev = rev
        self._watched = location.repository
        self._watches = self._watch()

    def _watch(self) -> list[Watch]:
        return [
            Watch([folder], self.hint, self.clock, recursive=recursive)
            for folder, recursive in reference_folders(self._watched)
        ]

    def probe(self) -> _SeenCommit:
        """The commit id: 0.4 ms. Links are followed and the repository is opened again, so that a swap is seen."""
        location = self._located = locate_store(str(self._location.path), known=self._located)
        if location.repository is None:
            raise StoreError(f"{location}: is no Git work tree any more; with --dir it would be read as it lies")
        with GitStore(location.repository) as store:
            if self._rev is not None or location.kind is not StoreKind.WORK_TREE:
                return store.resolve(self._rev or "HEAD"), location.repository, location.subdir
            refuse_unsettled(location, store)
            commit = store.resolve("HEAD")
            # An operation that began or ended meanwhile may have moved HEAD to an intermediate commit.
            refuse_unsettled(location, store)
            return commit, location.repository, location.subdir

    def load(self, look: _SeenCommit) -> Snapshot:
        """The files of the commit."""
        commit, repository, subdir = look
        if subdir != self.subdir:
            self._reader = SnapshotReader(subdir)
        self.repository, self.subdir = repository, subdir
        with GitStore(repository) as store:
            return self._reader.read(store, commit)

    async def pause(self) -> None:
        """Until a reference was written, or a second."""
        if self._watched != self.repository:
            await self.close()
            self._watched = self.repository
            self._watches = self._watch()
        await wait_for(self.hint, _CHECK_S, self.clock)

    async def close(self) -> None:
        """Stop watching."""
        await asyncio.gather(*(watch.close() for watch in self._watches))
