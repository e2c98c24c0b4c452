"""The meaning of STORE on the command line, its snapshot, and a check of its work tree's HEAD."""

from __future__ import annotations

import os
from collections.abc import Collection
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from reconciler.api.fleet import Snapshot
from reconciler.api.refs import short_revision
from reconciler.clock import rfc3339
from reconciler.errors import ConfigurationError, StoreError, StoreUnsettled
from reconciler.fleet import is_store_file
from reconciler.regex import regex
from reconciler.store.directory import read_directory
from reconciler.store.file_walk import Taker, as_read

if TYPE_CHECKING:
    from reconciler.store.git.snapshot import GitStore

_WITH_NAMES_OF_BRANCHES: Final = frozenset({"objects", "refs", "logs", "modules", "worktrees"})
"""Folders of a bare repository that hold no file of a person, or files that are named as people name branches."""
_SPARSE: Final = regex(r"(?im)^[ \t]*sparsecheckout[ \t]*=[ \t]*true")
_OPERATIONS: Final = (
    ("rebase-apply/applying", "a git am"),
    ("rebase-apply", "a rebase"),
    ("rebase-merge", "a rebase"),
    ("MERGE_HEAD", "a merge"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a cherry-pick or revert of several commits"),
    ("BISECT_LOG", "a bisect"),
)
"""Files of a work tree during an unfinished operation. Source: Git, `wt_status_get_state`."""


class StoreKind(StrEnum):
    """The kind of the store's place."""

    DIRECTORY = "directory"
    WORK_TREE = "work tree"
    BARE_REPOSITORY = "bare repository"


class StoreLocation(Struct, frozen=True, kw_only=True):
    """An existing store. `repository` is the folder that Git opens; `subdir` the store's path inside of it.

    `folder`: device, inode and time of a bare repository's folder, which change when it is swapped or gets new entries.
    """

    kind: StoreKind
    path: Path
    repository: Path | None = None
    subdir: str = ""
    folder: tuple[int, int, int] | None = None

    def __str__(self) -> str:
        return str(self.path)


def _advice(text: str) -> str:
    host, slash, path = text.partition("/")
    if slash and "@" in host:
        return f"a repository over ssh is written {host}:{path}"
    if text.startswith("~"):
        return "a shell replaces ~ outside of quotes alone"
    if slash and "." in host.strip("."):
        return f"a repository of a server is written https://{text}, a folder ./{text}"
    return "name the folder of the store or a bare repository; --rev and --base name revisions, --cluster clusters"


def locate_store(text: str, *, as_directory: bool = False, known: StoreLocation | None = None) -> StoreLocation:
    """Return the place that a store argument names: a bare repository, a folder of a work tree, or a directory.

    `as_directory` (`--dir`) leaves Git out of it. A work tree around the folder comes before a bare repository that the
    folder itself looks like: whoever may add files to a store could make it look like one (Git, `safe.bareRepository`).
    `known`: the earlier result; an unchanged bare repository is not searched again.
    Raises StoreError: there is no such directory, or it is not clear what it is.
    """
    path = Path(text)
    if not path.is_dir():
        reason = "is not a directory" if path.exists() else "does not exist"
        if path.is_symlink() and not path.exists():
            reason = f"is a link to {path.readlink()}, which does not exist"
        raise StoreError(f"{text}: {reason}; {_advice(text)}")
    if as_directory:
        return StoreLocation(kind=StoreKind.DIRECTORY, path=path)
    real = path.resolve()
    folder = _work_tree(real)
    # A link of a work tree, which a commit can make, may lead out of it or into Git's own folder.
    around = _work_tree(Path(os.path.abspath(path)))  # noqa: PTH100 - links as they are
    if around is not None and (folder is None or not real.is_relative_to(around.resolve())):
        raise StoreError(f"{path}: a link leads out of the work tree {around}; name the folder {real} itself")
    if folder is not None:
        subdir = real.relative_to(folder).as_posix()
        subdir = "" if subdir == "." else subdir
        return StoreLocation(kind=StoreKind.WORK_TREE, path=path, repository=folder, subdir=subdir)
    if not ((path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()):
        return StoreLocation(kind=StoreKind.DIRECTORY, path=path)
    # Taken before the search: what comes while it goes on makes it another one.
    status = path.stat()
    stamp = (status.st_dev, status.st_ino, status.st_mtime_ns)
    if known is None or known.folder != stamp:
        _refuse_documents(path)
    return StoreLocation(kind=StoreKind.BARE_REPOSITORY, path=path, repository=path, folder=stamp)


def is_sparse(location: StoreLocation) -> bool:
    """Return whether Git leaves files out of a work tree on purpose. Source: git sparse-checkout."""
    if location.kind is not StoreKind.WORK_TREE or location.repository is None:
        return False
    configs = (location.repository / ".git" / name for name in ("config.worktree", "config"))
    readable = (path for path in configs if os.access(path, os.R_OK, effective_ids=True))
    return any(_SPARSE.search(path.read_text(errors="replace")) for path in readable)


def _work_tree(path: Path) -> Path | None:
    """Return the work tree of a path; None inside Git's own folder, which no commit can hold."""
    if ".git" in path.parts:
        return None
    try:
        return next((folder for folder in (path, *path.parents) if (folder / ".git").exists()), None)
    except OSError as error:
        raise StoreError(f"{path}: it cannot be read: {error.strerror}") from error


def _refuse_documents(path: Path) -> None:
    """Refuse a bare repository that has documents beside Git's own files: one of both was forged."""
    for folder, below, names in os.walk(path):
        if Path(folder) == path:
            below[:] = sorted(set(below) - _WITH_NAMES_OF_BRANCHES)
        document = next(filter(is_store_file, names), None)
        if document is not None:
            raise StoreError(
                f"{path}: it looks like a bare repository and holds documents ({Path(folder, document)}); "
                "--dir reads the documents; without them the repository is read"
            )


def open_store(
    location: StoreLocation,
    *,
    rev: str | None = None,
    as_files: bool = False,
    is_settled: bool = False,
    known: Collection[str] = (),
    take: Taker = as_read,
) -> Snapshot:
    """The snapshot of a store. Without a revision a work tree is read as its files lie (`as_files`), else at HEAD.

    `known`: what the caller has parsed already, by `memo_key`; of a commit, such a file comes without its data.
    `take`: gets the other files of a commit one by one; those of a folder are read as a whole, to be of one moment.

    `is_settled`: without a revision, refuse a work tree in the middle of a rebase, merge or the like.

    Raises:
        ConfigurationError: a revision of a directory without Git.
        StoreUnsettled: HEAD of such a work tree.
        RevisionNotFound: the repository has no such commit, or the commit no such folder.
        StoreError: the store cannot be read.
    """
    if location.repository is None:
        if rev is not None:
            raise ConfigurationError(f"{location}: --rev needs a Git repository, and this is a plain directory")
        return read_directory(location.path)
    if rev is None and as_files and location.kind is StoreKind.WORK_TREE:
        return read_directory(location.path)
    # Imported here: pygit2 costs 90 ms, which a plain directory need not pay.
    from reconciler.store.git.snapshot import GitStore  # noqa: PLC0415

    store = GitStore(location.repository)
    if is_settled and rev is None and location.kind is StoreKind.WORK_TREE:
        # Nothing, when nothing is under way. A detached HEAD is what a checkout of a pipeline has. Raises:
        # StoreUnsettled: a rebase, merge or the like is.
        busy = _operation(store)
        if busy:
            raise StoreUnsettled(f"{location}: {busy}; finish it, or give --rev HEAD to mean what is checked out now")
    return store.snapshot(store.resolve("HEAD" if rev is None else rev), location.subdir, known, take)


def _operation(store: GitStore) -> str:
    """Return the unfinished operation of a work tree, and its start, for people; empty: none."""
    for name, words in _OPERATIONS:
        try:
            changed_s = (store.folder / name).stat().st_mtime
        except OSError:
            continue
        return f"{words} has been under way since {rfc3339(changed_s)}"
    return ""


def refuse_unsettled(location: StoreLocation, store: GitStore) -> None:
    """Raise unless a branch is checked out and no operation is unfinished: then HEAD is followed.

    A submodule and a linked work tree that a link leads to (git-sync) are detached by their nature.
    Raises StoreUnsettled: HEAD is not to be followed; the message says what is waited for.
    """
    busy, commit = _operation(store), store.detached_at
    if busy:
        head = f"HEAD is detached at {short_revision(commit)}: " if commit else ""
        raise StoreUnsettled(f"{location}: {head}{busy}; waiting for its end (--rev HEAD follows what is checked out)")
    if commit and not _is_detached_by_nature(location, store):
        raise StoreUnsettled(
            f"{location}: HEAD is detached at {short_revision(commit)}; waiting for a branch to be checked out "
            "(--rev HEAD follows what is checked out)"
        )


def _is_detached_by_nature(location: StoreLocation, store: GitStore) -> bool:
    assert location.repository is not None, "only Git has a HEAD"
    if not (location.repository / ".git").is_file():
        return False
    if not (store.folder / "commondir").is_file():
        return True  # A submodule: its repository lies in that of its parent.
    return Path(os.path.abspath(location.path)) != Path(os.path.realpath(location.path))  # noqa: PTH100 - links as they are
