"""Uncommitted files of a work tree: a person edited them and may believe them to be active.

Authors and subjects of the revisions that the journal names, where the store is a Git repository at hand.

The meaning of STORE on the command line, its snapshot, and a check of its work tree's HEAD.

In the middle of a rebase, HEAD is a commit that nobody wants.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import Struct

from reconciler.api.fleet import Snapshot, StoreFile
from reconciler.errors import ConfigurationError, ReconcilerError, StoreError, StoreUnsettled
from reconciler.fleet import is_store_file
from reconciler.store.directory import read_directory
from reconciler.store.file_walk import Taker, as_read
from reconciler.store.git.snapshot import CommitInfo, GitStore
from reconciler.store.git.url import is_git_url, parse_git_url
from reconciler.store.url_source import clone_of

_WITH_NAMES_OF_BRANCHES: Final = frozenset({"objects", "refs", "logs", "modules", "worktrees"})
"""Folders of a bare repository that hold no file of a person, or files that are named as people name branches."""
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
        """As people name it."""
        return str(self.path)


def locate_store(text: str, *, as_directory: bool = False, known: StoreLocation | None = None) -> StoreLocation:
    """Return the place that a store argument names: a bare repository, a folder of a work tree, or a directory.

    `as_directory` (`--dir`) leaves Git out of it. A work tree around the folder comes before a bare repository that the
    folder itself looks like: whoever may add files to a store could make it look like one (Git, `safe.bareRepository`).
    `known`: the earlier result; an unchanged bare repository is not searched again.

    Raises:
        StoreError: there is no such directory, or it is not clear what it is.
    """
    path = Path(text)
    if not path.is_dir():
        reason = "is not a directory" if path.exists() else "does not exist"
        if path.is_symlink() and not path.exists():
            reason = f"is a link to {path.readlink()}, which does not exist"
        raise StoreError(f"{text}: {reason}; name the folder of the store or a bare repository")
    if as_directory:
        return StoreLocation(kind=StoreKind.DIRECTORY, path=path)
    real = path.resolve()
    folder = _work_tree(real)
    _refuse_way_out(path, real, folder)
    if folder is not None:
        subdir = real.relative_to(folder).as_posix()
        subdir = "" if subdir == "." else subdir
        return StoreLocation(kind=StoreKind.WORK_TREE, path=path, repository=folder, subdir=subdir)
    if not _is_bare_repository(path):
        return StoreLocation(kind=StoreKind.DIRECTORY, path=path)
    # Taken before the search: what comes while it goes on makes it another one.
    status = path.stat()
    found = (status.st_dev, status.st_ino, status.st_mtime_ns)
    if known is None or known.folder != found:
        _refuse_documents(path)
    return StoreLocation(kind=StoreKind.BARE_REPOSITORY, path=path, repository=path, folder=found)


def _work_tree(path: Path) -> Path | None:
    """Return the work tree of a path; None inside Git's own folder, which no commit can hold."""
    if ".git" in path.parts:
        return None
    return next((folder for folder in (path, *path.parents) if (folder / ".git").exists()), None)


def _refuse_way_out(path: Path, real: Path, folder: Path | None) -> None:
    """Nothing, unless a link of a work tree, which a commit can make, leads out of it or into Git's own folder."""
    around = _work_tree(Path(os.path.abspath(path)))  # noqa: PTH100 - links as they are
    if around is not None and (folder is None or not real.is_relative_to(around.resolve())):
        raise StoreError(f"{path}: a link leads out of the work tree {around}; name the folder {real} itself")


def _is_bare_repository(path: Path) -> bool:
    return (path / "HEAD").is_file() and (path / "objects").is_dir() and (path / "refs").is_dir()


