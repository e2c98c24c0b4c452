"""Sources on this machine: a cheap look detects changes, hints only bring it forward; and a directory that is followed.

Hints of the kernel that something below a folder changed may come late, twice, or never: of a directory, a scan of
names and stamps is the truth.
"""

from __future__ import annotations

import asyncio
import contextlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from watchfiles import awatch

from reconciler.api.fleet import Snapshot
from reconciler.api.rollouts import Lineage
from reconciler.clock import BackOff, Clock, wait_for
from reconciler.errors import StoreError
from reconciler.store.directory import DirectoryPast, read_directory, store_fault
from reconciler.store.scan import RACY_NS, ScanState, StoreCopy, scan

_BACK_OFF: Final = BackOff(least_s=2.0, most_s=30.0)


@dataclass(frozen=True, slots=True)
class FailedScan:
    """A look that failed, and how: the same failure twice is no change."""

    message: str
    error: StoreError = field(compare=False)


class LocalSource(ABC):
    """Compares looks. `changed` returns once for every new look; `read` makes its look the known one."""

    def __init__(self, clock: Clock) -> None:
        """Nothing is known yet, so that the first `changed` returns at once."""
        self.hint = asyncio.Event()
        self.clock = clock
        self.snapshot: Snapshot | None = None
        self._told: Any = None
        self._again_s: float | None = None
        self._failures = 0

    @property
    @abstractmethod
    def name(self) -> str:
        """The store as people name it."""

    @property
    def note(self) -> str:
        """Nothing."""
        return ""

    @abstractmethod
    def look(self) -> Any:
        """Something comparable that differs when the store differs. Runs in a thread; may raise StoreError."""

    @abstractmethod
    def load(self, seen: Any) -> Snapshot:
        """The snapshot that goes with a look. Runs in a thread; may raise StoreError."""

    @abstractmethod
    def unripe_s(self, seen: Any) -> float | None:
        """In how many seconds to read again because this look is too young to be trusted; None: it is sound."""

    @abstractmethod
    async def pause(self) -> None:
        """Until a hint, or until the next look is due."""

    async def changed(self) -> None:
        """Return when the store may have changed since it was last read, or a failed reading is due again."""
        while True:
            self.hint.clear()
            seen = await asyncio.to_thread(self._look)
            # No await between this note and the return, so a cancelled call has reported nothing.
            if seen != self._told:
                self._told = seen
                return
            if self.is_due:
                self._again_s = None
                return
            await self.pause()

    async def ask_now(self) -> None:
        """Nothing is asked: each reading looks anew."""
        self._again_s = None

    def accept(self, revision: str, good_blobs: Mapping[str, str]) -> None:  # noqa: B027 - not every source keeps one
        """Nothing: a repository keeps its commits."""

    def keep(self, revisions: Collection[str]) -> None:  # noqa: B027 - likewise
        """Nothing: a directory has no revisions, and a person's repository no reference of ours."""

    @property
    def is_due(self) -> bool:
        """Return whether a reading that failed, or was too recent to be trusted, is to be tried again."""
        return self._again_s is not None and self.clock.monotonic_s() >= self._again_s

    async def read(self) -> Snapshot | None:
        """The store now; None when it is what the last successful reading gave."""
        self._told = seen = await asyncio.to_thread(self._look)
        try:
            if isinstance(seen, FailedScan):
                raise seen.error
            snapshot = await asyncio.to_thread(self._load, seen)
        except StoreError:
            self._failures += 1
            self._again_s = self.clock.monotonic_s() + _BACK_OFF.pause_s(self._failures)
            raise
        self._failures = 0
        wait = self.unripe_s(seen)
        self._again_s = self.clock.monotonic_s() + wait if wait is not None else None
        before, self.snapshot = self.snapshot, snapshot
        is_same = before is not None and _identity(before) == _identity(snapshot)
        return None if is_same else snapshot

    def _look(self) -> Any:
        try:
            return self.look()
        except StoreError as error:
            return FailedScan(str(error), error)
        except Exception as error:
            found = store_fault(self.name, error)
            return FailedScan(str(found), found)

    def _load(self, seen: Any) -> Snapshot:
        try:
            return self.load(seen)
        except StoreError:
            raise
        except Exception as error:
            raise store_fault(self.name, error) from error


def _identity(snapshot: Snapshot) -> Hashable:
    return snapshot.revision, snapshot.problems


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


class DirectorySource(LocalSource):
    """Follows the files of a directory as they lie."""

    def __init__(self, root: Path, clock: Clock, state_folder: Path) -> None:
        super().__init__(clock)
        self._root = root
        self._copy = StoreCopy(state_folder, root)
        self.past = DirectoryPast(root, self._copy)
        self._inode = _inode(root)
        self._watch = Watch([root], self.hint, clock)

    @property
    def name(self) -> str:
        """The folder's absolute path; a link on the way stays one."""
        return str(self._root.absolute())

    @property
    def description(self) -> str:
        """The folder."""
        return f"directory {self._root}"

    @property
    def note(self) -> str:
        """Says so when there are no file events."""
        fault = self._watch.fault
        return f"{fault}; the directory is scanned every {_SCAN_WITHOUT_EVENTS_S:.0f} s instead" if fault else ""

    def look(self) -> ScanState:
        """Names and stamps of all files: 33 ms for ten thousand."""
        return scan(self._root)

    def load(self, seen: ScanState) -> Snapshot:
        """One settled reading. It begins after the look, so what changes in between differs from the look."""
        return read_directory(self._root)

    def unripe_s(self, seen: ScanState) -> float | None:
        """A file may change twice within a tick of its file system and keep its stamp."""
        return RACY_NS / 1e9 + 0.1 if seen.racy else None

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

    def commits_since(self, former: str, head: str) -> tuple[str, ...]:
        """The head alone: a directory has no commits."""
        return (head,)

    def ancestry(self, revisions: Collection[str], head: str) -> Lineage:
        """No order, and all are missing: a directory has no revisions."""
        return Lineage(missing=frozenset({*revisions, head}))

    def resolve(self, texts: Collection[str]) -> dict[str, str]:
        """Nothing is named."""
        return {}

    async def close(self) -> None:
        """Stop watching."""
        await self._watch.close()


def _inode(root: Path) -> tuple[int, int] | None:
    try:
        found = root.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
