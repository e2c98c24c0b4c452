"""The status of the active commit at a forge: sent when it changes, rate-limited, the last one always.

A newer commit replaces one that is being sent; the earlier commit keeps its last status.
"""

from __future__ import annotations

import logging
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from reconciler.clock import Clock
from reconciler.errors import ConfigurationError
from reconciler.notify.address import read_secret
from reconciler.notify.commit_statuses import Repository, StatusOutcome, meaning_of
from reconciler.notify.post import Deliveries, Poster, Reply, pause_s

log = logging.getLogger("reconciler")

LOOK_S: Final = 0.5
SETTLE_S: Final = 2.0
"""A state must last this long before it is sent, but for the first one of a commit: it may be about to change."""
APART_S: Final = 5.0
"""The least interval between statuses of one commit."""
REFUSALS_MAX: Final = 4
"""Limit of refusals of a commit before it gets no more statuses: it may be pushed a moment after its status."""
_ANSWER_BYTES: Final = 16_384
_COMMIT: Final = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


class ForgeOptions(Struct, frozen=True, kw_only=True):
    """The target of statuses. `token`: the file of the token; `page_url`: the link for people, empty: none."""

    repository: Repository
    token: Path
    page_url: str = ""


class CommitStatus(Struct, frozen=True, kw_only=True):
    """The status of one commit. `state`: pending, success, failure or error."""

    commit: str
    state: str
    description: str


class CommitStatuses:
    """Belongs to one task. `current`: the status to send now, None: unknown; `fleet`: its name by then."""

    def __init__(
        self, options: ForgeOptions, poster: Poster, clock: Clock, current: Callable[[], CommitStatus | None],
        fleet: Callable[[], str], deliveries: Deliveries, jitter: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        """Send nothing yet."""
        self._options, self._poster, self._clock = options, poster, clock
        self._current, self._fleet, self.deliveries, self._jitter = current, fleet, deliveries, jitter
        self._told: CommitStatus | None = None
        self._seen: CommitStatus | None = None
        self._seen_s = self._told_s = self._not_before_s = float("-inf")
        self._closed = ""
        self._attempts = self._refusals = 0

    async def run(self) -> None:
        """Send changes until cancelled."""
        while True:
            await self.step()
            await self._clock.sleep(LOOK_S)

    async def step(self) -> None:
        """Tell the state now, if it is time to."""
        found, now_s = self._current(), self._clock.monotonic_s()
        if found is None or not _COMMIT.fullmatch(found.commit):
            return
        seen = self._seen
        if seen is None or (seen.commit, seen.state) != (found.commit, found.state):
            # While a state goes on, its counts are sent every few seconds.
            self._seen_s, self._refusals = now_s, 0 if seen is None or seen.commit != found.commit else self._refusals
        self._seen = found
        # A status equal to the last one needs no request; a closed commit takes none.
        self.deliveries.pending = int(found != self._told and found.commit != self._closed)
        if not self.deliveries.pending or now_s < self._due_s(found):
            return
        await self._tell(found)

    def _due_s(self, found: CommitStatus) -> float:
        is_first = self._told is None or self._told.commit != found.commit
        if is_first:
            # A commit that was in step before this process began is not pending again.
            settle_s = 0.0 if found.state == "pending" else SETTLE_S
            return max(self._seen_s + settle_s, self._not_before_s)
        return max(self._seen_s + SETTLE_S, self._told_s + APART_S, self._not_before_s)

    async def _tell(self, found: CommitStatus) -> None:
        reply = await self._send(found)
        self._told_s = self._clock.monotonic_s()
        meaning = meaning_of(self._options.repository.kind, reply.status, reply.body)
        if meaning is StatusOutcome.TAKEN:
            if self._attempts:
                log.info("the forge takes commit statuses again", extra={"event": "CommitStatusRecovered"})
            self._told, self._attempts = found, 0
            self.deliveries.delivered += 1
            self.deliveries.pending, self.deliveries.why = 0, ""
            return
        self.deliveries.failed += 1
        self.deliveries.why = reply.why
        extra = {"rev": found.commit, "error": reply.why}
        self._refusals += meaning is StatusOutcome.NEVER
        if self._refusals >= REFUSALS_MAX:
            self._closed, self._attempts = found.commit, 0
            self.deliveries.dropped += 1
            self.deliveries.pending = 0
            log.warning("the forge takes no status of this commit: it is not there, or has had too many",
                        extra={"event": "CommitStatusRefused", **extra})  # fmt: skip
            return
        if not self._attempts:
            log.warning("the status of the commit cannot be told; it is tried again, ever more rarely",
                        extra={"event": "CommitStatusFailed", **extra})  # fmt: skip
        self._attempts += 1
        self._not_before_s = self._told_s + pause_s(self._attempts, reply.headers, self._clock.now(), self._jitter)

    async def _send(self, found: CommitStatus) -> Reply:
        options = self._options
        try:
            token = read_secret(options.token)
        except ConfigurationError as error:
            return Reply(why=str(error))
        if not token.isprintable() or not token.isascii():
            return Reply(why="the token of the forge holds what is no token; it is one line")
        request = options.repository.status_request(
            found.commit, found.state, found.description,
            context=f"fleet-reconciler/{self._fleet()}", target_url=options.page_url, token=token,
        )  # fmt: skip
        return await self._poster.post(request.url, request.headers, request.body, answer_max_bytes=_ANSWER_BYTES)
