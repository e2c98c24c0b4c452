"""A cheap scan of a directory for changes of its store: names and stamps, no content.

Events of the kernel are only hints (they get lost without notice), so this scan is the truth: tens of milliseconds for
ten thousand files.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from reconciler.adapters.store.ignore import IGNORE_FILE, is_hidden_folder
from reconciler.errors import StoreError
from reconciler.stages.fleet import is_store_file

RACY_NS: Final = 2_000_000_000
"""A file changed so shortly before a scan may change again without a new stamp: file systems count in ticks."""


class Stamp(NamedTuple):
    """The state of a file without its content. Folders have only their inode."""

    device: int
    inode: int
    size: int = 0
    modified_ns: int = 0
    changed_ns: int = 0


class ScanState(NamedTuple):
    """Stamps by path; "" is the root itself. `racy`: a stamp is too young to be trusted."""

    stamps: Mapping[str, tuple[Stamp, ...]]
    racy: bool


def scan(root: Path) -> ScanState:
    """Return the stamps of every folder, document, ignore file and link of the store. Hidden folders are not entered.

    A link's stamps are its own and those of its target.

    Raises:
        StoreError: the root is no directory, or cannot be read.
    """
    now_ns = time.time_ns()
    stamps: dict[str, tuple[Stamp, ...]] = {}
    try:
        top = root.stat()
        stamps[""] = (Stamp(top.st_dev, top.st_ino),)
        pending = [("", str(root))]
        while pending:
            shown, folder = pending.pop()
            _scan_folder(shown, folder, stamps, pending)
    except OSError as error:
        raise StoreError(f"{root}: {error.strerror or error}; the store is a directory that can be read") from error
    youngest = max((stamp.modified_ns for found in stamps.values() for stamp in found), default=0)
    return ScanState(stamps, youngest > now_ns - RACY_NS)


def _scan_folder(shown: str, folder: str, stamps: dict[str, tuple[Stamp, ...]], pending: list[tuple[str, str]]) -> None:
    prefix = f"{shown}/" if shown else ""
    try:
        listing = os.scandir(folder)
    except OSError:
        if not shown:
            raise
        # Missing, forbidden, or too deep for one path: the reader reports which.
        stamps[shown] = ()
        return
    with listing:
        for entry in listing:
            name = entry.name
            if entry.is_dir(follow_symlinks=False):
                if not is_hidden_folder(name):
                    stamps[prefix + name] = (Stamp(0, entry.inode()),)
                    pending.append((prefix + name, entry.path))
            elif entry.is_symlink():
                stamps[prefix + name] = _link_stamps(entry)
            elif is_store_file(name) or name == IGNORE_FILE:
                stamps[prefix + name] = _stamps(entry)


def _stamps(entry: os.DirEntry[str]) -> tuple[Stamp, ...]:
    try:
        return (_stamp(entry.stat(follow_symlinks=False)),)
    except FileNotFoundError:
        return ()


def _link_stamps(entry: os.DirEntry[str]) -> tuple[Stamp, ...]:
    own = _stamps(entry)
    try:
        return (*own, _stamp(entry.stat(follow_symlinks=True)))
    except OSError:  # broken, circular, or on its way out: the reader says which
        return own


def _stamp(found: os.stat_result) -> Stamp:
    return Stamp(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
