"""Commits on a branch that nobody has checked out. Work tree, index and HEAD of the person stay as they are.

A branch only grows: what somebody put on it stays, and a branch that went another way is refused.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pygit2
from pygit2.enums import FileMode

from reconciler.api.refs import short_revision
from reconciler.errors import StoreError
from reconciler.store.git.repository import FAULTS, is_ancestor, using_repository
from reconciler.store.git.work_tree import Committed, refuse_signing, signature


class FileEdit(NamedTuple):
    """One file, by its path in the repository. None: there is none, before or after."""

    path: str
    before: bytes | None
    data: bytes | None


def base_of(folder: Path, branch: str) -> str:
    """The commit that the next commit on a branch comes after: its tip, or HEAD where the branch brings nothing more.

    Raises:
        StoreError: the name is no branch's, the branch is checked out, or it and HEAD went different ways.
    """
    name = f"refs/heads/{branch}"
    try:
        with using_repository(folder) as repository:
            if not pygit2.reference_is_valid_name(name) or branch.startswith("-"):
                raise StoreError(f"{branch!r} cannot name a branch")
            head: Any = repository.references.get("HEAD")
            found: Any = repository.lookup_branch(branch)
            if (head is not None and head.target == name) or (found is not None and found.is_checked_out()):
                raise StoreError(
                    f"{folder}: the branch {branch} is checked out; name another one, or write the files instead"
                )
            if repository.head_is_unborn:
                raise StoreError(f"{folder}: nothing is committed there yet; commit the store first")
            start: Any = repository.revparse_single("HEAD^{commit}").id
            if found is None:
                return str(start)
            tip = found.peel(pygit2.Commit).id
            if is_ancestor(repository, tip, start):
                return str(start)
            if is_ancestor(repository, start, tip):
                return str(tip)
    except FAULTS as error:
        raise StoreError(f"{folder}: the branch {branch} cannot be looked at: {error}") from error
    raise StoreError(
        f"{folder}: the branch {branch} and HEAD went different ways; rebase or merge it, or delete it: "
        f"git branch -D {branch}"
    )


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
            refuse_signing(repository, folder)
            parent: Any = repository[pygit2.Oid(hex=base)]
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
            if found is not None and not is_ancestor(repository, found.peel(pygit2.Commit).id, parent.id):
                raise StoreError(f"{folder}: the branch {branch} moved meanwhile; begin again")
            repository.references.create(f"refs/heads/{branch}", made, force=found is not None)
            return Committed(str(made), branch)
    except FAULTS as error:
        raise StoreError(f"{folder}: the commit could not be made: {error}") from error


@contextmanager
def copied(folder: Path, commit: str) -> Iterator[Path]:
    """The files of a commit in a folder of their own, which is removed afterwards; links and submodules are left out.

    It is a repository without commits, so that what stands in it counts as files of a work tree.

    Raises:
        StoreError: the repository cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-copy-") as made:
        root = Path(made)
        try:
            with using_repository(folder) as repository:
                for path, entry in _blobs(repository[pygit2.Oid(hex=commit)].tree, ""):
                    file = root / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(entry.data)
            pygit2.init_repository(made)
        except FAULTS as error:
            raise StoreError(f"{folder}: {short_revision(commit)} cannot be copied: {error}") from error
        yield root


def edits_of(folder: Path, commit: str, copy: Path) -> list[FileEdit]:
    """Return the edits that make a commit equal to its changed copy, by path.

    Raises:
        StoreError: the repository cannot be read.
    """
    try:
        with using_repository(folder) as repository:
            before = {path: entry.data for path, entry in _blobs(repository[pygit2.Oid(hex=commit)].tree, "")}
    except FAULTS as error:
        raise StoreError(f"{folder}: {short_revision(commit)} cannot be read: {error}") from error
    files = (path for path in copy.rglob("*") if path.is_file() and ".git" not in path.relative_to(copy).parts)
    after = {path.relative_to(copy).as_posix(): path.read_bytes() for path in files}
    paths = sorted(path for path in before | after if before.get(path) != after.get(path))
    return [FileEdit(path, before.get(path), after.get(path)) for path in paths]


def _blobs(tree: Any, above: str) -> Iterator[tuple[str, Any]]:
    for entry in tree:
        if entry.filemode == FileMode.TREE:
            yield from _blobs(entry, f"{above}{entry.name}/")
        elif entry.filemode in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE):
            yield f"{above}{entry.name}", entry


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
