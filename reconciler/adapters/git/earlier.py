"""The last good content of a store's broken files, from the history of Git alone.

It needs no journal, so that a lost one, a pull request and a single command have it as well.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import islice
from typing import Final

from reconciler.adapters.git.incremental import is_document
from reconciler.adapters.git.snapshot import GitStore
from reconciler.adapters.store.in_the_way import in_the_way
from reconciler.adapters.store.walk import Entry, EntryKind, StoreTree, Unreadable, is_lfs_pointer, resolved
from reconciler.errors import RevisionNotFound, StoreError
from reconciler.model.fleet import StoreFile
from reconciler.stages.fleet import Earlier, ParsedFile, parse_file
from reconciler.stages.yaml import MAX_BYTES

COMMITS_MAX: Final = 500
"""Limit of the search, along first parents. A file that has been broken for longer has no known content."""
_READ_MAX: Final = 20
"""So many commits are read whole in search of one."""


def earlier_of(
    store: GitStore, commits: Iterable[str], subdir: str, paths: Collection[str], broken: Collection[str]
) -> Earlier:
    """Return the last good content of broken paths, as far as commits have it. Raises nothing.

    `commits`: the newest first, down to the first one of all. `paths`: all of the store now. If a broken path is new,
    files gone since count as they were, as they may have moved there. A path in no part of the answer is unknown.
    """
    good: dict[str, ParsedFile] = {}
    new: set[str] = set()
    unknown, history = set(broken), iter(commits)
    try:
        for ancestor in islice(history, COMMITS_MAX):
            absent = _look(store, ancestor, subdir, unknown, good)
            if absent:
                good |= good_in(store, ancestor, subdir, lambda path: path not in paths)
            new |= absent
            unknown -= absent | good.keys()
            if not unknown:
                break
        if unknown and not store.is_shallow and next(history, None) is None:
            new |= unknown  # It never was good.
    except StoreError:
        pass  # What came before is missing or corrupt.
    return Earlier(good=good, new=frozenset(new))


def displaced(store: GitStore, revision: str, subdir: str, paths: Collection[str]) -> Earlier:
    """Return the files of the commit before that the revision replaced by something that is no document.

    Raises:
        StoreError: one of the commits cannot be read.
    """
    before = next(store.first_parents(revision), None)
    if before is None:
        return Earlier()
    gone = [path for path in store.changed_paths(before, revision, subdir) if is_document(path) and path not in paths]
    taken = in_the_way(store.tree(revision, subdir), gone) if gone else {}
    return Earlier(good=good_in(store, before, subdir, taken.__contains__), in_the_way=taken) if taken else Earlier()


def blobs_before(store: GitStore, commits: Iterable[str], subdir: str, ignore_files: Collection[str]) -> dict[str, str]:
    """Return path to blob of the newest commit with readable ignore files; empty if none is found.

    Raises:
        StoreError: a commit cannot be read.
    """
    for ancestor in islice(commits, _READ_MAX):
        files = store.snapshot(ancestor, subdir).files
        if not any(file.faults and file.path in ignore_files for file in files):
            return {file.path: file.blob for file in files if not file.faults}
    return {}


def _look(store: GitStore, commit: str, subdir: str, paths: Collection[str], good: dict[str, ParsedFile]) -> set[str]:
    """Return the paths that the commit does not have; add its good content to `good`."""
    try:
        tree = store.tree(commit, subdir)
    except RevisionNotFound:
        return set(paths)
    absent = set[str]()
    for path in sorted(paths):
        try:
            there = resolved(tree, path)
            file = _parsed(tree, path, *there) if there is not None and there[1].kind is EntryKind.FILE else None
        except Unreadable:
            continue
        if there is None:
            absent.add(path)
        elif file is not None and not file.frozen:
            good[path] = file
    return absent


def _parsed(tree: StoreTree, path: str, real: str, entry: Entry) -> ParsedFile | None:
    blob, data = tree.read(real, entry, MAX_BYTES + 1)
    return None if is_lfs_pointer(data) else parse_file(StoreFile(path=path, blob=blob, data=data))


def good_in(store: GitStore, commit: str, subdir: str, is_wanted: Callable[[str], bool]) -> dict[str, ParsedFile]:
    """By path the wanted files of a commit that are good.

    Raises:
        StoreError: it cannot be read.
    """
    files = (file for file in store.snapshot(commit, subdir).files if is_wanted(file.path))
    return {file.path: file for file in map(parse_file, files) if not file.frozen}
