"""A store without files: what the daemon follows is what the test last put there."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping

from reconciler.model.fleet import Snapshot, StoreFile


class MemorySource:
    """A store in memory, which fails when told to."""

    name = "/memory"
    description = "memory as it is"
    note = ""

    def __init__(self) -> None:
        self._changed = asyncio.Event()
        self._files: dict[str, str] = {}
        self._read: str | None = None
        self._number = 0

    @property
    def files(self) -> dict[str, str]:
        """Path to text, as it was put there last."""
        return dict(self._files)

    def twin(self) -> MemorySource:
        """The same store, for another reader."""
        other = MemorySource()
        other.put(self.files)
        other._number = self._number
        return other

    def put(self, files: dict[str, str]) -> None:
        self._files = files
        self._number += 1
        self._changed.set()

    async def changed(self) -> None:
        await self._changed.wait()
        self._changed.clear()

    async def read(self) -> Snapshot | None:
        revision = f"r{self._number}"
        if revision == self._read:
            return None
        self._read = revision
        files = (
            StoreFile(path=path, blob=hashlib.sha256(text.encode()).hexdigest(), data=text.encode())
            for path, text in sorted(self._files.items())
        )
        return Snapshot(revision=revision, files=tuple(files))

    def forget(self) -> None:
        """Be read from the start, as after a restart."""
        self._read = None
        self._changed.set()

    def accept(self, revision: str, good_blobs: Mapping[str, str]) -> None:
        return None

    def recall(self, revision: str) -> Snapshot | None:
        return None

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        return None

    async def close(self) -> None:
        return None
