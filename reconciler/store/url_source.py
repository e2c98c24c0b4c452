"""A Git URL that is followed or read once: fetched into a bare clone of our own, and read from there.

The active commit is pinned in the clone, so that a restart while the server is away goes on with it. A branch that no
longer leads forward from it is not followed: more often a mirror lags behind, or a push was a mistake, and a fleet
would go back without a review. `accept_rewinds` follows it in any case, as most tools of the field do.

Fetching is a task of its own that nobody waits for. `changed` returns at the end of each fetch.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from reconciler.api.fleet import Snapshot
from reconciler.api.refs import short_revision
from reconciler.clock import BackOff, Clock, wait_for
from reconciler.errors import StoreError
from reconciler.store.directory import StoreSource, store_call, store_fault
from reconciler.store.file_walk import Taker, as_read
from reconciler.store.git.commit_history import Relation, in_force, keep_revisions, kept_below, pin, relation
from reconciler.store.git.fetch import Fetched, FetchRequest, fetch
from reconciler.store.git.git_past import GitPast
from reconciler.store.git.snapshot import GitStore
from reconciler.store.git.url import GitUrl, check_revision

_RETRY_MIN_S: Final = 5.0
_FIRST_WAIT_S: Final = 30.0
"""A first clone may take minutes; the start does not wait for all of it without a sign of life."""
_SLOW_S: Final = 300.0
"""A fetch may take hours over a slow link; it is reported at this interval."""
_JITTER: Final = 0.1

_REFUSED: Final = {
    Relation.REWOUND: "was set back to {new}, which is older than {old} that is in force",
    Relation.REWRITTEN: "was rewritten: {new} does not follow from {old} that is in force",
    Relation.UNRELATED: "has another history: {new} and {old} that is in force share none of the last 50,000 commits",
}


class UrlSource(GitPast, StoreSource):
    """Follows a branch or tag of a Git server, or stays at a commit of it."""

    def __init__(
        self,
        url: GitUrl,
        *,
        rev: str | None,
        poll_s: float,
        state_folder: Path,
        clock: Clock,
        accept_rewinds: bool,
        environ: Mapping[str, str],
    ) -> None:
        key = hashlib.sha256((rev or "HEAD").encode()).hexdigest()[:16]
        self._url = url
        self._folder = clone_of(url, state_folder / "git")
        GitPast.__init__(self, self._folder, url.subdir)
        self._wanted = FetchRequest(url=url, rev=rev, folder=self._folder, into=f"refs/fleet/fetched/{key}")
        self._pin = f"refs/fleet/in-force/{key}"
        self._references = kept_below(rev, url.subdir)
        self._poll_s = poll_s
        self._clock = clock
        self._accepts_rewinds = accept_rewinds
        self._environ = environ
        self.name = str(url)
        self.description = self._described(rev or ("" if url.is_artifact else "default branch"))
        self._remedy = "another artifact" if url.is_artifact else "a commit that follows from that (git revert)"
        self._snapshot: Snapshot | None = None
        self._note = ""
        self._fetching: asyncio.Task[None] | None = None
        self._outcome: Fetched | StoreError | None = None
        self._is_read = False
        self._is_slow = False
        self._progress = ""
        self._is_wanted = asyncio.Event()
        self._failures = 0
        self._next_s = clock.monotonic_s()

    @property
    def note(self) -> str:
        """Says so while an older reading stands in for a server that does not answer, or answers slowly."""
        return self._note

    def _described(self, reference: str) -> str:
        return f"{self._url} {reference.removeprefix('refs/heads/')}".rstrip()

    async def changed(self) -> None:
        """Return when the server was asked again, or when asking it takes long."""
        if self._fetching is not None and self._fetching.done() and self._is_read:
            self._fetching = None
        if self._fetching is None:
            while (wait_s := self._next_s - self._clock.monotonic_s()) > 0 and not self._is_wanted.is_set():
                await wait_for(self._is_wanted, wait_s, self._clock)
        # Cancelling the wait leaves the fetch alone, and the next call reports its end.
        ended, _ = await asyncio.wait({self._fetch_task()}, timeout=_SLOW_S)
        if ended:
            self._fetching = None
        self._is_slow = not ended

    async def ask_now(self) -> None:
        """Ask the server again; a running fetch may have begun before the wanted commit was there.

        Raises StoreError: it cannot be asked, or does not answer in time; such a fetch goes on.
        """
        begun_s = self._clock.monotonic_s()
        if self._fetching is not None:
            await asyncio.wait({self._fetching}, timeout=_FIRST_WAIT_S)
            if self._fetching.done():
                self._fetching = None
        left_s = max(0.0, begun_s + _FIRST_WAIT_S - self._clock.monotonic_s())
        ended, _ = await asyncio.wait({self._fetch_task()}, timeout=left_s)
        if not ended:
            raise StoreError(f"{self._url}: the fetch takes long: {self._progress}")
        if isinstance(self._outcome, StoreError):
            raise self._outcome

    def _fetch_task(self) -> asyncio.Task[None]:
        if self._fetching is None:
            self._is_wanted.clear()
            self._fetching = asyncio.create_task(self._fetch())
        return self._fetching

    async def _fetch(self) -> None:
        pause_s = self._poll_s
        try:
            self._progress = "nothing has come yet"
            self._outcome = await fetch(self._wanted, self._environ, tell=self._hear)
            self._failures = 0
        except Exception as error:
            # Whatever ended a fetch, the last one stays.
            self._outcome = error if isinstance(error, StoreError) else store_fault(self.name, error)
            if isinstance(error, OSError):
                self._outcome = StoreError(f"{self._url}: no fetch can be started: {error}")
            self._failures += 1
            pause_s = BackOff(least_s=_RETRY_MIN_S, most_s=self._poll_s).pause_s(self._failures)
        self._is_read = False
        # Many reconcilers that were started together would ask their server together for ever.
        spread = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load, hides nothing
        self._next_s = self._clock.monotonic_s() + pause_s * spread

    def _hear(self, text: str) -> None:
        self._progress = text

    async def read(self) -> Snapshot | None:
        """Return the result of the last fetch. A second call without a new one makes the next fetch come at once."""
        if self._outcome is None:
            await asyncio.wait({self._fetch_task()}, timeout=_FIRST_WAIT_S)
        elif self._is_read:
            self._is_wanted.set()
        self._is_read = True
        try:
            snapshot = await asyncio.to_thread(store_call, self.name, self._advance, self._outcome)
        except StoreError as error:
            if self._snapshot is not None or (snapshot := await asyncio.to_thread(self._recall)) is None:
                raise
            self._note = f"{error}; going on with {snapshot.revision}, which was in force before"
        else:
            self._note = f"{self._url}: the fetch takes long: {self._progress}" if self._is_slow else ""
        if snapshot is not None:
            self._snapshot = snapshot
        return snapshot

    def _advance(self, fetched: Fetched | StoreError | None) -> Snapshot | None:
        if fetched is None:
            raise StoreError(f"{self._url}: the first fetch is still running: {self._progress}")
        if isinstance(fetched, StoreError):
            raise fetched
        self.description = self._described(fetched.reference or fetched.commit)
        before = in_force(self._folder, self._pin)
        if before is not None and before != fetched.commit and not self._accepts_rewinds:
            step = relation(self._folder, before, fetched.commit)
            if step is not Relation.FORWARD:
                why = _REFUSED[step].format(old=short_revision(before), new=short_revision(fetched.commit))
                way = f"push {self._remedy}, or start with --accept-rewinds to follow it as it is"
                raise StoreError(f"{self.description} {why}; {way}")
        if self._snapshot is not None and self._snapshot.revision == fetched.commit:
            return None
        with GitStore(self._folder) as store:
            return self._reader.read(store, fetched.commit)

    def _recall(self) -> Snapshot | None:
        """Return the active content when the clone was last used."""
        commit = in_force(self._folder, self._pin) if self._folder.is_dir() else None
        if commit is not None:
            with suppress(StoreError), GitStore(self._folder) as store:
                return self._reader.read(store, commit)
        return None

    def accept(self, revision: str, good_blobs: Mapping[str, str]) -> None:
        """Pin the commit in the clone: what the branch leads to next is compared with it."""
        if in_force(self._folder, self._pin) != revision:
            pin(self._folder, self._pin, revision)

    def keep(self, revisions: Collection[str]) -> None:
        """References in the clone hold the commits: no force-push and no garbage collection takes them."""
        keep_revisions(self._folder, self._references, revisions)

    async def close(self) -> None:
        """End a fetch that is under way."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait({self._fetching})


