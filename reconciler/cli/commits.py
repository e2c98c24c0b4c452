"""Authors and subjects of the revisions that the journal names, where the store is a Git repository at hand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.adapters.git.snapshot import GitStore

_COMMIT_ID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class Commits:
    """The commits of a store; one that is no repository, or is not there, has none."""

    def __init__(self, store: str, *, beside: Path) -> None:
        """Nothing is opened before the first question. `beside`: the journal; a service keeps its clones there."""
        self._store = store
        self._beside = beside
        self._repository: GitStore | None = None
        self._is_opened = False
        self._known: dict[str, tuple[str, str] | None] = {}

    def words(self, revision: str) -> tuple[str, str] | None:
        """Author and subject of a revision; None when it is no commit that can be found."""
        if not self._store or not _COMMIT_ID.fullmatch(revision):
            return None
        if revision not in self._known:
            self._known[revision] = self._read(revision)
        return self._known[revision]

    def _read(self, revision: str) -> tuple[str, str] | None:
        from reconciler.errors import ReconcilerError

        try:
            repository = self._open()
            commit = repository.commit_info(revision) if repository is not None else None
        except ReconcilerError:
            return None
        return (commit.author, commit.subject) if commit is not None else None

    def _open(self) -> GitStore | None:
        if not self._is_opened:
            self._is_opened = True
            folder = self._folder()
            if folder is not None:
                from reconciler.adapters.git.snapshot import GitStore

                self._repository = GitStore(folder)
        return self._repository

    def _folder(self) -> Path | None:
        """The repository: that of the folder, or the clone of a URL that the service or a command has fetched."""
        from reconciler.adapters.git.url import is_git_url, parse_git_url

        if is_git_url(self._store):
            from reconciler.adapters.sources.read_once import clone_of
            from reconciler.cli.reading import cache_folder

            url, cache = parse_git_url(self._store), cache_folder()
            folders = (self._beside.parent, *((cache,) if cache is not None else ()))
            clones = (clone_of(url, folder / "git") for folder in folders)
            return next((clone for clone in clones if clone.is_dir()), None)
        from reconciler.adapters.sources.location import locate_store

        return locate_store(self._store).repository
