"""The answers of `status`, here and from another machine."""

from __future__ import annotations

from typing import Final

from reconciler.adapters.journal.books.events import EventFilter
from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.journal.lock import holder
from reconciler.adapters.sources.commits import Commits
from reconciler.daemon.observing.reading import constraints_in
from reconciler.errors import JournalError
from reconciler.model.ledger import MADE, Event
from reconciler.model.tree import Json, JsonObject
from reconciler.report.status.document import Status, status_document
from reconciler.stages.observations import in_force

_EVENTS_MAX: Final = 100_000


def picture_in(journal: Journal) -> JsonObject:
    """The picture of the last round.

    Raises:
        JournalError: there is none yet.
    """
    picture = journal.state()
    if picture is None and journal.led_by:
        raise JournalError(f"{journal.path}: its process stands by, and {journal.led_by} leads: ask there")
    if picture is None:
        raise JournalError(
            f"{journal.path}: no round has been recorded yet; 'reconciler apply' or 'run' makes the first"
        )
    return picture


def status_of(journal: Journal, commits: Commits, now: str) -> dict[str, Json]:
    """The document of `status -o json`. The journal is read in one view, which the caller opens.

    Raises:
        JournalError: no round was recorded yet, or it cannot be read.
    """
    picture = picture_in(journal)
    return status_document(
        Status(
            fleet=journal.fleet,
            journal=str(journal.path),
            writer=str(holder(journal.path) or ""),
            led_by=journal.led_by,
            picture=picture,
            commit=commits.words(picture["revision"]),
            suspensions=in_force(journal.suspensions(), now),
            constraints=in_force(constraints_in(journal), now),
            released=released_objects(journal),
        )
    )


def released_objects(journal: Journal) -> tuple[Event, ...]:
    """The release of every object that was left to itself and has not become ours again, newest first."""
    found: dict[str, Event] = {}
    for event in journal.events(kind="released", limit=_EVENTS_MAX):
        if event.subject not in found:
            ((_, last),) = journal.newest_events(EventFilter(subject=event.subject, kinds=MADE), 1)
            if last == event:
                found[event.subject] = event
    return tuple(found.values())
