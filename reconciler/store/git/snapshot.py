"""Git repositories as stores, read from the object database: nothing is ever checked out. The only user of pygit2.

Import it inside functions: pygit2 costs 90 ms. A caller's text never reaches libgit2's revision parser; names are
looked up exactly, and `~2` and `^` are walked here.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Collection, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pygit2
from pygit2.enums import FileMode, ReferenceFilter

from reconciler.api.fleet import Snapshot
from reconciler.api.refs import CommitWords, short_revision
from reconciler.clock import rfc3339
from reconciler.errors import RevisionNotFound, StoreError
from reconciler.store.file_walk import MAX_ENTRIES, EntryKind, FolderEntry, Taker, Unreadable, as_read, read_tree
from reconciler.store.git.repository import (
    FAULTS,
    changed_entries,
    close,
    entries_by_name,
    last_change,
    missing_object,
    oid_of,
    open_repository,
    peeled,
    refuse_large_bases,
    reporting,
    tree_at,
)
from reconciler.store.git.url import SHA256, is_revision_name
from reconciler.store.ignore import IGNORE_FILE
from reconciler.yaml import MAX_BYTES

_COMMIT_ID: Final = re.compile(r"[0-9a-f]{4,64}", re.ASCII)
_ANCESTRY: Final = re.compile(r"(?P<name>[^~^]+)(?P<steps>(?:~[0-9]{0,4}|\^[0-9]?)*)", re.ASCII)
_STEP: Final = re.compile(r"([~^])([0-9]*)", re.ASCII)
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

_SHALLOW: Final = (
    "this clone is shallow and lacks what came before; fetch it with git fetch --unshallow, or check out with "
    "fetch-depth: 0 (GitHub), GIT_DEPTH: 0 (GitLab)"
)

_BRANCHES_MAX: Final = 1_000


class GitStore:
    """A repository: the folder of a work tree, or a bare one."""

    def __init__(self, path: Path) -> None:
        """Open it. Raises StoreError: it is no repository, or not one that libgit2 opens."""
        try:
            self._repository = open_repository(path)
        except FAULTS as error:
            # As git itself, libgit2 trusts no repository of another user: its configuration could run commands.
            way = f"; run this as its owner, or `git config --global --add safe.directory {path}`"
            way = way if "not owned by current user" in str(error) else ""
            own = path / ".git"
            is_closed = os.path.lexists(own) and not os.access(own, os.R_OK, effective_ids=True)
            why = f"this user may not read {own}; fix its owner or mode" if is_closed else f"{error}{way}"
            why = f"{SHA256}, or read its files with --dir" if "object format 'sha256'" in why else why
            raise StoreError(f"{path}: not a Git repository that can be opened: {why}") from error

    def __enter__(self) -> Self:
        """The open repository."""
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, at: TracebackType | None) -> None:
        """Give its memory back; it is of no use any more."""
        close(self._repository)

    def resolve(self, rev: str) -> str:
        """The commit id of HEAD, a branch, a tag, a full or abbreviated commit id, with `~N` and `^N` after it.

        Raises:
            RevisionNotFound: no such commit, an ambiguous name, or a text that names none.
            StoreError: an object is missing or corrupt.
        """
        match = _ANCESTRY.fullmatch(rev)
        if match is None:
            raise RevisionNotFound(f"{_quoted(rev)} is no branch, tag or commit id")
        try:
            commit = self._with_name(match["name"])
            for sign, digits in _STEP.findall(match["steps"]):
                number = int(digits or 1)
                for _ in range(number if sign == "~" else min(number, 1)):
                    parents, index = commit.parent_ids, number - 1 if sign == "^" else 0
                    if index >= len(parents):
                        raise RevisionNotFound(f"{rev} goes back further than the history reaches ('git log' shows it)")
                    commit = self._commit(str(parents[index]))
        except RevisionNotFound as error:
            if self._repository.is_shallow:
                raise RevisionNotFound(f"{error}; {_SHALLOW}") from error
            raise
        return str(commit.id)

    @property
    def is_shallow(self) -> bool:
        """Return whether the history ends at a shallow boundary."""
        return bool(self._repository.is_shallow)

    def first_parents(self, commit: str) -> Iterator[str]:
        """The ancestors of a commit along first parents, the newest first.

        Raises StoreError: one of them is missing or corrupt.
        """
        parents = self._commit(commit).parent_ids
        while parents:
            parent = self._commit(str(parents[0]))
            yield str(parent.id)
            parents = parent.parent_ids

    @property
    def folder(self) -> Path:
        """Git's own folder; of a linked work tree its own one, below that of the main repository."""
        return Path(self._repository.path)

    @property
    def detached_at(self) -> str:
        """The commit at which HEAD is detached; empty when a branch is checked out, or nothing yet."""
        return str(self._repository.head.target) if self._repository.head_is_detached else ""

    def snapshot(self, commit: str, subdir: str = "", known: Collection[str] = (), take: Taker = as_read) -> Snapshot:
        """The files of a commit, below `subdir` when given. `commit` is an id as `resolve` gives it.

        `known`: what the caller has parsed already, by `memo_key`; such a file comes without its data. `take`: gets the
        others one by one.

        Raises RevisionNotFound: the commit has no such folder; StoreError: an object is missing or corrupt.
        """
        return read_tree(commit, self.tree(commit, subdir), known, take)

    def tree(self, commit: str, subdir: str = "") -> _CommitTree:
        """The tree of a commit, below `subdir` when given, for those who read it themselves.

        Raises RevisionNotFound: the commit has no such folder; StoreError: an object is missing or corrupt.
        """
        return _CommitTree(self._repository, self._tree(commit, subdir))

    def read_blob(self, blob: str) -> bytes | None:
        """The content of a blob by its full id, such as the last good version of a file; None when it is gone."""
        if len(blob) not in (40, 64) or not _COMMIT_ID.fullmatch(blob):
            return None
        with reporting(f"the object {blob} is corrupt"):
            oid = pygit2.Oid(hex=blob)
            if oid not in self._repository.odb:
                return None
            refuse_large_bases(self._repository, oid)
            if self._repository.odb.read_header(oid)[1] > MAX_BYTES:
                return None
            content: Any = self._repository.get(blob)
        return bytes(content.data) if isinstance(content, pygit2.Blob) else None

    def changed_paths(self, base: str, head: str, subdir: str = "", most: int = 2 * MAX_ENTRIES) -> tuple[str, ...]:
        """Paths of files that differ between two commits, sorted. Equal subtrees are not entered.

        Raises:
            RevisionNotFound: a commit has no such folder.
            StoreError: an object is missing or corrupt, or more than `most` names of both would be compared.
        """
        before, after = self._tree(base, subdir), self._tree(head, subdir)
        try:
            return tuple(sorted(changed_entries(self._repository, before, after, most)))
        except FAULTS as error:
            raise missing_object(self._repository, f"an object between {base} and {head}", error) from error

    def words(self, commit: str) -> CommitWords:
        """Return author, first line and time of a commit."""
        written = self._commit(commit)
        lines = written.raw_message.decode("utf-8", errors="replace").strip().splitlines()
        author = written.author.raw_name.decode("utf-8", errors="replace")
        try:
            time = rfc3339(written.author.time)
        except (ValueError, OverflowError, OSError):
            time = ""  # No calendar has it.
        return CommitWords(_clean(author), _clean(lines[0] if lines else ""), time)

    def last_change(self, commit: str, path: str) -> str:
        """Return the last commit up to this one that changed a file; StoreError: one is missing or corrupt."""
        try:
            change = last_change(self._repository, commit, path)
            return str(change.id) if change is not None else commit
        except FAULTS as error:
            raise missing_object(self._repository, f"the history of {commit}", error) from error

    def _with_name(self, name: str) -> pygit2.Commit:
        if name in {"HEAD", "@"}:
            return self._peel(self._head(), name)
        if not is_revision_name(name):
            raise RevisionNotFound(f"{_quoted(name)} is no branch, tag or commit id")
        by_ref: dict[str, pygit2.Commit] = {}
        full = [name] if name.startswith("refs/") else [f"refs/{kind}/{name}" for kind in ("tags", "heads", "remotes")]
        for reference in full:
            with reporting(f"the reference {reference} cannot be read"):
                named = self._repository.references.get(reference)
                target = named.resolve().target if named is not None else None
            if target is not None:
                commit = self._peel(target, name)
                by_ref[str(commit.id)] = commit
        if len(by_ref) > 1:
            raise RevisionNotFound(f"{name} is a branch and a tag; write refs/heads/{name} or refs/tags/{name}")
        return next(iter(by_ref.values())) if by_ref else self._by_id(name)

    def _head(self) -> Any:
        with reporting(f"HEAD in {self.folder} cannot be read"):
            if not self._repository.head_is_unborn:
                return self._repository.head.target
            missing = _clean(str(self._repository.lookup_reference("HEAD").target)).removeprefix("refs/heads/")
        if branches := self._branches_near(missing):
            raise RevisionNotFound(
                f"HEAD is at the branch {missing}, which is gone{branches}; check out one, or give --rev"
            )
        why = "the repository has no commit yet, or its last branch was deleted"
        raise RevisionNotFound(f"{why}; commit the store first")

    def _branches_near(self, text: str) -> str:
        try:
            heads = self._repository.references.iterator(ReferenceFilter.BRANCHES)
            known = sorted(_clean(oid.shorthand) for oid in islice(heads, _BRANCHES_MAX))
        except FAULTS:
            return ""
        near = difflib.get_close_matches(text, known, n=3) or known[:3]
        return f" (branches here: {', '.join(near)})" if near else ""

    def _by_id(self, text: str) -> pygit2.Commit:
        if not _COMMIT_ID.fullmatch(text):
            way = f"{self._branches_near(text)}; 'git fetch' brings those of the server"
            raise RevisionNotFound(f"there is no branch or tag {text}, and it is no commit id{way}")
        try:
            oid = oid_of(self._repository, text) if len(text) in (40, 64) else self._repository.expand_id(text)
            if oid not in self._repository.odb:
                raise KeyError(text)
        except KeyError as error:
            raise RevisionNotFound(f"there is no branch, tag or commit {text}") from error
        except ValueError as error:
            raise RevisionNotFound(f"{text} is ambiguous; write more of the commit id") from error
        except pygit2.GitError as error:
            raise StoreError(f"the object {text} cannot be read: {error}") from error
        return self._peel(oid, text)

    def _peel(self, target: Any, name: str) -> pygit2.Commit:
        try:
            commit = peeled(self._repository, target)
        except FAULTS as error:
            what = f"{name} leads to an object that may not be read, or"
            raise missing_object(self._repository, what, error) from error
        if not isinstance(commit, pygit2.Commit):
            raise RevisionNotFound(f"{name} is no commit")
        return commit

    def _commit(self, commit: str) -> pygit2.Commit:
        try:
            return self._peel(oid_of(self._repository, commit), commit)
        except ValueError as error:
            raise RevisionNotFound(f"{_quoted(commit)} is no commit id") from error

    def _tree(self, commit: str, subdir: str) -> pygit2.Tree:
        oid = self._commit(commit).tree_id
        try:
            tree = tree_at(self._repository, oid)
            for part in filter(None, subdir.split("/")):
                if part not in tree or tree[part].filemode != FileMode.TREE:
                    raise RevisionNotFound(f"the commit {short_revision(commit)} has no folder {subdir}")
                tree = tree_at(self._repository, tree[part].id)
        except FAULTS as error:
            raise missing_object(self._repository, f"a folder of {commit}", error) from error
        return tree


