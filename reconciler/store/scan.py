"""A cheap scan of a directory for changes (names and stamps: events of the kernel get lost), and a copy of its files.

The copy is one file beside the journal, readable by its owner alone. It is written with every active revision, and
read after a restart only: when the directory cannot be read then, or a file of it is broken. Secrets, and overrides,
which may write into them, are not in it: they stay as they are in the clusters until the directory can be read again.
A copy that fails its checksum counts as none.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.decoding import prepared
from reconciler.errors import StoreError
from reconciler.fleet import is_store_file, withheld_blob, without_secrets
from reconciler.store.ignore import IGNORE_FILE, is_hidden_folder

RACY_NS: Final = 2_000_000_000
"""A file changed so shortly before a scan may change again without a new stamp: file systems count in ticks."""


Stamp = tuple[int, ...]
"""Device, inode, size, and times of a change of content and of state (ns). Folders have only the first two."""


@dataclass(frozen=True, slots=True)
class ScanState:
    """Stamps by path; "" is the root itself. `racy`: a stamp is too young to be trusted. Time alone makes no change."""

    stamps: Mapping[str, tuple[Stamp, ...]]
    racy: bool = field(compare=False)


def scan(root: Path) -> ScanState:
    """Return the stamps of every folder, document, ignore file and link of the store. Hidden folders are not entered.

    A link's stamps are its own and those of its target.
    Raises StoreError: the root is no directory, or cannot be read.
    """
    now_ns = time.time_ns()
    stamps: dict[str, tuple[Stamp, ...]] = {}
    try:
        top = root.stat()
        stamps[""] = ((top.st_dev, top.st_ino),)
        pending = [("", str(root))]
        while pending:
            path, folder = pending.pop()
            _scan_folder(path, folder, stamps, pending)
    except OSError as error:
        raise StoreError(f"{root}: {error.strerror or error}; the store is a directory that can be read") from error
    youngest = max((time for of_path in stamps.values() for stamp in of_path for time in stamp[3:4]), default=0)
    return ScanState(stamps, youngest > now_ns - RACY_NS)


def _scan_folder(path: str, folder: str, stamps: dict[str, tuple[Stamp, ...]], pending: list[tuple[str, str]]) -> None:
    prefix = f"{path}/" if path else ""
    try:
        listing = os.scandir(folder)
    except OSError:
        if not path:
            raise
        # Missing, forbidden, or too deep for one path: the reader reports which.
        stamps[path] = ()
        return
    with listing:
        for entry in listing:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                if not is_hidden_folder(name):
                    stamps[prefix + name] = ((0, entry.inode()),)
                    pending.append((prefix + name, entry.path))
            elif entry.is_symlink():
                own = _stamps(entry)
                with suppress(OSError):  # broken, circular, or on its way out: the reader says which
                    own = (*own, _stamp(entry.stat(follow_symlinks=True)))
                stamps[prefix + name] = own
            elif is_store_file(name) or name == IGNORE_FILE:
                stamps[prefix + name] = _stamps(entry)


def _stamps(entry: os.DirEntry[str]) -> tuple[Stamp, ...]:
    try:
        return (_stamp(entry.stat(follow_symlinks=False)),)
    except FileNotFoundError:
        return ()


def _stamp(status: os.stat_result) -> Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


_DIGEST_BYTES = 32


@prepared
class _SavedFiles(Struct, frozen=True, array_like=True):
    """`good`: the last good content of the files that are broken in the snapshot. `inactive`: paths without any."""

    snapshot: Snapshot
    good: tuple[StoreFile, ...]
    inactive: tuple[str, ...] = ()


class StoreCopy:
    """The copy of one directory."""

    def __init__(self, state_folder: Path, root: Path) -> None:
        """Nothing is read yet. `root`: the directory, whose path gives the copy its name."""
        self._path = state_folder / "directories" / hashlib.sha256(os.fsencode(root.absolute())).hexdigest()[:24]
        self._saved: _SavedFiles | None = None
        self._is_read = False

    @property
    def is_there(self) -> bool:
        """Return whether a copy exists."""
        return self._path.is_file()

    def save(self, snapshot: Snapshot, good_blobs: Mapping[str, str]) -> None:
        """Save a snapshot, with the last good content of its broken files from the copy before.

        Raises StoreError: the copy cannot be written.
        """
        there = {file.path: file.blob for file in snapshot.files}
        replaced = [path for path, blob in sorted(good_blobs.items()) if there.get(path) != blob]
        files = tuple(without_secrets(file) for file in snapshot.files)
        good = [file for path in replaced if (file := self.file(path, good_blobs[path])) is not None]
        saved = _SavedFiles(
            replace(snapshot, files=files), tuple(good), tuple(sorted(there.keys() - good_blobs.keys()))
        )
        data = msgspec.msgpack.encode(saved)
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _replace(self._path, hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest() + data)
        except OSError as error:
            raise StoreError(f"{self._path}: the copy of the store cannot be written: {error.strerror}") from error
        self._saved, self._is_read = saved, True

    def snapshot(self, revision: str) -> Snapshot | None:
        """The snapshot that was kept last; None when it is another one, or cannot be read."""
        saved = self._read()
        return saved.snapshot if saved is not None and saved.snapshot.revision == revision else None

    def file(self, path: str, blob: str) -> StoreFile | None:
        """A file with this content, as far as it may be kept; None when the copy has none."""
        blobs = (blob, withheld_blob(blob))
        return next((file for file in self._files() if file.path == path and file.blob in blobs), None)

    def good_blobs(self) -> dict[str, str]:
        """Return path to the active blob at the time of the copy."""
        left_out = saved.inactive if (saved := self._read()) is not None else ()
        files = (file for file in reversed(self._files()) if not file.faults)
        return {file.path: file.blob for file in files if file.path not in left_out}

    def _files(self) -> tuple[StoreFile, ...]:
        """Return the active files first, and then those that the directory had in their place."""
        saved = self._read()
        return (*saved.good, *saved.snapshot.files) if saved is not None else ()

    def _read(self) -> _SavedFiles | None:
        if not self._is_read:
            self._saved, self._is_read = _read(self._path), True
        return self._saved


def _read(path: Path) -> _SavedFiles | None:
    try:
        sealed = path.read_bytes()
    except OSError:
        return None
    digest, data = sealed[:_DIGEST_BYTES], sealed[_DIGEST_BYTES:]
    if hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest() != digest:
        return None
    try:
        return msgspec.msgpack.decode(data, type=_SavedFiles)
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
