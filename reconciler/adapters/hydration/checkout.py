"""Checkouts of other repositories, and documents of other tools, as files: links are never followed, all is bounded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reconciler.adapters.hydration.files import RenderFiles
from reconciler.adapters.store.directory import DirectoryTree
from reconciler.adapters.store.walk import EntryKind, Unreadable
from reconciler.errors import StoreError
from reconciler.stages.hydration import Standing


class FolderCheckout:
    """A folder with a checkout. Paths are from it, "" is the folder itself; `.git` and other hidden names are not seen.

    Every method raises StoreError: it cannot be read, a link is among the files, or there is too much.
    """

    def __init__(self, tree: DirectoryTree) -> None:
        self._tree, self._files = tree, RenderFiles(tree)

    def standing(self, path: str) -> Standing:
        """Return the kind of entry at a path; a link is nothing."""
        try:
            return Standing.FOLDER if not path else self._files.standing(path)
        except Unreadable as error:
            raise StoreError(f"{path}: {error}") from error

    def read(self, path: str) -> bytes:
        """A file, as far as one may be large."""
        return self._files.read(path)

    def listed(self, paths: Iterable[str]) -> list[str]:
        """Every file at and below the paths, in the order of their names."""
        found: list[str] = []
        for path in paths:
            found += self._top() if not path else [path]
        return list(self._files.listed(sorted(set(found))))

    def _top(self) -> Iterator[str]:
        """Yield the entries of the folder; a link leads elsewhere and is ignored."""
        try:
            for entry in self._tree.children(""):
                if not entry.name.startswith(".") and entry.kind in (EntryKind.FILE, EntryKind.FOLDER):
                    yield entry.name
        except Unreadable as error:
            raise StoreError(str(error)) from error


@contextmanager
def checkout_of(folder: Path) -> Iterator[FolderCheckout]:
    """A folder while it is read.

    Raises:
        StoreError: it is no directory that can be read.
    """
    with DirectoryTree(folder) as tree:
        yield FolderCheckout(tree)