_KINDS: Final = {
    FileMode.BLOB: EntryKind.FILE,
    FileMode.BLOB_EXECUTABLE: EntryKind.FILE,
    FileMode.TREE: EntryKind.FOLDER,
    FileMode.LINK: EntryKind.LINK,
    FileMode.COMMIT: EntryKind.REPOSITORY,
}


_TREES_KEPT: Final = 256


class _CommitTree:
    """A `StoreTree` over a tree object. Handles of entries are object ids.

    `is_plain`: the folders that were listed hold only files and folders, and no ignore file.
    """

    def __init__(self, repository: pygit2.Repository, root: pygit2.Tree) -> None:
        self._repository = repository
        self._odb = repository.odb
        self._root = root.id
        self.is_plain = True
        # A path is looked up from the root: without it each folder would be decoded once for each folder below it.
        self._names = lru_cache(maxsize=_TREES_KEPT)(self._names_in)

    def children(self, folder: str) -> Iterable[FolderEntry]:
        entry = self.entry(folder) if folder else FolderEntry("", EntryKind.FOLDER, self._root)
        assert entry is not None and entry.kind is EntryKind.FOLDER, folder
        return self._names(entry.handle).values()

    def entry(self, path: str) -> FolderEntry | None:
        """Return the entry at a path; a link is not followed."""
        here = FolderEntry("", EntryKind.FOLDER, self._root)
        for part in path.split("/"):
            if here.kind is not EntryKind.FOLDER:
                return None
            below = self._names(here.handle).get(part)
            if below is None:
                return None
            here = below
        return here

    def blob(self, entry: FolderEntry) -> str | None:
        return str(entry.handle)

    def read(self, path: str, entry: FolderEntry, limit: int) -> tuple[str, bytes]:
        """Blob id and content of a file. Blanks stand for one that is longer than the limit: it is never unpacked."""
        data = self._blob(path, entry, limit)
        return str(entry.handle), _blanks(limit) if data is None else data

    def target(self, path: str, entry: FolderEntry) -> str:
        text = self._blob(path, entry, 4096)
        if text is None:
            raise Unreadable("the link is longer than a path can be; fix it or take it out")
        return text.decode("utf-8", errors="surrogateescape")

    def _names_in(self, oid: Any) -> dict[str, FolderEntry]:
        try:
            entries = {
                name: FolderEntry(name, _KINDS.get(item.filemode, EntryKind.SPECIAL), item.id)
                for name, item in entries_by_name(tree_at(self._repository, oid)).items()
            }
        except FAULTS as error:
            raise missing_object(self._repository, f"the tree {oid}", error) from error
        if IGNORE_FILE in entries or {entry.kind for entry in entries.values()} - {EntryKind.FILE, EntryKind.FOLDER}:
            self.is_plain = False
        return entries

    def _blob(self, path: str, entry: FolderEntry, limit: int) -> bytes | None:
        """Return the content; None if its header shows that it is as long as the limit, or longer."""
        try:
            refuse_large_bases(self._repository, entry.handle)
            _, size = self._odb.read_header(entry.handle)
            if size >= limit:
                return None
            _, data = self._odb.read(entry.handle)
        except StoreError as error:
            raise Unreadable(str(error)) from error
        except FAULTS as error:
            raise missing_object(self._repository, f"{path}: its object {entry.handle}", error) from error
        return bytes(data)


@lru_cache(maxsize=4)
def _blanks(length: int) -> bytes:
    return b" " * length


def _clean(text: str) -> str:
    """Text of a stranger, fit for a terminal: one line without control characters."""
    return _CONTROL.sub("\ufffd", text)[:500]


def _quoted(rev: str) -> str:
    return repr(rev[:80])
