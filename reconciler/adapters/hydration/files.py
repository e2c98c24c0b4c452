"""Files that renders read and wrote, by the ids that Git has for them: of a commit for free, else by reading."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from reconciler.adapters.sources.location import StoreKind, StoreLocation
from reconciler.adapters.store.directory import DirectoryTree
from reconciler.adapters.store.walk import Entry, EntryKind, StoreTree, Unreadable
from reconciler.errors import StoreError
from reconciler.model.fleet import LOCK_NAME, Fleet, Render, RenderLock
from reconciler.model.problem import Problem
from reconciler.stages.hydration import Standing, blob_id, input_paths, overlaps, staleness

MAX_FILE_BYTES: Final = 64 * 2**20
MAX_BYTES: Final = 256 * 2**20
MAX_FILES: Final = 20_000
_SHA1_LENGTH: Final = 40
_LEFT_OUT: Final = ("~", ".swp", ".swo", ".bak", ".DS_Store")
"""Ends of names that editors and file managers leave behind; no commit is meant to have them."""


class InputRefused(StoreError):
    """An input of a render is refused; the message is for people."""


class RenderFiles:
    """Files of one reading of a store, below folders that renders name. Links are never followed."""

    def __init__(self, tree: StoreTree) -> None:
        self._tree = tree

    def standing(self, path: str) -> Standing:
        """Return the kind of entry at a path; a link is nothing."""
        kind = self._kind(path)
        found = {EntryKind.FILE: Standing.FILE, EntryKind.FOLDER: Standing.FOLDER}
        return found.get(kind, Standing.NOTHING) if kind is not None else Standing.NOTHING

    def _kind(self, path: str) -> EntryKind | None:
        entry = self._entry(path)
        return entry.kind if entry is not None else None

    def _entry(self, path: str) -> Entry | None:
        # Each folder on the way is looked at: a link among them leads elsewhere.
        parts = path.split("/")
        for length in range(1, len(parts)):
            above = self._tree.entry("/".join(parts[:length]))
            if above is None or above.kind is not EntryKind.FOLDER:
                return None
        return self._tree.entry(path)

    def listed(self, paths: Iterable[str]) -> dict[str, Entry]:
        """Every file at and below the paths, in the order of their names.

        Raises:
            InputRefused: a link, a device or a repository is among them, or there are too many.
            StoreError: the store cannot be read.
        """
        found: dict[str, Entry] = {}
        pending = list(paths)
        while pending:
            path = pending.pop()
            try:
                entry = self._entry(path)
                if entry is None or path in found:
                    continue
                if entry.kind is EntryKind.FOLDER:
                    below = self._tree.children(path)
                    pending += [f"{path}/{each.name}" for each in below if not each.name.endswith(_LEFT_OUT)]
                elif entry.kind is EntryKind.FILE:
                    found[path] = entry
                else:
                    what = "a link" if entry.kind is EntryKind.LINK else "no ordinary file"
                    raise InputRefused(f"{path} is {what}; what is rendered is made of ordinary files")
            except Unreadable as error:
                raise InputRefused(f"{path}: {error}") from error
            if len(found) > MAX_FILES:
                raise InputRefused(f"there are more than {MAX_FILES:,} files; render less at once")
        return dict(sorted(found.items()))

    def ids(self, paths: Iterable[str]) -> dict[str, str]:
        """The blob ids of every file at and below the paths.

        Raises:
            InputRefused, StoreError: as of `listed` and `read`.
        """
        return {path: self._id(path, entry) for path, entry in self.listed(paths).items()}

    def _id(self, path: str, entry: Entry) -> str:
        known = self._tree.blob(entry)
        return known if known is not None and len(known) == _SHA1_LENGTH else blob_id(self.read(path, entry))

    def read(self, path: str, entry: Entry | None = None) -> bytes:
        """The content of a file.

        Raises:
            InputRefused: there is none, or it is too large.
        """
        entry = entry or self._entry(path)
        if entry is None or entry.kind is not EntryKind.FILE:
            raise InputRefused(f"{path} is no file of the store")
        try:
            data = self._tree.read(path, entry, MAX_FILE_BYTES + 1)[1]
        except Unreadable as error:
            raise InputRefused(f"{path}: {error}") from error
        if len(data) > MAX_FILE_BYTES:
            raise InputRefused(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
        return data

    def staleness(self, render: Render, lock: RenderLock | None) -> Iterator[Problem]:
        """Yield the changes since an output was made. A refused input counts as changed."""
        try:
            inputs = self.ids(input_paths(render, lock))
        except InputRefused as error:
            inputs = {str(error): ""}
        try:
            outputs = self.ids([render.output])
        except InputRefused as error:
            outputs = {str(error): ""}
        outputs.pop(f"{render.output}/{LOCK_NAME}", None)
        yield from staleness(render, lock, inputs, outputs)


@contextmanager
def tree_of(location: StoreLocation, rev: str | None, *, as_files: bool) -> Iterator[StoreTree]:
    """The tree of a store: its files as they lie, or a commit, by the rules of `open_store`.

    Raises:
        StoreError: it cannot be opened.
    """
    is_files = rev is None and as_files and location.kind is StoreKind.WORK_TREE
    if location.repository is None or is_files:
        with DirectoryTree(location.path) as tree:
            yield tree
        return
    # Imported here: pygit2 costs 90 ms, which a plain directory need not pay.
    from reconciler.adapters.git.snapshot import GitStore  # noqa: PLC0415

    with GitStore(location.repository) as store:
        yield store.tree(store.resolve("HEAD" if rev is None else rev), location.subdir)


def lock_problems(fleet: Fleet, tree: StoreTree) -> tuple[Problem, ...]:
    """Return the problems of all renders of a fleet: out of date, edited, two variants for a cluster.

    Raises:
        StoreError: an object of the store is missing or corrupt.
    """
    files = RenderFiles(tree)
    found = list(overlaps(fleet.renders, fleet.clusters))
    for render in fleet.renders:
        found += files.staleness(render, fleet.locks.get(render.lock_path))
    return tuple(found)


def check_ordinary(location: StoreLocation) -> None:
    """Nothing, unless the store is one whose files cannot be written.

    Raises:
        StoreError: it is a bare repository.
    """
    if location.kind is StoreKind.BARE_REPOSITORY:
        raise StoreError(f"{location}: hydrate writes files, and a bare repository has none; name a work tree")
