"""The store that STORE names: opened to be followed, its uncommitted files, and the words of its commits."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from reconciler.api.fleet import StoreFile
from reconciler.api.refs import CommitWords
from reconciler.clock import Clock
from reconciler.errors import ConfigurationError, ReconcilerError, RevisionNotFound, StoreError
from reconciler.hydration import blob_id
from reconciler.regex import regex
from reconciler.store.directory import StoreSource
from reconciler.store.git.snapshot import GitStore
from reconciler.store.git.url import check_revision, is_git_url, parse_git_url
from reconciler.store.local_source import DirectorySource, RepositorySource
from reconciler.store.location import StoreKind, StoreLocation, is_sparse, locate_store, open_store
from reconciler.store.scan import StoreCopy
from reconciler.store.url_source import UrlSource, clone_of
from reconciler.yaml import MAX_BYTES


async def open_source(  # noqa: PLR0913
    text: str,
    *,
    rev: str | None,
    as_directory: bool,
    poll_s: float,
    state_folder: Path,
    clock: Clock,
    accept_rewinds: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> StoreSource:
    """The source that STORE names: a Git URL or OCI artifact, a Git work tree or bare repository, or a directory.

    `poll_s` and `accept_rewinds` are for URLs. Clones, and copies of directories, are kept below `state_folder`.
    Nothing is fetched yet.

    Raises ConfigurationError: the URL or a combination of options cannot be used; StoreError: there is no such folder.
    """
    if is_git_url(text):
        if as_directory:
            raise ConfigurationError("--dir reads a folder as it lies; STORE is a URL")
        url = parse_git_url(text)
        if url.is_artifact and rev is not None:
            raise ConfigurationError(f"--rev is for Git; name the tag or digest in STORE: {url.address}:TAG")
        return UrlSource(
            url,
            rev=check_revision(rev, url) if rev is not None else None,
            poll_s=poll_s,
            state_folder=state_folder,
            clock=clock,
            accept_rewinds=accept_rewinds,
            environ=environ,
        )
    try:
        location = locate_store(text, as_directory=as_directory)
    except StoreError:
        # A volume that is not mounted, a dangling link: the former content stays active.
        if rev is not None or not StoreCopy(state_folder, Path(text)).is_there:
            raise
        return DirectorySource(Path(text), clock, state_folder)
    if location.repository is None:
        if rev is not None:
            raise ConfigurationError(f"{location}: --rev needs a Git repository, and this is read as a plain directory")
        return DirectorySource(location.path, clock, state_folder)
    return RepositorySource(location, rev, clock)


def uncommitted(location: StoreLocation) -> dict[str, str]:
    """Return the files that differ from the commit at HEAD, by path, as `web.yaml (changed)`; none without a work tree.

    The files are those of `diff`, so every file that it shows and a commit lacks is among them.
    Raises StoreError: the files or the commit cannot be read.
    """
    if location.kind is not StoreKind.WORK_TREE:
        return {}
    files = open_store(location, as_files=True).files
    lying = {file.path: _content(file) for file in files}
    committed = {file.path: _content(file, file.blob) for file in open_store(location, rev="HEAD").files}
    if is_sparse(location):
        committed = {path: blob for path, blob in committed.items() if path in lying}
    for folder in [file.path for file in files if file.faults]:
        if below := [path for path in committed if path.startswith(f"{folder}/")]:
            del lying[folder]
            committed = {path: blob for path, blob in committed.items() if path not in below}
    return {
        path: f"{path} ({'new' if path not in committed else 'changed' if path in lying else 'deleted'})"
        for path in sorted(lying.keys() | committed.keys())
        if lying.get(path) != committed.get(path)
    }


def _content(file: StoreFile, blob: str = "") -> str:
    """Return the blob id, given or computed; an unreadable or too large file counts as equal to its like."""
    if file.faults:
        return file.blob
    return (blob or blob_id(file.data)) if len(file.data) <= MAX_BYTES else ""


_CHANGES_MAX: Final = 10_000
_COMMIT_ID: Final = regex(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Commits:
    """The commits of a store; one that is no repository, or is not there, has none. For one thread."""

    def __init__(self, store: str, clones: Callable[[], Iterable[Path]]) -> None:
        """Nothing is opened before the first question. `clones`: folders in which a URL may have been fetched."""
        self.store = store
        self.fault = ""
        """The reason for which the words of a commit could not be read, the last time."""
        self._clones = clones
        self._repository: GitStore | None = None
        self._is_opened = False
        self._known: dict[str, CommitWords | None] = {}
        self._changes: dict[tuple[str, str], str] = {}

    def last_change(self, revision: str, path: str) -> str:
        """Return the last commit up to a revision that changed a file of the store; the revision if none is known."""
        if not path or self.words(revision) is None:
            return revision
        if (revision, path) not in self._changes:
            if len(self._changes) >= _CHANGES_MAX:
                self._changes.clear()
            change = revision
            with suppress(ReconcilerError):
                repository = self._open()
                within = "" if is_git_url(self.store) else locate_store(self.store).subdir
                whole = f"{within}/{path}" if within else path
                change = repository.last_change(revision, whole) if repository is not None else revision
            self._changes[revision, path] = change
        return self._changes[revision, path]

    def words(self, revision: str) -> CommitWords | None:
        """Author, subject and time of a revision; None when it is no commit that can be found."""
        if not self.store or not _COMMIT_ID.fullmatch(revision):
            return None
        if revision not in self._known:
            self._known[revision] = None
            try:
                repository = self._open()
                self._known[revision] = repository.words(revision) if repository is not None else None
            except ReconcilerError as error:
                self.fault = "" if isinstance(error, RevisionNotFound) else str(error)
        return self._known[revision]

    def look_again(self) -> None:
        """Forget missing revisions: they may have been fetched since."""
        self._known = {revision: words for revision, words in self._known.items() if words is not None}
        self._is_opened = self._repository is not None

    def _open(self) -> GitStore | None:
        """The repository: that of the folder, or the clone of a URL that the service or a command has fetched."""
        if not self._is_opened:
            self._is_opened = True
            if is_git_url(self.store):
                url = parse_git_url(self.store)
                clones = (clone_of(url, folder / "git") for folder in self._clones())
                folder = next((clone for clone in clones if clone.is_dir()), None)
            else:
                folder = locate_store(self.store).repository
            self._repository = GitStore(folder) if folder is not None else None
        return self._repository


NO_COMMITS: Final = Commits("", tuple)
