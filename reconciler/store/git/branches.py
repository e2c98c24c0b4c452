"""Commits: on a branch that nobody has checked out, or of one file in the work tree of a person.

A branch only grows: what somebody put on it stays, and a branch that went another way is refused; work tree, index and
HEAD of the person stay as they are. In a work tree, what a commit of one file could spoil is refused: other changes of
that file, an operation under way, a detached HEAD. What is staged of other files stays staged and is not committed.
Hooks are not run, so signed commits are not made.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pygit2
from pygit2.enums import FileMode, FileStatus

from reconciler.api.refs import short_revision
from reconciler.errors import RevisionNotFound, StoreError
from reconciler.store.git.repository import FAULTS, close, is_ancestor, open_repository, reporting, using_repository
from reconciler.store.git.snapshot import GitStore


class Committed(NamedTuple):
    """The id of a commit, and the branch that has it now."""

    commit: str
    branch: str


def commit_file(file: Path, data: bytes, subject: str, environ: Mapping[str, str]) -> Committed:
    """Write a file of a work tree and commit it alone. `environ`: may say who does, as Git lets it.

    Raises StoreError: there is no such repository, or it is not in a state in which that is safe; nothing was changed.
    """
    folder = _work_tree_of(file)
    try:
        repository = open_repository(folder)
    except pygit2.GitError as error:
        raise StoreError(f"{folder}: the repository cannot be opened: {error}") from error
    try:
        path = str(file.absolute().relative_to(folder))
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
            commit = repository.create_commit("HEAD", author, committer, subject, tree, [parent.id])
        except BaseException:
            _write(file, before)
            raise
        repository.index.read()
        repository.index.add(entry)
        repository.index.write()
        return Committed(str(commit), repository.head.shorthand)
    except FAULTS as error:
        raise StoreError(f"{folder}: the commit could not be made: {error}") from error
    finally:
        close(repository)


def resolved(folder: Path, revision: str) -> str:
    """The full id of a commit that the repository of a folder has.

    Raises StoreError: there is no repository, or it has no such commit.
    """
    root = _work_tree_of(folder / "any")
    try:
        with GitStore(root) as store:
            return store.resolve(revision)
    except RevisionNotFound:
        raise StoreError(f"{root}: it has no commit {revision}; 'git fetch' may bring it") from None


def _work_tree_of(file: Path) -> Path:
    for folder in file.absolute().parents:
        if os.path.lexists(folder / ".git"):
            return folder
    raise StoreError(f"{file.parent}: it is in no Git repository; a commit is made in a checkout")


def refuse_signing(repository: Any, folder: Path) -> None:
    """Nothing, unless the person's settings want signed commits. Raises StoreError: they do."""
    if "commit.gpgsign" in repository.config and repository.config.get_bool("commit.gpgsign"):
        raise StoreError(f"{folder}: commit.gpgsign is set, and no signed commit is made here; make the edit by hand")


def signature(repository: Any, folder: Path, who: str, environ: Mapping[str, str]) -> Any:
    """Return `AUTHOR` or `COMMITTER`, as Git finds them: from the environment, else from the settings.

    Raises StoreError: neither says who it is.
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


class FileEdit(NamedTuple):
    """One file, by its path in the repository. None: there is none, before or after."""

    path: str
    before: bytes | None
    data: bytes | None


def base_of(folder: Path, branch: str) -> str:
    """The commit that the next commit on a branch comes after: its tip, or HEAD where the branch brings nothing more.

    Raises StoreError: the name is no branch's, the branch is checked out, or it and HEAD went different ways.
    """
    name = f"refs/heads/{branch}"
    with reporting(f"{folder}: the branch {branch} cannot be looked at"), using_repository(folder) as repository:
        if not pygit2.reference_is_valid_name(name) or branch.startswith("-"):
            raise StoreError(f"{branch!r} cannot name a branch")
        head: Any = repository.references.get("HEAD")
        reference: Any = repository.lookup_branch(branch)
        if (head is not None and head.target == name) or (reference is not None and reference.is_checked_out()):
            raise StoreError(
                f"{folder}: the branch {branch} is checked out; name another one, or write the files instead"
            )
        if repository.head_is_unborn:
            raise StoreError(f"{folder}: nothing is committed there yet; commit the store first")
        start: Any = repository.revparse_single("HEAD^{commit}").id
        if reference is None:
            return str(start)
        tip = reference.peel(pygit2.Commit).id
        if is_ancestor(repository, tip, start):
            return str(start)
        if is_ancestor(repository, start, tip):
            return str(tip)
    raise StoreError(
        f"{folder}: the branch {branch} and HEAD went different ways; rebase or merge it, or delete it: "
        f"git branch -D {branch}"
    )


def commit_on(
    folder: Path, branch: str, base: str, edits: Iterable[FileEdit], message: str, environ: Mapping[str, str]
) -> Committed | None:
    """The commit of edits after `base`, which the branch then has; None when they change nothing.

    Raises StoreError: the branch moved meanwhile, a file is another one than `before`, it is not known who commits, or
    commits have to be signed. The branch stays where it is.
    """
    with reporting(f"{folder}: no commit on branch {branch} could be made"), using_repository(folder) as repository:
        refuse_signing(repository, folder)
        parent: Any = repository[pygit2.Oid(hex=base)]
        index = pygit2.Index()
        index.read_tree(parent.tree)
        for edit in edits:
            try:
                there: Any = parent.tree[edit.path]
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
        tree = index.write_tree(repository)
        if tree == parent.tree.id:
            return None
        author, committer = (signature(repository, folder, who, environ) for who in ("AUTHOR", "COMMITTER"))
        commit = repository.create_commit(None, author, committer, message, tree, [parent.id])
        reference: Any = repository.lookup_branch(branch)
        if reference is not None and not is_ancestor(repository, reference.peel(pygit2.Commit).id, parent.id):
            raise StoreError(f"{folder}: the branch {branch} moved meanwhile; begin again")
        repository.references.create(f"refs/heads/{branch}", commit, force=reference is not None)
        return Committed(str(commit), branch)


@contextmanager
def copied(folder: Path, commit: str) -> Iterator[Path]:
    """The files of a commit in a folder of their own, which is removed afterwards; links and submodules are left out.

    It is a repository without commits, so that what stands in it counts as files of a work tree.
    Raises StoreError: the repository cannot be read.
    """
    with tempfile.TemporaryDirectory(prefix="fleet-copy-") as temporary:
        root = Path(temporary)
        try:
            with using_repository(folder) as repository:
                for path, entry in _blobs(repository[pygit2.Oid(hex=commit)].tree, ""):
                    file = root / path
                    file.parent.mkdir(parents=True, exist_ok=True)
                    file.write_bytes(entry.data)
            pygit2.init_repository(temporary)
        except FAULTS as error:
            raise StoreError(f"{folder}: {short_revision(commit)} cannot be copied: {error}") from error
        yield root


def edits_of(folder: Path, commit: str, copy: Path) -> list[FileEdit]:
    """Return the edits that make a commit equal to its changed copy, by path.

    Raises StoreError: the repository cannot be read.
    """
    with reporting(f"{folder}: {short_revision(commit)} cannot be read"), using_repository(folder) as repository:
        before = {path: entry.data for path, entry in _blobs(repository[pygit2.Oid(hex=commit)].tree, "")}
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
