"""A plain directory that is followed: file events are hints, a scan of names and stamps is the truth."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from reconciler.api.fleet import Snapshot
from reconciler.api.rollouts import Lineage
from reconciler.clock import Clock, wait_for
from reconciler.store.directory import read_directory
from reconciler.store.local_source import LocalSource, Watch
from reconciler.store.past import DirectoryPast
from reconciler.store.scan import RACY_NS, Stamp, StoreCopy, scan

_SCAN_S: Final = 30.0
_SCAN_WITHOUT_EVENTS_S: Final = 5.0
_TICK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class _FolderScan:
    """A scan. `is_racy` is not compared: time alone makes no change."""

    stamps: Mapping[str, tuple[Stamp, ...]]
    is_racy: bool = field(compare=False)


class DirectorySource(LocalSource):
    """Follows the files of a directory as they lie."""

    def __init__(self, root: Path, clock: Clock, state_folder: Path) -> None:
        super().__init__(clock)
        self._root = root
        self._copy = StoreCopy(state_folder, root)
        self.past = DirectoryPast(root, self._copy)
        self._identity = _identity(root)
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

    def look(self) -> _FolderScan:
        """Names and stamps of all files: 33 ms for ten thousand."""
        return _FolderScan(*scan(self._root))

    def load(self, seen: _FolderScan) -> Snapshot:
        """One settled reading. It begins after the look, so what changes in between differs from the look."""
        return read_directory(self._root)

    def unripe_s(self, seen: _FolderScan) -> float | None:
        """A file may change twice within a tick of its file system and keep its stamp."""
        return RACY_NS / 1e9 + 0.1 if seen.is_racy else None

    async def pause(self) -> None:
        """Until a hint, a swap of the root, the end of the racy time, or half a minute."""
        limit_s = _SCAN_WITHOUT_EVENTS_S if self._watch.fault else _SCAN_S
        until_s = self.clock.monotonic_s() + limit_s
        while self.clock.monotonic_s() < until_s:
            # A watch stays with the folder that it began with, though another one may carry its name by now.
            if _identity(self._root) != self._identity:
                self._identity = _identity(self._root)
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

    def keep(self, revisions: Collection[str]) -> None:
        """Nothing: there is none to keep."""

    async def close(self) -> None:
        """Stop watching."""
        await self._watch.close()


def _identity(root: Path) -> tuple[int, int] | None:
    try:
        found = root.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
