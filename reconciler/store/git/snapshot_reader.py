"""One commit after another of a repository: only blobs that the last snapshot lacks are read.

What can change the meaning of other files (links, ignore files, submodules, faults) makes it read all of them. Import
it inside functions, as it brings pygit2.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.errors import StoreError
from reconciler.fleet import is_store_file
from reconciler.store.file_walk import (
    MAX_FILES,
    MAX_FOLDER_DEPTH,
    EntryKind,
    FolderEntry,
    StoreTree,
    Unreadable,
    is_lfs_pointer,
    read_tree,
)
from reconciler.store.git.snapshot import GitStore
from reconciler.store.ignore import IGNORE_FILE, is_hidden_folder, is_leftover, is_misnamed
from reconciler.yaml import MAX_BYTES


class SnapshotReader:
    """Reads commits of one repository; the last one that was read is kept."""

    def __init__(self, subdir: str = "") -> None:
        """Nothing is read yet. `subdir`: the store's folder in the repository."""
        self._subdir = subdir
        self._last: Snapshot | None = None
        self._is_plain = False

    def read(self, store: GitStore, commit: str) -> Snapshot:
        """The files of a commit, as `GitStore.snapshot` gives them. `store` may be opened anew each time.

        Raises:
            RevisionNotFound: the commit has no such folder.
            StoreError: an object is missing or corrupt.
        """
        snapshot = self._patched(store, commit, self._last) if self._last is not None and self._is_plain else None
        if snapshot is None:
            tree = store.tree(commit, self._subdir)
            snapshot = read_tree(commit, tree, MAX_BYTES + 1)
            self._is_plain = tree.is_plain and not snapshot.problems and not any(file.faults for file in snapshot.files)
        self._last = snapshot
        return snapshot

    def read_beside(self, store: GitStore, commit: str) -> Snapshot:
        """An older commit, which shares its files with the last one. The next `read` begins where the last one ended.

        It may be called in another thread than `read`.

        Raises:
            RevisionNotFound, StoreError: as `read`.
        """
        last, is_plain = self._last, self._is_plain
        snapshot = self._patched(store, commit, last) if last is not None and is_plain else None
        return snapshot if snapshot is not None else store.snapshot(commit, self._subdir)

    def _patched(self, store: GitStore, commit: str, last: Snapshot) -> Snapshot | None:
        """Return a snapshot with the differences; None if a difference may concern other files."""
        try:
            paths = store.changed_paths(last.revision, commit, self._subdir)
        except StoreError:
            return None  # The last commit may be gone with its history.
        tree = store.tree(commit, self._subdir)
        files = {file.path: file for file in last.files}
        is_sorted = True
        for path in paths:
            if not _is_simple(path) or is_misnamed(path) or path.count("/") > MAX_FOLDER_DEPTH:
                return None
            entry = tree.entry(path)
            if entry is None or entry.kind is EntryKind.FOLDER:
                files.pop(path, None)
                continue
            if entry.kind is not EntryKind.FILE:
                return None
            if is_document(path):
                file = _read(tree, path, entry)
                if file is None:
                    return None
                is_sorted = is_sorted and path in files
                files[path] = file
        if len(files) > MAX_FILES:
            return None
        ordered: Iterable[StoreFile] = files.values() if is_sorted else (files[path] for path in sorted(files))
        return replace(last, revision=commit, files=tuple(ordered))


def _is_simple(path: str) -> bool:
    """Return whether a path concerns itself alone and can be shown."""
    return path.rpartition("/")[2] != IGNORE_FILE and path.isprintable()


def is_document(path: str) -> bool:
    """Return whether a file of that path is a document of the store."""
    *folders, name = path.split("/")
    return is_store_file(name) and not is_leftover(name) and not any(map(is_hidden_folder, folders))


def _read(tree: StoreTree, path: str, entry: FolderEntry) -> StoreFile | None:
    """A file as the walk over all of them would read it; None when it needs that walk."""
    try:
        blob, data = tree.read(path, entry, MAX_BYTES + 1)
    except Unreadable:
        return None
    return None if is_lfs_pointer(data) else StoreFile(path=path, blob=blob, data=data)
