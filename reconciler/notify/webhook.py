"""One webhook: each event in order, at least once, with the journal as outbox. Source: design#told."""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from reconciler.clock import Clock, epoch_s
from reconciler.errors import ConfigurationError
from reconciler.fail_points import reach
from reconciler.journal.events import EventFilter, Recorded
from reconciler.journal.sqlite_journal import Journal
from reconciler.notify.cloud_event import CONTENT_TYPE, cloud_event, event_body, keys_in, signed_headers
from reconciler.notify.post import Address, Deliveries, Poster, Reply, pause_s
from reconciler.report.status.history_text import Words
from reconciler.secret_files import secret_text

log = logging.getLogger("reconciler")

CHECK_S: Final = 0.5
"""The interval at which new events are read."""
BATCH_MAX: Final = 100
TOO_OLD_S: Final = 24 * 3600.0
"""An event that could not be sent for so long is dropped: it would delay the present ones."""
_GONE: Final = 410
_REFUSALS: Final = frozenset({400, 413, 422})
_REFUSALS_MAX: Final = 8
"""A receiver may refuse one event this often before it is dropped; the rest must not wait for it."""


class WebhookOptions(Struct, frozen=True, kw_only=True):
    """Receiver and filter. `secret`: the file of the keys, None: nothing is signed. `kinds`: empty: all events."""

    address: Address
    secret: Path | None = None
    kinds: frozenset[str] = frozenset()


def keys_of(file: Path) -> tuple[bytes, ...]:
    """Return the keys that sign. Raises ConfigurationError: the file, or one of them, is unusable."""
    return keys_in(secret_text(file, "--webhook-secret-file"), f"--webhook-secret-file {file}")


async def post_event(
    options: WebhookOptions, poster: Poster, now: str, journal: tuple[str, str], recorded: Recorded, words: Words
) -> Reply:
    """Send an event to its receiver. `journal`: its uuid, and the name of the fleet."""
    try:
        keys = keys_of(options.secret) if options.secret is not None else ()
    except ConfigurationError as error:
        return Reply(why=str(error))
    document = cloud_event(*journal, recorded.number, recorded.event, words)
    body = event_body(document)
    headers = {"Content-Type": CONTENT_TYPE, **signed_headers(str(document["id"]), int(epoch_s(now)), body, keys)}
    return await poster.post(options.address.url, headers, body)


class Webhook:
    """Belongs to one task. Everything is called from the thread that opened the journal."""

    def __init__(
        self, options: WebhookOptions, journal: Journal, poster: Poster, clock: Clock, words: Words,
        deliveries: Deliveries, jitter: Callable[[], float] = random.random,
    ) -> None:  # fmt: skip
        """Send nothing yet. A receiver that the journal does not know begins with new events. `words`: of commits."""
        self._options, self._name = options, options.address.name
        self._journal, self._poster, self._clock, self._words = journal, poster, clock, words
        self.deliveries = deliveries
        self._jitter = jitter
        self._key = options.address.key
        self._attempts = self._refusals = 0
        self._is_dropping = False
        known = journal.delivered(self._key)
        if known is None or known > journal.last_event:
            known = journal.last_event
            journal.record_delivered(self._key, known)
        self._delivered = self._recorded = known

    async def run(self) -> None:
        """Send events until cancelled, or until the receiver is gone for good."""
        while not self.deliveries.is_gone:
            wait_s = await self.step()
            if wait_s:
                await self._clock.sleep(wait_s)

    async def step(self) -> float:
        """Send a batch of events; return the seconds to wait before the next one."""
        events = self._journal.events_after(self._delivered, EventFilter(), BATCH_MAX)
        self.deliveries.pending = max(0, self._journal.last_event - self._delivered)
        self.deliveries.oldest_at = events[0].event.time if events else ""
        try:
            for recorded in events:
                wait_s = await self._take(recorded)
                if wait_s or self.deliveries.is_gone:
                    return wait_s
        finally:
            if self._recorded != self._delivered:
                self._journal.record_delivered(self._key, self._delivered)
                self._recorded = self._delivered
        return 0.0 if len(events) == BATCH_MAX else CHECK_S

    async def _take(self, recorded: Recorded) -> float:
        """Send one event, or skip it; return the seconds to wait before it is tried again."""
        number, event = recorded
        # Numbers have no gaps but for events that history dropped before they were sent.
        if number > self._delivered + 1:
            self._drop(number - self._delivered - 1, "history keeps them no longer")
        if self._options.kinds and event.kind not in self._options.kinds:
            self._pass(number)
            return 0.0
        now = self._clock.now()
        if epoch_s(now) - epoch_s(event.time) > TOO_OLD_S:
            self._drop(1, "no event could be delivered for a day")
            self._pass(number)
            return 0.0
        named = (self._journal.uuid, self._journal.fleet)
        reply = await post_event(self._options, self._poster, now, named, recorded, self._words)
        reach("after an event was sent")
        if reply.is_taken:
            if self._attempts:
                log.info("the webhook works again", extra={"event": "WebhookRecovered", "by": self._name})
            self._attempts = self._refusals = 0
            self._is_dropping = False
            self.deliveries.delivered += 1
            self._journal.record_delivered(self._key, number)
            self._recorded = number
            self._pass(number)
            return 0.0
        return self._failed(number, reply)

    def _failed(self, number: int, reply: Reply) -> float:
        deliveries = self.deliveries
        deliveries.failed += 1
        if reply.status == _GONE:
            deliveries.is_gone = True
            log.error("the receiver of the webhook is gone for good; no events are sent to it until the next start",
                      extra={"event": "WebhookGone", "by": self._name})  # fmt: skip
            return 0.0
        if not self._attempts:
            log.warning("the webhook fails; it is tried again, ever more rarely",
                        extra={"event": "WebhookFailed", "by": self._name, "error": reply.why})  # fmt: skip
        self._attempts += 1
        self._refusals = self._refusals + 1 if reply.status in _REFUSALS else 0
        if self._refusals >= _REFUSALS_MAX:
            self._refusals = 0
            self._drop(1, f"the receiver refuses it: {reply.why}")
            self._pass(number)
        return pause_s(self._attempts, reply.headers, self._clock.now(), self._jitter)

    def _pass(self, number: int) -> None:
        """Go on after an event. Those that were not sent are written down together: they would be passed again."""
        self._delivered = number
        self.deliveries.pending = max(0, self.deliveries.pending - 1)
        if not self.deliveries.pending:
            self.deliveries.oldest_at = ""

    def _drop(self, count: int, why: str) -> None:
        self.deliveries.dropped += count
        if not self._is_dropping:
            self._is_dropping = True
            log.error("events that could not be delivered to the webhook are dropped",
                      extra={"event": "WebhookDropped", "by": self._name, "error": why})  # fmt: skip
