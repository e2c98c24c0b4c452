"""A store without files: what the daemon follows is what the test last put there."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Collection, Iterable, Mapping

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.api.problem import Problem
from reconciler.api.rollouts import Ancestry
from reconciler.store import StorePast, StoreSource

Content = str | Problem
"""A text, or why a path cannot be read."""


class MemoryPast(StorePast):
    """The earlier contents of a store in memory, by revision."""

    def __init__(self, older: Mapping[str, Mapping[str, Content]]) -> None:
        self._older = older

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        contents = (files[path] for files in self._older.values() if path in files)
        found = (_file(path, content) for content in contents)
        return next((file for file in found if file.blob == blob), None)

    def in_the_way(self, revision: str, paths: Iterable[str]) -> dict[str, str]:
        there = self._older.get(revision, {})
        return {
            path: f"{path} is a folder now" for path in paths if any(other.startswith(f"{path}/") for other in there)
        }


class MemorySource(MemoryPast, StoreSource):
    """A store in memory with revisions `r1`, `r2` and so on, each of which follows from the one before."""

    name = "/memory"
    description = "memory as it is"

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._files: Mapping[str, Content] = {}
        self._read: str | None = None
        self._number = 0
        self._older: dict[str, Mapping[str, Content]] = {}
        self.kept: frozenset[str] = frozenset()
        """The revisions that were to be kept last."""

    @property
    def files(self) -> dict[str, str]:
        """Path to text, as it was put there last."""
        return {path: content for path, content in self._files.items() if isinstance(content, str)}

    @property
    def newest(self) -> str:
        """The revision that was put there last."""
        return f"r{self._number}"

    def twin(self) -> MemorySource:
        """The same store, for another reader."""
        other = MemorySource()
        other.put(self._files)
        other._number = self._number
        other._older.clear()
        other._older.update(self._older)
        return other

    def put(self, files: Mapping[str, Content]) -> None:
        self._files = files
        self._number += 1
        self._older[f"r{self._number}"] = dict(files)
        self._changed.set()

    def lose(self, revision: str) -> None:
        """A garbage collection takes a revision."""
        self._older.pop(revision, None)

    async def ask_now(self) -> None:
        """Each reading gives what there is now."""

    async def changed(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    async def read(self) -> Snapshot | None:
        revision = f"r{self._number}"
        if revision == self._read:
            return None
        self._read = revision
        return _snapshot(revision, self._files)

    def forget(self) -> None:
        """Be read from the start, as after a restart."""
        self._read = None
        self._changed.set()

    def recall(self, revision: str) -> Snapshot | None:
        files = self._older.get(revision)
        return _snapshot(revision, files) if files is not None else None

    def commits_since(self, former: str, head: str) -> tuple[str, ...]:
        return (head,)

    def ancestry(self, revisions: Collection[str], head: str) -> Ancestry:
        wanted = {*revisions, head}
        there = sorted((name for name in wanted if name in self._older), key=_number)
        order = tuple(name for name in there if _number(name) <= _number(head)) if head in there else ()
        return Ancestry(order=order, missing=frozenset(wanted.difference(there)))

    def resolve(self, texts: Collection[str]) -> dict[str, str]:
        return {text: text for text in texts if text in self._older}

    def keep(self, revisions: Collection[str]) -> None:
        self.kept = frozenset(revisions)

    async def close(self) -> None:
        return None


def _number(revision: str) -> int:
    return int(revision[1:])


def _snapshot(revision: str, contents: Mapping[str, Content]) -> Snapshot:
    return Snapshot(revision=revision, files=tuple(_file(path, content) for path, content in sorted(contents.items())))


def _file(path: str, content: Content) -> StoreFile:
    blob = hashlib.sha256(str(content).encode()).hexdigest()
    if isinstance(content, Problem):
        return StoreFile(path=path, blob=blob, data=b"", faults=(content,))
    return StoreFile(path=path, blob=blob, data=content.encode())
