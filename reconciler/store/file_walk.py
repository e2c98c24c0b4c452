"""The files of a store, from a directory or from a commit: one set of rules for both.

Links never lead out of the store. A link to a file that is read anyway is ignored, so that nothing appears twice.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from enum import Enum, auto
from operator import attrgetter
from typing import Any, Final, NamedTuple, Protocol

from msgspec import Struct, field

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.api.problem import Problem, Severity, Source
from reconciler.containment import internal_error, try_call
from reconciler.errors import StoreError
from reconciler.fleet import is_store_file, memo_key
from reconciler.store.ignore import (
    IGNORE_FILE,
    MAX_IGNORE_BYTES,
    IgnoreRules,
    is_hidden_folder,
    is_ignored,
    is_leftover,
    is_misnamed,
    looks_like_document,
    with_rules,
)
from reconciler.yaml import MAX_BYTES

MAX_FILES: Final = 200_000
MAX_FOLDERS: Final = 100_000
MAX_ENTRIES: Final = 1_000_000
"""Names of any kind. A small tree of Git may hold itself many times over."""
MAX_FOLDER_DEPTH: Final = 200
MAX_TOTAL_BYTES: Final = 2**30
MAX_IGNORE_WORK: Final = 5_000_000_000
"""Characters of ignore patterns times characters of the names that they are matched with: seconds, at worst."""
_READ_BYTES: Final = MAX_BYTES + 1
"""So much is read of a file that is too large, for its parser to see that it is."""
_MAX_HOPS: Final = 40
_LOOKED_AT_MAX: Final = 20
_LFS_POINTER: Final = b"version https://git-lfs.github.com/spec/"


class EntryKind(Enum):
    """The kind of a directory entry."""

    FILE = auto()
    FOLDER = auto()
    LINK = auto()
    REPOSITORY = auto()
    """A submodule, or a repository inside a work tree: its files belong to another store."""
    SPECIAL = auto()
    """A pipe, a socket, a device."""


class FolderEntry(NamedTuple):
    """A name in a folder. `handle` is for the tree that it came from."""

    name: str
    kind: EntryKind
    handle: Any = None


class Unreadable(Exception):
    """One entry cannot be read; the message is for people."""


class LfsPointer(Unreadable):
    """Git LFS keeps the content elsewhere."""


class StoreTree(Protocol):
    """A source of files. Paths are relative to the store's root, without links in them; "" is the root.

    Each method may raise Unreadable, which concerns that entry alone.
    """

    def children(self, folder: str) -> Iterable[FolderEntry]:
        """The names in a folder."""

    def entry(self, path: str) -> FolderEntry | None:
        """Return the entry at a path, a link not followed; None if there is none."""

    def blob(self, entry: FolderEntry) -> str | None:
        """Blob name of a file where it is known without reading it."""

    def read(self, path: str, entry: FolderEntry, limit: int) -> tuple[str, bytes]:
        """Blob name and content of a file, cut off after `limit` bytes where that is cheaper."""

    def target(self, path: str, entry: FolderEntry) -> str:
        """The text of a link."""


class _Walk(Struct):
    """The entries found so far. Keys of `real` are real paths; links come last, when all of it is known."""

    tree: StoreTree
    known: Collection[str] = ()
    files: dict[str, tuple[str, FolderEntry]] = field(default_factory=dict)
    """Shown path to real path and entry."""
    real: set[str] = field(default_factory=set)
    links: deque[tuple[str, str, FolderEntry]] = field(default_factory=deque)
    """Shown path, real path, entry."""
    faults: dict[str, list[Problem]] = field(default_factory=dict)
    """The reason of each unreadable entry, by shown path."""
    problems: list[Problem] = field(default_factory=list)
    """Problems that stop nothing."""
    ignore_files: list[StoreFile] = field(default_factory=list)
    folders: int = 0
    entries: int = 0
    ignore_work: int = 0
    misnamed: int = 0

    def ignores(self, rules: IgnoreRules | None, path: str, *, is_folder: bool) -> bool:
        """Return whether an ignore file excludes the path.

        Raises StoreError: the ignore files have too many patterns for so many names.
        """
        if rules is None:
            return False
        self.ignore_work += rules.work(path)
        if self.ignore_work > MAX_IGNORE_WORK:
            raise StoreError(
                f"the patterns of {IGNORE_FILE} are too many for so many names; write fewer or shorter ones"
            )
        return is_ignored(rules, path, is_folder=is_folder)

    def refuse(self, path: str, code: str, message: str) -> None:
        self.fault(Problem(source=Source(path), code=code, message=message))

    def fault(self, problem: Problem) -> None:
        self.faults.setdefault(problem.source.path, []).append(problem)

    def remark(self, path: str, code: str, message: str, severity: Severity) -> None:
        self.problems.append(Problem(source=Source(path), code=code, message=message, severity=severity))


Taker = Callable[[StoreFile], StoreFile]
"""Takes each file as soon as it is read, and returns its form in the snapshot."""


def as_read(file: StoreFile) -> StoreFile:
    """The file with its data."""
    return file


def read_tree(revision: str, tree: StoreTree, known: Collection[str] = (), take: Taker = as_read) -> Snapshot:
    """Return the store's files in path order, unreadable ones with their faults, remarks, and the ignore files.

    `known`: what the caller has parsed already, by `memo_key`; such a file comes without its data. `take`: gets the
    others one by one.
    Raises StoreError: there are more files, folders, names or bytes than a store can have.
    """
    walk = _Walk(tree, known)
    _visit(walk, "", "")
    while walk.links:
        _follow(walk, *walk.links.popleft())
    read, total = [], 0
    for path, (real, entry) in sorted(walk.files.items()):
        file, fault = try_call(_read, walk, path, real, entry)
        if isinstance(fault, StoreError):
            raise fault
        if fault is not None:
            consequence = "it is not read, and what it might concern stays as it is"
            walk.fault(internal_error(fault, Source(path), path, consequence))
        if file is not None:
            total += len(file.data)
            read.append(take(file) if file.data else file)
        if total > MAX_TOTAL_BYTES:
            raise StoreError(f"the store holds more than {MAX_TOTAL_BYTES:,} bytes of documents")
    read.extend(_unread(path, faults) for path, faults in walk.faults.items())
    files = tuple(sorted(read, key=attrgetter("path")))
    # By another name a file may be read after all.
    problems = tuple(one for one in walk.problems if one.code != "file-not-read" or one.source.path not in walk.real)
    return Snapshot(revision=revision, files=files, problems=problems, ignore_files=tuple(walk.ignore_files))


def _unread(path: str, faults: list[Problem]) -> StoreFile:
    """Return the placeholder of an unreadable path: it changes with the faults."""
    text = "\n".join(map(str, faults)).encode("utf-8", errors="backslashreplace")
    digest = hashlib.blake2b(text, digest_size=20).hexdigest()
    return StoreFile(path=path, blob=f"unread:{digest}", data=b"", faults=tuple(faults))


def _visit(walk: _Walk, path: str, real: str) -> None:
    pending: list[tuple[str, str, IgnoreRules | None]] = [(path, real, None)]
    while pending:
        path, real, rules = pending.pop()
        walk.real.add(real)
        try:
            entries = sorted(walk.tree.children(real), key=attrgetter("name"))
        except Unreadable as error:
            walk.refuse(_printable(path) or ".", "folder-unreadable", str(error))
            continue
        walk.folders += 1
        walk.entries += len(entries)
        if walk.folders > MAX_FOLDERS:
            raise StoreError(f"the store holds more than {MAX_FOLDERS:,} folders; name a folder with less in it")
        if walk.entries > MAX_ENTRIES:
            raise StoreError(f"the store holds more than {MAX_ENTRIES:,} names; name a folder with less in it")
        rules = _rules_inside(walk, path, real, rules, entries)
        below, real_below = _join(path, ""), _join(real, "")
        for entry in entries:
            shown_path, real_path = below + entry.name, real_below + entry.name
            if entry.kind is EntryKind.FOLDER:
                if is_hidden_folder(entry.name) or walk.ignores(rules, shown_path, is_folder=True):
                    continue
                if shown_path.count("/") < MAX_FOLDER_DEPTH:
                    pending.append((shown_path, real_path, rules))
                else:
                    message = f"nested deeper than {MAX_FOLDER_DEPTH} folders"
                    walk.refuse(_printable(shown_path), "folder-unreadable", message)
            elif not is_leftover(entry.name) and not walk.ignores(rules, shown_path, is_folder=False):
                _add_entry(walk, shown_path, real_path, entry)


def _rules_inside(
    walk: _Walk, folder: str, real: str, rules: IgnoreRules | None, entries: list[FolderEntry]
) -> IgnoreRules | None:
    ignore_file = next((entry for entry in entries if entry.name == IGNORE_FILE), None)
    if ignore_file is None:
        return rules
    path, shown_path = _join(real, IGNORE_FILE), _join(_printable(folder), IGNORE_FILE)
    if ignore_file.kind is not EntryKind.FILE:
        walk.refuse(shown_path, "ignore-file-unreadable", "it is no ordinary file")
        return rules
    try:
        blob, text = walk.tree.read(path, ignore_file, MAX_IGNORE_BYTES + 1)
    except Unreadable as error:
        walk.refuse(shown_path, "ignore-file-unreadable", str(error))
        return rules
    if len(text) > MAX_IGNORE_BYTES:
        walk.refuse(shown_path, "ignore-file-unreadable", f"more than {MAX_IGNORE_BYTES:,} bytes")
        return rules
    walk.ignore_files.append(StoreFile(path=shown_path, blob=blob, data=text))
    inner, problems = with_rules(rules, folder, text)
    for problem in problems:
        walk.fault(problem)
    return inner


def _add_entry(walk: _Walk, name: str, real: str, entry: FolderEntry) -> None:
    if entry.kind is EntryKind.LINK:
        walk.links.append((name, real, entry))
    elif entry.kind is EntryKind.REPOSITORY:
        message = "a repository inside the store is not read; copy its files, or make it a store of its own"
        walk.remark(name, "submodule-skipped", message, Severity.HINT)
    elif not is_store_file(entry.name):
        # Only the first files are looked into.
        if walk.misnamed < _LOOKED_AT_MAX and entry.kind is EntryKind.FILE and is_misnamed(entry.name):
            walk.misnamed += 1
            with suppress(Unreadable):
                if looks_like_document(walk.tree.read(real, entry, _READ_BYTES)[1]):
                    message = "it looks like a document, and only files that end with .yaml, .yml or .json are read"
                    walk.remark(_printable(name), "file-not-read", f"{message}; rename it", Severity.HINT)
    elif entry.kind is EntryKind.SPECIAL:
        walk.refuse(_printable(name), "not-a-file", "a pipe, socket or device is not read; take it out of the store")
    elif not (name.isascii() or not any("\udc80" <= character <= "\udcff" for character in name)):
        walk.refuse(_printable(name), "name-not-utf-8", "the name is not UTF-8; rename the file")
    else:
        walk.files[name] = (real, entry)
        walk.real.add(real)
        if len(walk.files) > MAX_FILES:
            raise StoreError(f"the store holds more than {MAX_FILES:,} files of documents")


def _follow(walk: _Walk, name: str, real: str, entry: FolderEntry) -> None:
    try:
        path, target = _resolve(walk.tree, real, walk.tree.target(real, entry))
    except Unreadable as error:
        if is_store_file(name):
            walk.refuse(_printable(name), "link-refused", str(error))
        else:
            # Without the suffix of a document it may lead to anything, most often to nothing of the store.
            walk.remark(_printable(name), "link-refused", str(error), Severity.WARNING)
        return
    if path in walk.real:
        return
    if target.kind is EntryKind.FOLDER:
        if not is_hidden_folder(name.rpartition("/")[2]):
            _visit(walk, name, path)
    elif target.kind is not EntryKind.FILE or is_store_file(name):
        _add_entry(walk, name, path, target._replace(name=name.rpartition("/")[2]))


def resolved(tree: StoreTree, path: str) -> tuple[str, FolderEntry] | None:
    """Return the entry at a real path, with the path that a link there leads to; None if there is none.

    Raises Unreadable: a link there cannot be followed, or it cannot be looked at.
    """
    entry = tree.entry(path)
    if entry is None or entry.kind is not EntryKind.LINK:
        return None if entry is None else (path, entry)
    return _resolve(tree, path, tree.target(path, entry))


def _resolve(tree: StoreTree, link: str, target: str) -> tuple[str, FolderEntry]:
    done = link.split("/")[:-1]
    todo = deque(_parts(target))
    here = FolderEntry("", EntryKind.FOLDER)
    hops = 0
    while todo:
        part = todo.popleft()
        if part in ("", "."):
            continue
        if part == "..":
            if not done:
                raise Unreadable("the link leads out of the store; copy what it points to into the store")
            done.pop()
            here = FolderEntry("", EntryKind.FOLDER)
            continue
        path = "/".join([*done, part])
        entry = tree.entry(path)
        if entry is None:
            raise Unreadable("the link leads to nothing; fix it or take it out")
        if entry.kind is EntryKind.LINK:
            hops += 1
            if hops > _MAX_HOPS:
                raise Unreadable("the link leads round in a circle; fix it or take it out")
            todo.extendleft(reversed(_parts(tree.target(path, entry))))
            continue
        done.append(part)
        here = entry
    return "/".join(done), here


def _parts(target: str) -> list[str]:
    if target.startswith("/"):
        raise Unreadable("the link is absolute and may lead out of the store; make it relative")
    return target.split("/")


def _read(walk: _Walk, path: str, real: str, entry: FolderEntry) -> StoreFile | None:
    name = walk.tree.blob(entry) if walk.known else None
    if name is not None:
        file = StoreFile(path=path, blob=name, data=b"")
        if memo_key(file) in walk.known:
            return file
    try:
        return read_file(walk.tree, path, real, entry)
    except Unreadable as error:
        walk.refuse(path, "lfs-pointer" if isinstance(error, LfsPointer) else "file-unreadable", str(error))
        return None


def read_file(tree: StoreTree, path: str, real: str, entry: FolderEntry) -> StoreFile:
    """Return a file of a tree, cut off behind the most that a file may have where that is cheaper.

    Raises Unreadable: it cannot be read, or its content is elsewhere.
    """
    blob, data = tree.read(real, entry, _READ_BYTES)
    if data.startswith(_LFS_POINTER):
        raise LfsPointer("a Git LFS pointer stands in place of the content; store the file in Git itself")
    return StoreFile(path=path, blob=blob, data=data)


def _join(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _printable(path: str) -> str:
    return path.encode("utf-8", errors="backslashreplace").decode()
