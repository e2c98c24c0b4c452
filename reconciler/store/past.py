"""The boundary of one store: a fault of ours is one more reason why it cannot be read, and the last reading stays.

Source: design#boundaries; design#last-good-revision.

The past of a store: the last good content of unreadable files, and obstacles in the place of files.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import chain
from pathlib import Path
from typing import Protocol

from reconciler.api.fleet import StoreFile
from reconciler.containment import INTERNAL_ERROR
from reconciler.errors import RevisionNotFound, StoreError, StoreFault
from reconciler.fleet import Earlier
from reconciler.store.directory import DirectoryTree, in_the_way
from reconciler.store.scan import StoreCopy


def store_fault(name: str, fault: Exception) -> StoreFault:
    """The fault as an error of the store. The text of the exception is left out: it may quote a value of the store."""
    found = StoreFault(f"{name}: {INTERNAL_ERROR}: it cannot be read: {type(fault).__name__}; please report it")
    found.__cause__ = fault
    return found


class StorePast(Protocol):
    """Asked only when files are unreadable or gone. Nothing of it raises: unknown content is left out."""

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        """An older content of a file, by the blob of a snapshot; None when the store no longer has it. Reads files."""

    def in_the_way(self, revision: str, paths: Iterable[str]) -> dict[str, str]:
        """By path of a file that a revision no longer has, what stands there instead. Reads files."""

    def earlier(self, revision: str, paths: Collection[str], broken: Collection[str]) -> Earlier:
        """Return the last good content of paths broken at a revision, for a caller without memory. Reads files.

        `paths`: all of the revision.
        """

    def good_blobs(self, revision: str, ignore_files: Collection[str]) -> dict[str, str]:
        """Return path to active blob, as far as the store itself has it. Reads files.

        `ignore_files`: unreadable ones of the revision, so that the ignored paths are unknown.
        """


class GitPast:
    """The past of a store in a repository: its history. Who follows the repository says when it is another one."""

    def __init__(self, repository: Path, subdir: str) -> None:
        """Nothing is read yet."""
        self.repository = repository
        self.subdir = subdir

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        """The blob, as long as the repository has it."""
        from reconciler.store.git.snapshot import GitStore  # noqa: PLC0415 - pygit2 costs 90 ms

        try:
            with GitStore(self.repository) as store:
                data = store.read_blob(blob)
        except StoreError:
            return None
        return StoreFile(path=path, blob=blob, data=data) if data is not None else None

    def in_the_way(self, revision: str, paths: Iterable[str]) -> dict[str, str]:
        """Return the obstacles of the commit in place of files or of folders above them."""
        from reconciler.store.git.snapshot import GitStore  # noqa: PLC0415 - pygit2 costs 90 ms

        try:
            with GitStore(self.repository) as store:
                return in_the_way(store.tree(revision, self.subdir), paths)
        except StoreError:
            return {}

    def earlier(self, revision: str, paths: Collection[str], broken: Collection[str]) -> Earlier:
        """Return the content of the commits before it, along first parents."""
        from reconciler.store.git.commit_history import displaced, earlier_of  # noqa: PLC0415 - pygit2 costs 90 ms
        from reconciler.store.git.snapshot import GitStore  # noqa: PLC0415 - pygit2 costs 90 ms

        try:
            with GitStore(self.repository) as store:
                if not broken:
                    return displaced(store, revision, self.subdir, paths)
                found = earlier_of(store, store.first_parents(revision), self.subdir, paths, broken)
                there = displaced(store, revision, self.subdir, paths)
                return Earlier(good={**there.good, **found.good}, new=found.new, in_the_way=there.in_the_way)
        except StoreError:
            return Earlier()

    def good_blobs(self, revision: str, ignore_files: Collection[str]) -> dict[str, str]:
        """Return the blobs of a commit before it, if only that shows the ignored paths; there is no other memory."""
        if not ignore_files:
            return {}
        from reconciler.store.git.commit_history import blobs_before  # noqa: PLC0415 - pygit2 costs 90 ms
        from reconciler.store.git.snapshot import GitStore  # noqa: PLC0415 - pygit2 costs 90 ms

        try:
            with GitStore(self.repository) as store:
                return blobs_before(store, store.first_parents(revision), self.subdir, ignore_files)
        except StoreError:
            return {}


class WorkTreePast:
    """The past of the files of a work tree as they lie: the commit that is checked out, and those before it."""

    def __init__(self, root: Path, repository: Path, subdir: str) -> None:
        """Nothing is read yet. `root`: the folder of the store in the work tree."""
        self._root = root
        self._repository = repository
        self._subdir = subdir

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        """Nothing: files that lie there have no names that a repository knows."""
        return None

    def in_the_way(self, revision: str, paths: Iterable[str]) -> dict[str, str]:
        """Return the present obstacles in place of files or of folders above them."""
        return _lying_in_the_way(self._root, paths)

    def earlier(self, revision: str, paths: Collection[str], broken: Collection[str]) -> Earlier:
        """Return the content of HEAD and the commits before it."""
        if not broken:
            return Earlier()
        from reconciler.store.git.commit_history import earlier_of  # noqa: PLC0415 - pygit2 costs 90 ms
        from reconciler.store.git.snapshot import GitStore  # noqa: PLC0415 - pygit2 costs 90 ms

        try:
            with GitStore(self._repository) as store:
                head = store.resolve("HEAD")
                return earlier_of(store, chain([head], store.first_parents(head)), self._subdir, paths, broken)
        except (StoreError, RevisionNotFound):
            return Earlier()

    def good_blobs(self, revision: str, ignore_files: Collection[str]) -> dict[str, str]:
        """None: the files that lie there have no names that a repository knows."""
        return {}


class DirectoryPast:
    """The past of a plain directory: the copy of the last active content."""

    def __init__(self, root: Path, copy: StoreCopy) -> None:
        """Nothing is read yet."""
        self._root = root
        self._copy = copy

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        """Return a file of the copy, without secrets."""
        return self._copy.file(path, blob)

    def in_the_way(self, revision: str, paths: Iterable[str]) -> dict[str, str]:
        """Return the present obstacles in place of files or of folders above them."""
        return _lying_in_the_way(self._root, paths)

    def earlier(self, revision: str, paths: Collection[str], broken: Collection[str]) -> Earlier:
        """Nothing: all that is known is what the copy has."""
        return Earlier()

    def good_blobs(self, revision: str, ignore_files: Collection[str]) -> dict[str, str]:
        """Return the blobs of the copy."""
        return self._copy.good_blobs()


def _lying_in_the_way(root: Path, paths: Iterable[str]) -> dict[str, str]:
    try:
        with DirectoryTree(root) as tree:
            return in_the_way(tree, paths)
    except (StoreError, OSError):
        return {}
