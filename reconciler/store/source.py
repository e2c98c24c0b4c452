"""A followed store: it reports possible changes, and reads the present content.

Source: design#events-are-nudges; design#revisions.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Protocol

from reconciler.api.fleet import Snapshot
from reconciler.api.rollouts import Lineage
from reconciler.clock import Clock
from reconciler.errors import ConfigurationError, StoreError
from reconciler.store.directory import StorePast
from reconciler.store.git.url import check_revision, is_git_url, parse_git_url
from reconciler.store.location import locate_store
from reconciler.store.scan import StoreCopy


class StoreSource(Protocol):
    """One store. One task may wait in `changed` while another one is in `read`."""

    @property
    def name(self) -> str:
        """The store as another command finds it from anywhere: an absolute path, or the URL without credentials."""

    @property
    def description(self) -> str:
        """Return the followed store, without credentials: `https://host/fleet.git branch main`."""

    @property
    def past(self) -> StorePast:
        """Return the past of the store, valid while it is followed."""

    @property
    def note(self) -> str:
        """Return a remark on the following for operators; empty if all is well."""

    async def changed(self) -> None:
        """Return when the store may have changed since it was last read, or when a failed reading is due again.

        Each change is reported once. It can be cancelled at any time: the next call reports the rest.
        """

    async def ask_now(self) -> None:
        """Return when `read` gives the store's content of this moment or later. Only while nobody waits in `changed`.

        Raises:
            StoreError: it cannot be asked; `read` gives what is known of it.
        """

    async def read(self) -> Snapshot | None:
        """The store now; None when it is what the last successful reading gave.

        Raises:
            StoreError: it cannot be read; the caller keeps the last good snapshot in force.
        """

    def accept(self, revision: str, good_blobs: Mapping[str, str]) -> None:
        """Note that a revision that was read is in force from now on, and keep what a restart will need. Writes files.

        `good_blobs`: path to the blob in force, which differs from that of the revision where a file of it is broken.
        """

    def recall(self, revision: str) -> Snapshot | None:
        """A revision that was accepted once; None when the store no longer has it. Reads files.

        It may be called while another task is in `read`. Raises nothing: what cannot be read is not there.
        """

    def commits_since(self, former: str, head: str) -> tuple[str, ...]:
        """Return what came after a revision up to HEAD, the oldest first: each commit along first parents.

        HEAD alone where the former is none of these, or too far away. Reads files; raises nothing.
        """

    def ancestry(self, revisions: Collection[str], head: str) -> Lineage:
        """Return the ancestry of revisions to a head. Reads files, up to a second of history for a new question.

        Raises nothing: unreadable ones are missing. A plain directory has no order, and all are missing.
        """

    def resolve(self, texts: Collection[str]) -> dict[str, str]:
        """Text to full commit id: of those that are an id, seven or more letters of one, or the name of a tag.

        Only commits that are there; a text that names two is left out, and no expression of Git is read. A clone of a
        URL has no tags. Reads files; raises nothing.
        """

    def keep(self, revisions: Collection[str]) -> None:
        """Keep these revisions, and of those that were kept before no other. Writes files.

        Only in a clone of our own: whose repository it is else, that person's garbage collection decides.

        Raises:
            StoreError: the clone cannot be written.
        """

    async def close(self) -> None:
        """Stop watching."""


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

    Raises:
        ConfigurationError: the URL or a combination of options cannot be used.
        StoreError: there is no such folder.
    """
    # Imported where they are needed: pygit2 costs 90 ms, which a plain directory need not pay.
    if is_git_url(text):
        if as_directory:
            raise ConfigurationError("--dir reads a folder as it lies; STORE is a URL")
        from reconciler.store.url_source import UrlSource  # noqa: PLC0415

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
    from reconciler.store.local_source import DirectorySource  # noqa: PLC0415

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
    from reconciler.store.repository_source import RepositorySource  # noqa: PLC0415

    return RepositorySource(location, rev, clock)
