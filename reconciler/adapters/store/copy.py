"""A copy of the active files of a directory: a directory itself keeps no earlier content.

One file beside the journal, readable by its owner alone. It is written anew with every revision that becomes active,
and read after a restart only: when the directory cannot be read then, or a file of it is broken. Secrets, and
overrides, which may write into them, are not in it: they stay as they are in the clusters until the directory can be
read again. A copy that fails its checksum counts as none.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from reconciler.errors import StoreError
from reconciler.model.fleet import Snapshot, StoreFile
from reconciler.prepared import prepared
from reconciler.stages.fleet import withheld_blob, without_secrets

_DIGEST_BYTES = 32


@prepared
class _Kept(Struct, frozen=True, array_like=True):
    """`good`: the last good content of the files that are broken in the snapshot."""

    snapshot: Snapshot
    good: tuple[StoreFile, ...]


class StoreCopy:
    """The copy of one directory."""

    def __init__(self, state_folder: Path, root: Path) -> None:
        """Nothing is read yet. `root`: the directory, whose path gives the copy its name."""
        name = hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:24]
        self._path = state_folder / "directories" / name
        self._kept: _Kept | None = None
        self._is_read = False

    @property
    def is_there(self) -> bool:
        """Return whether a copy exists."""
        return self._path.is_file()

    def save(self, snapshot: Snapshot, good_blobs: Mapping[str, str]) -> None:
        """Save a snapshot, with the last good content of its broken files from the copy before.

        Raises:
            StoreError: the copy cannot be written.
        """
        there = {file.path: file.blob for file in snapshot.files}
        replaced = [path for path, blob in sorted(good_blobs.items()) if there.get(path) != blob]
        files = tuple(without_secrets(file) for file in snapshot.files)
        good = [found for path in replaced if (found := self.file(path, good_blobs[path])) is not None]
        kept = _Kept(replace(snapshot, files=files), tuple(good))
        data = msgspec.msgpack.encode(kept)
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(self._path, hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest() + data)
        except OSError as error:
            raise StoreError(f"{self._path}: the copy of the store cannot be written: {error.strerror}") from error
        self._kept, self._is_read = kept, True

    def snapshot(self, revision: str) -> Snapshot | None:
        """The snapshot that was kept last; None when it is another one, or cannot be read."""
        kept = self._read()
        return kept.snapshot if kept is not None and kept.snapshot.revision == revision else None

    def file(self, path: str, blob: str) -> StoreFile | None:
        """A file with this content, as far as it may be kept; None when the copy has none."""
        blobs = (blob, withheld_blob(blob))
        return next((file for file in self._files() if file.path == path and file.blob in blobs), None)

    def good_blobs(self) -> dict[str, str]:
        """Return path to the active blob at the time of the copy."""
        return {file.path: file.blob for file in reversed(self._files()) if not file.faults}

    def _files(self) -> tuple[StoreFile, ...]:
        """Return the active files first, and then those that the directory had in their place."""
        kept = self._read()
        return (*kept.good, *kept.snapshot.files) if kept is not None else ()

    def _read(self) -> _Kept | None:
        if not self._is_read:
            self._kept, self._is_read = _read(self._path), True
        return self._kept


def _read(path: Path) -> _Kept | None:
    try:
        sealed = path.read_bytes()
    except OSError:
        return None
    digest, data = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:]
    if hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest() != digest:
        return None
    try:
        return msgspec.msgpack.decode(data, type=_Kept)
    except msgspec.DecodeError:
        return None  # Another version wrote it.


def _replace(path: Path, data: bytes) -> None:
    """A file is there whole, as it was or as it is to be."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
