"""The past of a store: the last good content of unreadable files, and obstacles in the place of files.

Source: design#boundaries; design#last-good-revision.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path

from reconciler.api.fleet import StoreFile
from reconciler.containment import INTERNAL_ERROR
from reconciler.errors import StoreError, StoreFault
from reconciler.fleet import Earlier
from reconciler.store.directory import DirectoryTree, in_the_way
from reconciler.store.scan import StoreCopy


def store_fault(name: str, fault: Exception) -> StoreFault:
    """The fault as an error of the store. The text of the exception is left out: it may quote a value of the store."""
    found = StoreFault(f"{name}: {INTERNAL_ERROR}: it cannot be read: {type(fault).__name__}; please report it")
    found.__cause__ = fault
    return found


class StorePast:
    """Asked only when files are unreadable or gone. Nothing of it raises: unknown content is left out, here all."""

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        """An older content of a file, by the blob of a snapshot; None when the store no longer has it. Reads files."""
        return None

    def in_the_way(self, revision: str, paths: Iterable[str]) -> dict[str, str]:
        """By path of a file that a revision no longer has, what stands there instead. Reads files."""
        return {}

    def earlier(self, revision: str, paths: Collection[str], broken: Collection[str]) -> Earlier:
        """Return the last good content of paths broken at a revision, for a caller without memory. Reads files.

        `paths`: all of the revision.
        """
        return Earlier()

    def good_blobs(self, revision: str, ignore_files: Collection[str]) -> dict[str, str]:
        """Return path to active blob, as far as the store itself has it. Reads files.

        `ignore_files`: unreadable ones of the revision, so that the ignored paths are unknown.
        """
        return {}


class DirectoryPast(StorePast):
    """The past of a plain directory: the copy of the last active content."""

    def __init__(self, root: Path, copy: StoreCopy) -> None:
        self._root = root
        self._copy = copy

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        """Return a file of the copy, without secrets."""
        return self._copy.file(path, blob)

    def in_the_way(self, revision: str, paths: Iterable[str]) -> dict[str, str]:
        """Return the present obstacles in place of files or of folders above them."""
        return obstacles(self._root, paths)

    def good_blobs(self, revision: str, ignore_files: Collection[str]) -> dict[str, str]:
        """Return the blobs of the copy."""
        return self._copy.good_blobs()


def obstacles(root: Path, paths: Iterable[str]) -> dict[str, str]:
    """Return the present obstacles below a folder in place of files or of folders above them."""
    try:
        with DirectoryTree(root) as tree:
            return in_the_way(tree, paths)
    except (StoreError, OSError):
        return {}