async def fetch_snapshot(
    url: GitUrl,
    rev: str | None,
    clones: Path,
    environ: Mapping[str, str],
    *,
    known: Collection[str] = (),
    take: Taker = as_read,
    tell: Callable[[str], None],
) -> Snapshot:
    """Return the store at a branch, tag or full commit id of a server; None: its default branch.

    `clones`: the folder of our clones, so that the next fetch brings only what is new. `known`: what the caller has
    parsed already, by `memo_key`; such a file comes without its data. `take`: gets the others one by one. `tell`:
    called with what a fetch that takes a while waits for, or has brought.

    Raises:
        RevisionNotFound: the server has no such revision, or the revision no such folder.
        StoreError: the server cannot be used, or the clone cannot be written.
    """
    wanted = check_revision(rev, url) if rev is not None else None
    # One reference for each revision: two commands side by side never read each other's commit.
    key = hashlib.sha256((wanted or "HEAD").encode()).hexdigest()[:16]
    folder = clone_of(url, clones)
    request = FetchRequest(url=url, rev=wanted, folder=folder, into=f"refs/fleet/read/{key}")
    fetched = await fetch(request, environ, tell=tell)
    return GitStore(folder).snapshot(fetched.commit, url.subdir, known, take)


def clone_of(url: GitUrl, clones: Path) -> Path:
    """Return the folder of a URL's clone."""
    return clones / url.digest
