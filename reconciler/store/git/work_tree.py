"""A commit in the work tree of a person: one file, by the author that their own settings name, and nothing else.

What a commit of one file could spoil is refused: other changes of that file, an operation under way, a detached HEAD.
What is staged of other files stays staged and is not committed. Hooks are not run, so signed commits are not made.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pygit2
from pygit2.enums import FileMode, FileStatus

from reconciler.errors import RevisionNotFound, StoreError
from reconciler.store.git.repository import FAULTS, close, open_repository
from reconciler.store.git.snapshot import GitStore


class Committed(NamedTuple):
    """The id of a commit, and the branch that has it now."""

    commit: str
    branch: str


def commit_file(file: Path, data: bytes, subject: str, environ: Mapping[str, str]) -> Committed:
    """Write a file of a work tree and commit it alone. `environ`: may say who does, as Git lets it.

    Raises:
        StoreError: there is no such repository, or it is not in a state in which that is safe; nothing was changed.
    """
    folder = _work_tree_of(file)
    try:
        repository = open_repository(folder)
    except pygit2.GitError as error:
        raise StoreError(f"{folder}: the repository cannot be opened: {error}") from error
    try:
        return _committed(repository, folder, file, data, subject, environ)
    except FAULTS as error:
        raise StoreError(f"{folder}: the commit could not be made: {error}") from error
    finally:
        close(repository)


def resolved(folder: Path, revision: str) -> str:
    """The full id of a commit that the repository of a folder has.

    Raises:
        StoreError: there is no repository, or it has no such commit.
    """
    root = _work_tree_of(folder / "any")
    try:
        with GitStore(root) as store:
            return store.resolve(revision)
    except RevisionNotFound:
        raise StoreError(f"{root}: it has no commit {revision}; 'git fetch' may bring it") from None


def _work_tree_of(file: Path) -> Path:
    """The folder of the repository around a file: the first that has a `.git`.

    Raises:
        StoreError: none has.
    """
    for folder in file.absolute().parents:
        if os.path.lexists(folder / ".git"):
            return folder
    raise StoreError(f"{file.parent}: it is in no Git repository; a commit is made in a checkout")


def _committed(
    repository: Any, folder: Path, file: Path, data: bytes, subject: str, environ: Mapping[str, str]
) -> Committed:
    path = str(file.absolute().relative_to(folder))
    _refuse(repository, folder, path)
    author, committer = (signature(repository, folder, who, environ) for who in ("AUTHOR", "COMMITTER"))
    parent = repository.head.peel(pygit2.Commit)
    mode, before = parent.tree[path].filemode, file.read_bytes()
    if mode not in (FileMode.BLOB, FileMode.BLOB_EXECUTABLE):
        raise StoreError(f"{path}: it is a link; add the entry by hand where it leads")
    _write(file, data)
    try:
        # As Git itself would: the filters of the repository are applied, line ends among them.
        entry = pygit2.IndexEntry(path, repository.create_blob_fromworkdir(path), FileMode(mode))
        alone = pygit2.Index()
        alone.read_tree(parent.tree)
        alone.add(entry)
        tree = alone.write_tree(repository)
        made = repository.create_commit("HEAD", author, committer, subject, tree, [parent.id])
    except BaseException:
        _write(file, before)
        raise
    repository.index.read()
    repository.index.add(entry)
    repository.index.write()
    return Committed(str(made), repository.head.shorthand)


def _refuse(repository: Any, folder: Path, path: str) -> None:
    """Nothing, when a commit of this file alone spoils nothing."""
    if repository.is_bare or repository.head_is_unborn:
        raise StoreError(f"{folder}: nothing is committed there yet; commit the store first")
    if repository.head_is_detached:
        raise StoreError(f"{folder}: HEAD is detached, so that a commit would be on no branch; check out a branch")
    if repository.state():
        raise StoreError(f"{folder}: a merge, rebase or the like is under way; finish it first")
    try:
        status = repository.status_file(path)
    except KeyError:
        status = FileStatus.WT_NEW
    if status & (FileStatus.WT_NEW | FileStatus.INDEX_NEW | FileStatus.IGNORED):
        raise StoreError(f"{path}: it is not committed yet; commit it first")
    if status != FileStatus.CURRENT:
        raise StoreError(f"{path}: it has changes that are not committed; commit or stash them first")
    refuse_signing(repository, folder)


def refuse_signing(repository: Any, folder: Path) -> None:
    """Nothing, unless the person's settings want signed commits.

    Raises:
        StoreError: they do.
    """
    if "commit.gpgsign" in repository.config and repository.config.get_bool("commit.gpgsign"):
        raise StoreError(f"{folder}: commit.gpgsign is set, and no signed commit is made here; make the edit by hand")


def signature(repository: Any, folder: Path, who: str, environ: Mapping[str, str]) -> Any:
    """Return `AUTHOR` or `COMMITTER`, as Git finds them: from the environment, else from the settings.

    Raises:
        StoreError: neither says who it is.
    """
    config = repository.config
    settings = [str(config[name]) if name in config else "" for name in ("user.name", "user.email")]
    name, email = environ.get(f"GIT_{who}_NAME") or settings[0], environ.get(f"GIT_{who}_EMAIL") or settings[1]
    if not name or not email:
        raise StoreError(f"{folder}: it is not known who you are; set git config user.name and user.email")
    return pygit2.Signature(name, email)


def _write(file: Path, data: bytes) -> None:
    """In one step, with the mode that the file has."""
    new = file.with_name(f".{file.name}.new")
    try:
        new.write_bytes(data)
        new.chmod(file.stat().st_mode & 0o777)
        new.replace(file)
    finally:
        new.unlink(missing_ok=True)
