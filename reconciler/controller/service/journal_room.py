"""A journal whose disk is full: nothing is applied, webhooks are told at once, and history once there is room.

Source: design#told.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path

from reconciler.api.ledger import Event, EventKind
from reconciler.clock import Clock, wait_for
from reconciler.controller import timing
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import JournalError
from reconciler.journal.events import Recorded
from reconciler.journal.journal_lock import JournalLock
from reconciler.journal.sqlite_file import lack_of_room
from reconciler.journal.sqlite_journal import Journal
from reconciler.notify.post import Deliveries, Poster, pause_s
from reconciler.notify.webhook import WebhookOptions, post_event
from reconciler.report.status.history_text import Words
from reconciler.report.status.remedies import NO_ROOM

_JOURNAL = "journal"


def is_full(why: str, now: str) -> Event:
    """Return the event of a full disk, which is recorded once there is room."""
    return Event(round=0, time=now, kind=EventKind.JOURNAL_FULL, subject=_JOURNAL, data={"why": why, "todo": NO_ROOM})


def has_room(full: Event, now: str) -> Event:
    """Return the event of its end."""
    data = {"why": full.data["why"], "since": full.time}
    return Event(round=0, time=now, kind=EventKind.JOURNAL_HAS_ROOM, subject=_JOURNAL, data=data)


async def tell_of(
    full: Event, journal: Path, hooks: Sequence[WebhookOptions], vitals: Vitals, clock: Clock, words: Words
) -> None:
    """Send the event to all webhooks that want it, with the number, and so the id, that it gets when it is recorded."""
    due = [hook for hook in hooks if not hook.kinds or full.kind in hook.kinds]
    try:
        with Journal.open(journal, read_only=True) as opened:
            named, recorded = (opened.uuid, opened.fleet), Recorded(opened.last_event + 1, full)
    except JournalError:
        return  # There is none yet: who would be told by it is not known.
    attempts = 0
    async with Poster.open() as poster:
        while due := [hook for hook in due if not vitals.webhooks.get(hook.address.name, Deliveries()).is_gone]:
            replies = [await post_event(hook, poster, clock.now(), named, recorded, words) for hook in due]
            due = [hook for hook, reply in zip(due, replies, strict=True) if not reply.is_taken]
            attempts += 1
            await clock.sleep(pause_s(attempts, {}, clock.now(), random.random))


async def wait_for_room(journal: Path, vitals: Vitals, stop: asyncio.Event, clock: Clock) -> None:
    """Return once there is room again, or the service is to end."""
    with ExitStack() as stack:
        with suppress(JournalError):  # Another process writes meanwhile.
            stack.enter_context(JournalLock(journal))  # `status` names this process.
        while vitals.journal_error:
            vitals.phase, vitals.heartbeat_s = "waiting for room on the disk of the journal", clock.monotonic_s()
            if await wait_for(stop, timing.CHECK_S, clock):
                return
            if not lack_of_room(journal):
                vitals.tell_journal("")
