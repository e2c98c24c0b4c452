"""Revisions of a repository: the one in force, their order and how they are kept, and the last good content of files.

Names of revisions come from the store, and from marks in clusters: they are ids or names of tags here, and never
expressions of Git. No journal is needed.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pygit2

from reconciler.api.refs import DIGEST
from reconciler.api.rollouts import Ancestry
from reconciler.clock import rfc3339
from reconciler.errors import RevisionNotFound, StoreError
from reconciler.fleet import Earlier, ParsedFile, parse_file
from reconciler.store.directory import in_the_way
from reconciler.store.file_walk import EntryKind, Unreadable, read_file, resolved
from reconciler.store.git.repository import (
    ARTIFACTS,
    FAULTS,
    commit_at,
    descendants,
    is_ancestor,
    is_same,
    last_change,
    newest_first,
    oid_of,
    peeled,
    reporting,
    using_repository,
)
from reconciler.store.git.snapshot import GitStore
from reconciler.store.ignore import is_document

_FAULTS: Final = (*FAULTS, StoreError)
_FULL_ID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?", re.ASCII)
_PREFIX: Final = re.compile(r"[0-9a-f]{7,63}", re.ASCII)
_TAG: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/+-]{0,254}", re.ASCII)
_FORBIDDEN_IN_TAG: Final = ("..", "//", "/.", ".lock")
_KEPT: Final = "refs/fleet/rollouts"


def kept_below(rev: str | None, subdir: str) -> str:
    """The prefix of the references that keep what one store of a clone needs; two stores may share the clone."""
    key = hashlib.sha256(f"{rev or 'HEAD'} {subdir}".encode()).hexdigest()[:16]
    return f"{_KEPT}/{key}/"


def ancestry(folder: Path, revisions: Collection[str], head: str) -> Ancestry:
    """Return the ancestry of the revisions to the head. Raises nothing: an unreadable one is missing.

    Missing ones are checked each time: a garbage collection may have come in between.
    """
    wanted = frozenset({*revisions, head})
    with suppress(*_FAULTS), using_repository(folder) as repository:
        there = frozenset(revision for revision in wanted if _commit(repository, revision) is not None)
        order = _order(folder, there, head) if head in there else ()
        return Ancestry(order=order, missing=wanted - there)
    return Ancestry(missing=wanted)


def last_authors(folder: Path, base: str, head: str, paths: Collection[str]) -> dict[str, str]:
    """Return by path its last author since a base: `Jo Doe, since 2026-11-26T10:00:00Z`. Raises nothing.

    A path that no commit in between has changed is left out.
    """
    authors: dict[str, str] = {}
    with suppress(*_FAULTS), using_repository(folder) as repository:
        for path in paths:
            commit = None if is_same(repository, base, head, path) else last_change(repository, head, path)
            if commit is not None:
                authors[path] = f"{commit.author.name[:60]}, since {rfc3339(commit.commit_time)}"
    return authors


def newest_with(folder: Path, commit: str, line: str) -> str | None:
    """Return the newest commit up to this one whose message has a line; None: there is none.

    Raises StoreError: the history cannot be read.
    """
    with reporting(f"{folder}: its history cannot be read", _FAULTS), using_repository(folder) as repository:
        lines = ((str(one.id), one.message.splitlines()) for one in newest_first(repository, commit))
        return next((one for one, message in lines if line in map(str.strip, message)), None)


def resolve_revisions(folder: Path, texts: Collection[str]) -> dict[str, str]:
    """Text to full commit id, of those that name exactly one commit that is there. Raises nothing.

    A text is an id, seven or more letters of one, the same of a digest after `sha256:`, or the name of a tag.
    """
    with suppress(*_FAULTS), using_repository(folder) as repository:
        named = {text: _commit_named(repository, text) for text in sorted(set(texts))}
        return {text: commit for text, commit in named.items() if commit is not None}
    return {}


def unknown_revisions(folder: Path, texts: Collection[str]) -> frozenset[str]:
    """Return the texts that name no commit, as `resolve_revisions` reads them; none where the history is not whole."""
    with suppress(*_FAULTS), using_repository(folder) as repository:
        if not repository.is_shallow:
            return frozenset(text for text in texts if _commit_named(repository, text) is None)
    return frozenset()


def keep_revisions(folder: Path, below: str, revisions: Collection[str]) -> None:
    """Make references `below` hold these commits, as far as they are there; those of other commits are removed.

    Raises StoreError: the clone cannot be written.
    """
    with reporting(f"{folder}: the clone cannot be written", _FAULTS), using_repository(folder) as repository:
        wanted = {below + revision for revision in revisions if _FULL_ID.fullmatch(revision)}
        there = {name for name in repository.references if name.startswith(below)}
        # New ones first, so that a crash in between keeps too much rather than too little.
        for name in sorted(wanted - there):
            commit = _commit(repository, name.removeprefix(below))
            if commit is not None:
                repository.references.create(name, commit.id, force=True)
        for name in sorted(there - wanted):
            repository.references.delete(name)


def _commit(repository: Any, revision: str) -> Any:
    """The commit of a full id whose tree is there too; None where there is none."""
    if not _FULL_ID.fullmatch(revision):
        return None
    try:
        commit = commit_at(repository, oid_of(repository, revision))
    except _FAULTS:
        return None
    return commit if commit.tree_id in repository.odb else None


def _commit_named(repository: Any, text: str) -> str | None:
    """The one commit that a text names. A text that is a tag and letters of another commit names none."""
    digits = text.removeprefix(DIGEST)
    if _FULL_ID.fullmatch(digits):
        return digits if _commit(repository, digits) is not None else None
    commits = {commit for commit in (_tagged(repository, text), _abbreviated(repository, text)) if commit is not None}
    return commits.pop() if len(commits) == 1 else None


def _tagged(repository: Any, text: str) -> str | None:
    if not _TAG.fullmatch(text) or any(part in text for part in _FORBIDDEN_IN_TAG) or text.endswith(("/", ".")):
        return None
    try:
        reference = repository.references.get(f"refs/tags/{text}")
        if reference is None:
            return None
        commit = str(peeled(repository, reference.resolve().target).id)
    except _FAULTS:
        return None
    return commit if _commit(repository, commit) is not None else None


def _abbreviated(repository: Any, text: str) -> str | None:
    digits = text.removeprefix(DIGEST)
    if not _PREFIX.fullmatch(digits):
        return None
    digests = [name for name in repository.references if name.startswith(ARTIFACTS + digits)]
    if digits != text and not digests:
        return None
    try:
        commit = str(repository.expand_id(text)) if not digests else digests[0].removeprefix(ARTIFACTS)
    except _FAULTS:  # unknown, or ambiguous
        return None
    return commit if len(digests) < 2 and _commit(repository, commit) is not None else None


@lru_cache(maxsize=4)
def _order(folder: Path, wanted: frozenset[str], head: str) -> tuple[str, ...]:
    """The head and those of its ancestors that are wanted, the oldest first. All of them are there."""
    with using_repository(folder) as repository:
        named = {str(oid_of(repository, revision)): revision for revision in wanted}
        first = str(oid_of(repository, head))
        oids = [pygit2.Oid(hex=commit) for commit in (first, *sorted(named.keys() - {first}))]
        heads = descendants(repository, oids)
        # An ancestor has all descendants of its descendants and itself.
        ancestors: list[Any] = [repository[commit] for commit in oids if heads[commit] & 1]
        ancestors.sort(key=lambda commit: (-heads[commit.id].bit_count(), commit.commit_time))
        return tuple(named[str(commit.id)] for commit in ancestors)


class Relation(StrEnum):
    """A new tip, seen from the commit in force."""

    FORWARD = "forward"
    REWOUND = "rewound"
    """It was in force before, or is older: the branch was set back, or a mirror lags behind."""
    REWRITTEN = "rewritten"
    """Both have grown from a common commit."""
    UNRELATED = "unrelated"


def in_force(folder: Path, name: str) -> str | None:
    """The commit that a reference of the clone pins; None when there is none, or it cannot be read."""
    with suppress(*_FAULTS), using_repository(folder) as repository:
        ref: Any = repository.references.get(name)
        if ref is not None and isinstance(ref.target, str):
            return ref.target.removeprefix(ARTIFACTS)
        return str(peeled(repository, ref.resolve().target).id) if ref is not None else None
    return None


def pin(folder: Path, name: str, commit: str) -> None:
    """Make the reference hold the commit, so that no garbage collection removes the active one.

    The former active commit stays reachable too: the last good content of a broken file may only be there.
    """
    before = in_force(folder, name)
    with reporting(f"{folder}: the clone cannot be written", _FAULTS), using_repository(folder) as repository:
        oid = oid_of(repository, commit)
        if before is not None and before != commit:
            old = oid_of(repository, before)
            if not is_ancestor(repository, old, oid):
                repository.references.create(f"refs/fleet/kept/{before}", old, force=True)
        artifact = ARTIFACTS + commit
        repository.references.create(name, artifact if artifact in repository.references else oid, force=True)


def relation(folder: Path, old: str, new: str) -> Relation:
    """Return the relation of the commit `new` to `old`; both are in the clone, or `old` is lost (then unrelated)."""
    try:
        with using_repository(folder) as repository:
            before, after = oid_of(repository, old), oid_of(repository, new)
            descent = descendants(repository, [after, before])
    except _FAULTS:
        return Relation.UNRELATED
    if descent[before] & 1:
        return Relation.FORWARD
    if descent[after] & 2:
        return Relation.REWOUND
    return Relation.REWRITTEN if 3 in descent.values() else Relation.UNRELATED


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
            absent = _collect_good(store, ancestor, subdir, unknown, good)
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


def states_of(
    store: GitStore, commits: Iterable[str], subdir: str, paths: Collection[str]
) -> Iterator[dict[str, ParsedFile]]:
    """Yield the files at these paths in one commit after another; of a broken one what it was in a later commit."""
    good: dict[str, ParsedFile] = {}
    with suppress(StoreError):
        for commit in islice(commits, COMMITS_MAX):
            absent = _collect_good(store, commit, subdir, paths, good)
            yield {path: file for path, file in good.items() if path not in absent}


def displaced(store: GitStore, revision: str, subdir: str, paths: Collection[str]) -> Earlier:
    """Return the files of the commit before that the revision replaced by something that is no document.

    Raises StoreError: one of the commits cannot be read.
    """
    before = next(store.first_parents(revision), None)
    if before is None:
        return Earlier()
    gone = [path for path in store.changed_paths(before, revision, subdir) if is_document(path) and path not in paths]
    blocked = in_the_way(store.tree(revision, subdir), gone) if gone else {}
    return (
        Earlier(good=good_in(store, before, subdir, blocked.__contains__), in_the_way=blocked) if blocked else Earlier()
    )


def blobs_before(store: GitStore, commits: Iterable[str], subdir: str, ignore_files: Collection[str]) -> dict[str, str]:
    """Return path to blob of the newest commit with readable ignore files; empty if none is found.

    Raises StoreError: a commit cannot be read.
    """
    for ancestor in islice(commits, _READ_MAX):
        files = store.snapshot(ancestor, subdir).files
        if not any(file.faults and file.path in ignore_files for file in files):
            return {file.path: file.blob for file in files if not file.faults}
    return {}


def _collect_good(
    store: GitStore, commit: str, subdir: str, paths: Collection[str], good: dict[str, ParsedFile]
) -> set[str]:
    """Return the paths that the commit does not have; add its good content to `good`, which is not parsed again."""
    try:
        tree = store.tree(commit, subdir)
    except RevisionNotFound:
        return set(paths)
    absent = set[str]()
    for path in sorted(paths):
        try:
            there = resolved(tree, path)
            is_file = there is not None and there[1].kind is EntryKind.FILE
            read = read_file(tree, path, *there) if there is not None and is_file else None
        except Unreadable:
            continue
        if there is None:
            absent.add(path)
        elif read is not None and (path not in good or good[path].blob != read.blob):
            file = parse_file(read)
            if not file.frozen:
                good[path] = file
    return absent


def good_in(store: GitStore, commit: str, subdir: str, is_wanted: Callable[[str], bool]) -> dict[str, ParsedFile]:
    """By path the wanted files of a commit that are good. Raises StoreError: it cannot be read."""
    files = (file for file in store.snapshot(commit, subdir).files if is_wanted(file.path))
    return {file.path: file for file in map(parse_file, files) if not file.frozen}
