"""A Git URL that is followed: fetched into a bare clone of our own, and read from there.

The commit in force is pinned in the clone. So a restart while the server is away goes on with it, and a branch that no
longer leads forward from it is noticed: by default such a branch is not followed, because it is more often a mirror
that lags behind or a push by mistake than a wish, and a fleet would go back to an older state without a review.
`accept_rewinds` follows whatever the branch says, as most tools of the field do.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from reconciler.adapters.clock import Clock
from reconciler.adapters.git_fetch import Fetched, Wanted, fetch
from reconciler.adapters.git_fetch_history import Relation, in_force, pin, relation
from reconciler.adapters.git_fetch_url import GitUrl
from reconciler.adapters.source_repository import stored_file
from reconciler.adapters.store_git import GitStore
from reconciler.errors import StoreError
from reconciler.model.fleet import Snapshot, StoreFile

_RETRY_MIN_S: Final = 5.0
_JITTER: Final = 0.1

_REFUSED: Final = {
    Relation.REWOUND: "was set back to {new}, which is older than {old} that is in force",
    Relation.REWRITTEN: "was rewritten: {new} does not follow from {old} that is in force",
    Relation.UNRELATED: "has another history: {new} and {old} that is in force have no commit in common",
}


class UrlSource:
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
        """Nothing is fetched yet."""
        key = hashlib.sha256((rev or "HEAD").encode()).hexdigest()[:16]
        self._url = url
        self._folder = state_folder / "git" / url.digest
        self._wanted = Wanted(url=url, rev=rev, folder=self._folder, into=f"refs/fleet/fetched/{key}")
        self._pin = f"refs/fleet/in-force/{key}"
        self._poll_s = poll_s
        self._clock = clock
        self._accepts_rewinds = accept_rewinds
        self._environ = environ
        self._snapshot: Snapshot | None = None
        self._failures = 0
        self._next_s = clock.monotonic_s()
        self._note = ""
        self._reference = rev or "default branch"

    @property
    def description(self) -> str:
        """The URL without credentials, and what of it is followed."""
        return f"{self._url} {self._reference.removeprefix('refs/heads/')}"

    @property
    def note(self) -> str:
        """Says so while an older reading stands in for a server that does not answer."""
        return self._note

    async def changed(self) -> None:
        """Return when the server is to be asked again."""
        while (wait_s := self._next_s - self._clock.monotonic_s()) > 0:
            await self._clock.sleep(wait_s)
        # The reading sets the true time; until then nobody is told again.
        self._next_s = self._clock.monotonic_s() + self._poll_s

    async def read(self) -> Snapshot | None:
        """Fetch, and read when something new came."""
        try:
            fetched = await fetch(self._wanted, self._environ)
            snapshot = await asyncio.to_thread(self._advance, fetched)
        except StoreError as error:
            self._failures += 1
            self._schedule(min(_RETRY_MIN_S * 2 ** min(self._failures - 1, 10), self._poll_s))
            if self._snapshot is None and (snapshot := await asyncio.to_thread(self._recall)) is not None:
                self._note = f"{error}; going on with {snapshot.revision}, which was in force before"
                self._snapshot = snapshot
                return snapshot
            raise
        self._failures = 0
        self._note = ""
        self._schedule(self._poll_s)
        if snapshot is not None:
            self._snapshot = snapshot
        return snapshot

    def _schedule(self, seconds: float) -> None:
        # Many reconcilers that were started together would ask their server together for ever.
        spread = random.uniform(1 - _JITTER, 1 + _JITTER)  # noqa: S311 - spreads load, hides nothing
        self._next_s = self._clock.monotonic_s() + seconds * spread

    def _advance(self, fetched: Fetched) -> Snapshot | None:
        self._reference = fetched.reference or fetched.commit
        before = self._snapshot.revision if self._snapshot is not None else in_force(self._folder, self._pin)
        if before is not None and before != fetched.commit and not self._accepts_rewinds:
            self._check(before, fetched.commit)
        if self._snapshot is not None and self._snapshot.revision == fetched.commit:
            return None
        snapshot = GitStore(self._folder).snapshot(fetched.commit, self._url.subdir)
        pin(self._folder, self._pin, fetched.commit)
        return snapshot

    def _check(self, old: str, new: str) -> None:
        found = relation(self._folder, old, new)
        if found is not Relation.FORWARD:
            why = _REFUSED[found].format(old=old[:12], new=new[:12])
            raise StoreError(
                f"{self.description} {why}; the last good revision stays in force. Push a commit that follows from "
                "it (git revert), or start with --accept-rewinds to follow the branch as it is"
            )

    def _recall(self) -> Snapshot | None:
        """What was in force when the clone was last used."""
        commit = in_force(self._folder, self._pin) if self._folder.is_dir() else None
        try:
            return GitStore(self._folder).snapshot(commit, self._url.subdir) if commit else None
        except StoreError:
            return None

    def read_blob(self, path: str, blob: str) -> StoreFile | None:
        """The blob, as long as the clone has it."""
        return stored_file(self._folder, path, blob)

    async def close(self) -> None:
        """Nothing is open between two readings."""
