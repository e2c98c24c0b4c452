"""Commits on a branch that nobody has checked out. Work tree, index and HEAD of the person stay as they are.

A branch only grows: what somebody put on it stays, and a branch that went another way is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pygit2
from pygit2.enums import FileMode

from reconciler.errors import StoreError
from reconciler.store.git.repository import using_repository
from reconciler.store.git.work_tree import Committed, refuse_signing, signature

_FAULTS: Final = (pygit2.GitError, KeyError, ValueError, OSError)


class FileEdit(NamedTuple):
    """One file, by its path in the repository. None: there is none, before or after."""

    path: str
    before: bytes | None
    data: bytes | None


def base_of(folder: Path, branch: str, onto: str = "HEAD") -> str:
    """The commit that the next commit on a branch comes after: its tip, or `onto` where the branch brings nothing more.

    Raises:
        StoreError: the name is no branch's, the branch is checked out, or it and `onto` went different ways.
    """
    try:
        with using_repository(folder) as repository:
            return str(_base(repository, folder, branch, onto))
    except _FAULTS as error:
        raise StoreError(f"{folder}: the branch {branch} cannot be looked at: {error}") from error


def commit_on(
    folder: Path, branch: str, base: str, edits: Iterable[FileEdit], message: str, environ: Mapping[str, str]
) -> Committed | None:
    """The commit of edits after `base`, which the branch then has; None when they change nothing.

    Raises:
        StoreError: the branch moved meanwhile, a file is another one than `before`, it is not known who commits, or
            commits have to be signed. The branch stays where it is.
    """
    try:
        with using_repository(folder) as repository:
            return _committed(repository, folder, branch, base, edits, message, environ)
    except _FAULTS as error:
        raise StoreError(f"{folder}: the commit could not be made: {error}") from error


def _base(repository: Any, folder: Path, branch: str, onto: str) -> Any:
    name = f"refs/heads/{branch}"
    if not pygit2.reference_is_valid_name(name) or branch.startswith("-"):
        raise StoreError(f"{branch!r} cannot name a branch")
    head: Any = repository.references.get("HEAD")
    checked_out = head is not None and head.target == name
    found: Any = repository.lookup_branch(branch)
    if checked_out or (found is not None and found.is_checked_out()):
        raise StoreError(f"{folder}: the branch {branch} is checked out; name another one, or write the files instead")
    start = repository.revparse_single(f"{onto}^{{commit}}").id
    if found is None:
        return start
    tip = found.peel(pygit2.Commit).id
    common = repository.merge_base(tip, start)
    if common == tip:
        return start
    if common == start:
        return tip
    raise StoreError(
        f"{folder}: the branch {branch} and {onto} went different ways; rebase or merge it, or delete it: "
        f"git branch -D {branch}"
    )


def _committed(
    repository: Any,
    folder: Path,
    branch: str,
    base: str,
    edits: Iterable[FileEdit],
    message: str,
    environ: Mapping[str, str],
) -> Committed | None:
    refuse_signing(repository, folder)
    parent = repository[pygit2.Oid(hex=base)]
    index = pygit2.Index()
    index.read_tree(parent.tree)
    for edit in edits:
        _edit(repository, parent.tree, index, edit)
    tree = index.write_tree(repository)
    if tree == parent.tree.id:
        return None
    author, committer = (signature(repository, folder, who, environ) for who in ("AUTHOR", "COMMITTER"))
    made = repository.create_commit(None, author, committer, message, tree, [parent.id])
    found: Any = repository.lookup_branch(branch)
    moved = (
        found is not None
        and found.peel(pygit2.Commit).id not in (parent.id,)
        and not repository.descendant_of(parent.id, found.peel(pygit2.Commit).id)
    )
    if moved:
        raise StoreError(f"{folder}: the branch {branch} moved meanwhile; begin again")
    repository.references.create(f"refs/heads/{branch}", made, force=found is not None)
    return Committed(str(made), branch)


def _edit(repository: Any, tree: Any, index: Any, edit: FileEdit) -> None:
    """Put one file into an index, if it is unchanged since it was read."""
    try:
        there: Any = tree[edit.path]
    except KeyError:
        there = None
    if there is not None and there.filemode not in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE):
        raise StoreError(f"{edit.path}: it is no ordinary file, and stays as it is")
    if (None if there is None else there.data) != edit.before:
        raise StoreError(f"{edit.path}: it is another file than was read; begin again")
    if edit.data is None:
        index.remove(edit.path)
    else:
        mode = FileMode.BLOB if there is None else FileMode(there.filemode)
        index.add(pygit2.IndexEntry(edit.path, repository.create_blob(edit.data), mode))
