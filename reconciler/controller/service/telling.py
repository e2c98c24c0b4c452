"""Notifications: webhooks and a forge, each by a task of its own beside the loop, never within a round.

A fault of ours in one of them is that one's: it is logged, and begun anew after a pause.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from msgspec import Struct

from reconciler.clock import Clock
from reconciler.containment import fault_fields
from reconciler.controller import timing
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.journal.sqlite_journal import Journal
from reconciler.notify.commit_statuses import CommitStatus, CommitStatuses, ForgeOptions, commit_status
from reconciler.notify.post import Deliveries, Poster
from reconciler.notify.webhook import Webhook, WebhookOptions
from reconciler.report.status.history_text import Words


class Telling(Struct, frozen=True, kw_only=True):
    """The receivers."""

    webhooks: tuple[WebhookOptions, ...] = ()
    forge: ForgeOptions | None = None


def forget_others(telling: Telling | None, journal: Journal) -> None:
    """Delete receivers that are not named any more: one that is named again later begins with new events."""
    journal.keep_receivers(options.address.key for options in (telling.webhooks if telling is not None else ()))


async def tell(telling: Telling | None, journal: Journal, vitals: Vitals, clock: Clock, words: Words) -> None:
    """Notify all receivers until cancelled. The next start sends the rest. `words`: of revisions."""
    if telling is None:
        return
    async with Poster.open() as poster:
        receivers: dict[str, Callable[[], Webhook | CommitStatuses]] = {}
        for hook in telling.webhooks:
            told = vitals.webhooks.setdefault(hook.address.name, Deliveries())
            receivers[hook.address.name] = partial(Webhook, hook, journal, poster, clock, words, told)
        if (forge := telling.forge) is not None:
            statuses = vitals.commit_status = Deliveries()
            current = partial(_current, vitals)
            receivers["forge"] = lambda: CommitStatuses(forge, poster, clock, current, lambda: vitals.fleet, statuses)
        async with asyncio.TaskGroup() as tasks:
            for name, begin in receivers.items():
                tasks.create_task(_kept_up(name, begin, clock), name=f"receiver {name}")


def _current(vitals: Vitals) -> CommitStatus | None:
    """Return the status of the active commit, from the last state."""
    step = vitals.shown.step
    if step is None or step.revision != vitals.revision:
        return None
    verdict, description = commit_status(step, vitals.source_error, vitals.shown.rollouts)
    return CommitStatus(commit=step.revision, state=str(verdict), description=description)


async def _kept_up(name: str, begin: Callable[[], Webhook | CommitStatuses], clock: Clock) -> None:
    """Tell a receiver until that is over, and anew after a fault, also one of reading the journal."""
    told = Transitions()
    while True:
        try:
            await begin().run()
        except Exception as error:
            # Only the cursor is written here: a round that cannot write the journal either says what that means.
            told.fault(name, error, "others cannot be told for a fault of the program; it is begun anew",
                       **fault_fields(subject=name))  # fmt: skip
            await clock.sleep(timing.CHECK_S)
        else:
            return