def _refuse_documents(path: Path) -> None:
    """Refuse a bare repository that has documents beside Git's own files: one of both was forged."""
    for folder, below, names in os.walk(path):
        if Path(folder) == path:
            below[:] = sorted(set(below) - _WITH_NAMES_OF_BRANCHES)
        found = next(filter(is_store_file, names), None)
        if found is not None:
            raise StoreError(
                f"{path}: it looks like a bare repository and holds documents ({Path(folder, found)}); "
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
        _refuse_operation(location, store)
    return store.snapshot(store.resolve("HEAD" if rev is None else rev), location.subdir, known, take)


def _operation(store: GitStore) -> str:
    """Return the unfinished operation of a work tree, and its start, for people; empty: none."""
    for name, words in _OPERATIONS:
        try:
            changed_s = (store.folder / name).stat().st_mtime
        except OSError:
            continue
        since = datetime.fromtimestamp(changed_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        return f"{words} has been under way since {since}"
    return ""


def _refuse_operation(location: StoreLocation, store: GitStore) -> None:
    """Nothing, when nothing is under way. A detached HEAD is what a checkout of a pipeline has.

    Raises:
        StoreUnsettled: a rebase, merge or the like is.
    """
    found = _operation(store)
    if found:
        raise StoreUnsettled(f"{location}: {found}; finish it, or give --rev HEAD to mean what is checked out now")


def refuse_unsettled(location: StoreLocation, store: GitStore) -> None:
    """Raise unless a branch is checked out and no operation is unfinished: then HEAD is followed.

    A submodule and a linked work tree that a link leads to (git-sync) are detached by their nature.

    Raises:
        StoreUnsettled: HEAD is not to be followed; the message says what is waited for.
    """
    found, commit = _operation(store), store.detached_at
    if found:
        head = f"HEAD is detached at {commit[:12]}: " if commit else ""
        raise StoreUnsettled(f"{location}: {head}{found}; waiting for its end (--rev HEAD follows what is checked out)")
    if commit and not _is_detached_by_nature(location, store):
        raise StoreUnsettled(
            f"{location}: HEAD is detached at {commit[:12]}; waiting for a branch to be checked out "
            "(--rev HEAD follows what is checked out)"
        )


def _is_detached_by_nature(location: StoreLocation, store: GitStore) -> bool:
    assert location.repository is not None, "only Git has a HEAD"
    if not (location.repository / ".git").is_file():
        return False
    if not (store.folder / "commondir").is_file():
        return True  # A submodule: its repository lies in that of its parent.
    return Path(os.path.abspath(location.path)) != Path(os.path.realpath(location.path))  # noqa: PTH100 - links as they are


class Uncommitted(NamedTuple):
    """A file of the store, and its change since the commit: `new`, `changed` or `deleted`."""

    path: str
    what: str

    def __str__(self) -> str:
        """`web.yaml (changed)`."""
        return f"{self.path} ({self.what})"


def uncommitted(location: StoreLocation) -> tuple[Uncommitted, ...]:
    """Return the files that differ from the commit at HEAD, by path; none without a work tree.

    The files are those of `diff`, so every file that it shows and a commit lacks is among them.

    Raises:
        StoreError: the files or the commit cannot be read.
    """
    if location.kind is not StoreKind.WORK_TREE:
        return ()
    lying = {file.path: file for file in open_store(location, as_files=True).files}
    committed = {file.path: file for file in open_store(location, rev="HEAD").files}
    return tuple(sorted(_differences(lying, committed)))


def _differences(lying: dict[str, StoreFile], committed: dict[str, StoreFile]) -> Iterator[Uncommitted]:
    for path in lying.keys() | committed.keys():
        if path not in committed:
            yield Uncommitted(path, "new")
        elif path not in lying:
            yield Uncommitted(path, "deleted")
        elif _blob_id(lying[path].data) != committed[path].blob:
            yield Uncommitted(path, "changed")


def _blob_id(data: bytes) -> str:
    """As Git names the content."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


_COMMIT_ID: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Commits:
    """The commits of a store; one that is no repository, or is not there, has none. For one thread."""

    def __init__(self, store: str, clones: Callable[[], Iterable[Path]]) -> None:
        """Nothing is opened before the first question. `clones`: folders in which a URL may have been fetched."""
        self.store = store
        self._clones = clones
        self._repository: GitStore | None = None
        self._is_opened = False
        self._known: dict[str, CommitInfo | None] = {}

    def words(self, revision: str) -> tuple[str, str] | None:
        """Author and subject of a revision; None when it is no commit that can be found."""
        found = self.info(revision)
        return (found.author, found.subject) if found is not None else None

    def info(self, revision: str) -> CommitInfo | None:
        """A revision as a commit; None when it is none that can be found."""
        if not self.store or not _COMMIT_ID.fullmatch(revision):
            return None
        if revision not in self._known:
            self._known[revision] = self._read(revision)
        return self._known[revision]

    def look_again(self) -> None:
        """Forget missing revisions: they may have been fetched since."""
        self._known = {revision: found for revision, found in self._known.items() if found is not None}
        self._is_opened = self._repository is not None

    def _read(self, revision: str) -> CommitInfo | None:
        try:
            repository = self._open()
            return repository.commit_info(revision) if repository is not None else None
        except ReconcilerError:
            return None

    def _open(self) -> GitStore | None:
        if not self._is_opened:
            self._is_opened = True
            folder = self._folder()
            self._repository = GitStore(folder) if folder is not None else None
        return self._repository

    def _folder(self) -> Path | None:
        """The repository: that of the folder, or the clone of a URL that the service or a command has fetched."""
        if is_git_url(self.store):
            url = parse_git_url(self.store)
            clones = (clone_of(url, folder / "git") for folder in self._clones())
            return next((clone for clone in clones if clone.is_dir()), None)
        return locate_store(self.store).repository
