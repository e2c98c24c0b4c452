"""A directory as a store: one consistent reading of it, what stands in the place of a file, and the past of a store.

Folders are opened one below the other from the root, never through a link, and files without blocking: a file that is
swapped for a link or a pipe between listing and opening is a problem, not a way out. Of the past: the last good content
of unreadable files. Source: design#boundaries; design#last-good-revision.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, TypeVar

from msgspec.structs import replace

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.api.rollouts import Ancestry
from reconciler.containment import INTERNAL_ERROR
from reconciler.errors import StoreError, StoreFault, StoreUnsettled
from reconciler.fleet import Earlier, ParsedFile
from reconciler.store.file_walk import EntryKind, FolderEntry, StoreTree, Unreadable, read_tree, resolved
from reconciler.store.scan import StoreCopy, scan

Value = TypeVar("Value")
_ATTEMPTS: Final = 5
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_directory(root: Path) -> Snapshot:
    """The files of a directory as they were at one moment. The revision is `dir:` and a digest of paths and contents.

    Raises:
        StoreError: the root is no directory that can be read, or holds too much.
        StoreUnsettled: it kept changing while it was read.
    """
    for _ in range(_ATTEMPTS):
        before = scan(root)
        with DirectoryTree(root) as tree:
            snapshot = read_tree("", tree)
        if scan(root) == before:
            digest = hashlib.blake2b(digest_size=16)
            for file in snapshot.files:
                digest.update(file.path.encode() + b"\0" + file.blob.encode() + b"\0")
            return replace(snapshot, revision=f"dir:{digest.hexdigest()}")
    raise StoreUnsettled(f"{root}: kept changing while it was read {_ATTEMPTS} times; try again when it is at rest")


class DirectoryTree:
    """A `StoreTree` over a directory. Use as a context manager; one folder stays open at a time."""

    def __init__(self, root: Path) -> None:
        self._path = root
        self._root = -1
        self._folder = ""
        self._folder_fd = -1

    def __enter__(self) -> DirectoryTree:
        try:
            self._root = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise StoreError(f"{self._path}: {error.strerror}; the store is a directory that can be read") from error
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close_folder()
        os.close(self._root)

    def children(self, folder: str) -> Iterable[FolderEntry]:
        """The names in a folder."""
        try:
            with os.scandir(self._open_folder(folder)) as listing:
                return [FolderEntry(entry.name, self._kind(entry)) for entry in listing]
        except OSError as error:
            raise Unreadable(f"the folder cannot be read: {error.strerror}") from error

    def _kind(self, entry: os.DirEntry[str]) -> EntryKind:
        if entry.is_symlink():
            return EntryKind.LINK
        if entry.is_dir(follow_symlinks=False):
            return EntryKind.REPOSITORY if _exists(f"{entry.name}/.git", self._folder_fd) else EntryKind.FOLDER
        return EntryKind.FILE if entry.is_file(follow_symlinks=False) else EntryKind.SPECIAL

    def entry(self, path: str) -> FolderEntry | None:
        """Return the entry at a path; a link is not followed."""
        folder, _, name = path.rpartition("/")
        try:
            below = self._open_folder(folder)
            status = os.stat(name, dir_fd=below, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise Unreadable(f"its folder cannot be searched: {error.strerror}") from error
        if stat.S_ISDIR(status.st_mode) and _exists(f"{name}/.git", below):
            return FolderEntry(name, EntryKind.REPOSITORY)
        kinds = {stat.S_IFREG: EntryKind.FILE, stat.S_IFDIR: EntryKind.FOLDER, stat.S_IFLNK: EntryKind.LINK}
        return FolderEntry(name, kinds.get(stat.S_IFMT(status.st_mode), EntryKind.SPECIAL))

    def blob(self, entry: FolderEntry) -> str | None:
        """A file has a name only when it was read."""
        return None

    def read(self, path: str, entry: FolderEntry, limit: int) -> tuple[str, bytes]:
        """Digest and content of a file."""
        folder, _, name = path.rpartition("/")
        try:
            file = os.open(name, _FILE_FLAGS, dir_fd=self._open_folder(folder))
        except OSError as error:
            raise Unreadable(_reason(error)) from error
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                raise Unreadable("it is no ordinary file any more")
            data = os.fdopen(file, "rb", closefd=False).read(limit)
        except OSError as error:
            raise Unreadable(_reason(error)) from error
        finally:
            os.close(file)
        return f"b2:{hashlib.blake2b(data, digest_size=20).hexdigest()}", data

    def target(self, path: str, entry: FolderEntry) -> str:
        """The text of a link."""
        folder, _, name = path.rpartition("/")
        try:
            return os.readlink(name, dir_fd=self._open_folder(folder))
        except OSError as error:
            raise Unreadable(_reason(error)) from error

    def _open_folder(self, folder: str) -> int:
        """A descriptor of a folder, reached from the root without following a link."""
        if self._folder_fd >= 0 and folder == self._folder:
            return self._folder_fd
        self._close_folder()
        descriptor = os.dup(self._root)
        for part in folder.split("/") if folder else ():
            try:
                below = os.open(part, _FOLDER_FLAGS, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = below
        self._folder, self._folder_fd = folder, descriptor
        return descriptor

    def _close_folder(self) -> None:
        if self._folder_fd >= 0:
            os.close(self._folder_fd)
        self._folder_fd = -1


def _exists(path: str, folder: int) -> bool:
    try:
        os.stat(path, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    return True


def _reason(error: OSError) -> str:
    if error.errno == errno.ELOOP:
        return "it became a link while the store was read"
    return f"it cannot be read: {error.strerror}"


_WORDS: Final = {
    EntryKind.FILE: "a file",
    EntryKind.FOLDER: "a folder",
    EntryKind.REPOSITORY: "a repository of its own (a submodule)",
    EntryKind.SPECIAL: "a pipe, socket or device",
}


def in_the_way(tree: StoreTree, paths: Iterable[str]) -> dict[str, str]:
    """Return the obstacles in the place of missing files, or of folders above them, in words.

    A path without one, or of a file that is no longer read as a document, is left out: it was deleted on purpose.
    """
    return {path: words for path, words in ((path, _obstacle(tree, path)) for path in paths) if words}


def _obstacle(tree: StoreTree, path: str) -> str:
    real, names = "", path.split("/")
    for number, name in enumerate(names, start=1):
        part = "/".join(names[:number])
        try:
            there = resolved(tree, f"{real}/{name}" if real else name)
        except Unreadable as error:
            return f"{part} cannot be read: {error}"
        if there is None:
            return ""
        real, entry = there
        if entry.kind is not (EntryKind.FILE if number == len(names) else EntryKind.FOLDER):
            return f"{part} is {_WORDS[entry.kind]} now"
    return ""


def store_fault(name: str, fault: Exception) -> StoreError:
    """The fault as an error of the store. The text of the exception is left out: it may quote a value of the store."""
    if isinstance(fault, OSError):
        return StoreError(f"{fault.filename or name}: {fault.strerror or fault}")
    error = StoreFault(f"{name}: {INTERNAL_ERROR}: it cannot be read: {type(fault).__name__}; please report it")
    error.__cause__ = fault
    return error


def store_call(name: str, work: Callable[..., Value], *arguments: Any) -> Value:
    """Return what work gives. Raises StoreError: it raised that, or any exception, which is a fault of the program."""
    try:
        return work(*arguments)
    except StoreError:
        raise
    except Exception as error:
        raise store_fault(name, error) from error


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

    def states_before(self, revision: str, paths: Collection[str]) -> Iterator[Mapping[str, ParsedFile]]:
        """Yield the files that earlier revisions have at these paths, the newest revision first. Reads files."""
        return iter(())

    def good_blobs(self, revision: str, ignore_files: Collection[str]) -> dict[str, str]:
        """Return path to active blob, as far as the store itself has it. Reads files.

        `ignore_files`: unreadable ones of the revision, so that the ignored paths are unknown.
        """
        return {}


class StoreSource(StorePast, ABC):
    """One store, with its past. One task may wait in `changed` while another one is in `read`.

    Without another word of a subclass it has no revisions but the present one, as a directory.
    Source: design#revisions.
    """

    name: str
    """The store as another command finds it from anywhere: an absolute path, or the URL without credentials."""
    description: str
    """The followed store, without credentials: `https://host/fleet.git branch main`."""

    @property
    def note(self) -> str:
        """Return a remark on the following for operators; empty if all is well."""
        return ""

    @abstractmethod
    async def changed(self) -> None:
        """Return when the store may have changed since it was last read, or when a failed reading is due again.

        Each change is reported once. It can be cancelled at any time: the next call reports the rest.
        """

    @abstractmethod
    async def ask_now(self) -> None:
        """Return when `read` gives the store's content of this moment or later. Only while nobody waits in `changed`.

        Raises StoreError: it cannot be asked; `read` gives what is known of it.
        """

    @abstractmethod
    async def read(self) -> Snapshot | None:
        """The store now; None when it is what the last successful reading gave.

        Raises StoreError: it cannot be read; the caller keeps the last good snapshot in force.
        """

    def accept(self, revision: str, good_blobs: Mapping[str, str]) -> None:
        """Note that a revision that was read is in force from now on, and keep what a restart will need. Writes files.

        `good_blobs`: path to the blob in force, which differs from that of the revision where a file of it is broken.
        """

    @abstractmethod
    def recall(self, revision: str) -> Snapshot | None:
        """A revision that was accepted once; None when the store no longer has it. Reads files.

        It may be called while another task is in `read`. Raises nothing: what cannot be read is not there.
        """

    def commits_since(self, former: str, head: str) -> tuple[str, ...]:
        """Return what came after a revision up to HEAD, the oldest first: each commit along first parents.

        HEAD alone where the former is none of these, or too far away. Reads files; raises nothing.
        """
        return (head,)

    def ancestry(self, revisions: Collection[str], head: str) -> Ancestry:
        """Return the ancestry of revisions to a head. Reads files, up to a second of history for a new question.

        Raises nothing: unreadable ones are missing. A plain directory has no order, and all are missing.
        """
        return Ancestry(missing=frozenset({*revisions, head}))

    def resolve(self, texts: Collection[str]) -> dict[str, str]:
        """Text to full commit id: of those that are an id, seven or more letters of one, or the name of a tag.

        Only commits that are there; a text that names two is left out, and no expression of Git is read. A clone of a
        URL has no tags. Reads files; raises nothing.
        """
        return {}

    def keep(self, revisions: Collection[str]) -> None:
        """Keep these revisions, and of those that were kept before no other. Writes files.

        Only in a clone of our own: whose repository it is else, that person's garbage collection decides.
        Raises StoreError: the clone cannot be written.
        """

    @abstractmethod
    async def close(self) -> None:
        """Stop watching."""


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
