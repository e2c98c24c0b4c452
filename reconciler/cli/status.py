"""`reconciler status`: how far the clusters are from the store, as the last round left it. No cluster is asked."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.cli.access import journal_path
from reconciler.cli.printing import answer, document_text, prose, remark, style_for
from reconciler.errors import JournalError

if TYPE_CHECKING:
    from reconciler.adapters.journal.journal import Journal
    from reconciler.model.ledger import Event

_EVENTS_MAX = 100_000


@click.command(context_settings=options.SETTINGS)
@options.optional_store
@options.journal
@options.option("--released", is_flag=True, help="List the objects that were left to themselves instead.")
@options.output("table", "wide", "json", "yaml", default="table")
def command(*, store: str | None, journal: Path | None, released: bool, output: str) -> None:
    """Say how far the clusters are from the store: what is in step, held, suspended or failed, and why.

    It is read from the journal, also while a daemon runs; with STORE, a Git repository, the commit is named too.
    """
    from reconciler.adapters.clock import SystemClock
    from reconciler.adapters.journal.journal import Journal
    from reconciler.adapters.journal.lock import holder
    from reconciler.cli.commits import Commits
    from reconciler.daemon.observing.reading import constraints_in
    from reconciler.report.status.document import Status, status_document
    from reconciler.report.status.text import released_text, status_text
    from reconciler.stages.observations import in_force

    path, now = journal_path(journal, store), SystemClock().now()
    with Journal.open(path, read_only=True) as opened, opened.transaction():
        picture = opened.state()
        if picture is None:
            raise JournalError(f"{path}: no round has been recorded yet; 'reconciler apply' or 'run' makes the first")
        status = Status(
            fleet=opened.fleet,
            journal=str(path),
            writer=str(holder(path) or ""),
            picture=picture,
            commit=Commits(store or picture["source"], beside=path).words(picture["revision"]),
            suspensions=in_force(opened.suspensions(), now),
            constraints=in_force(constraints_in(opened), now),
            released=released_objects(opened),
        )
    document = status_document(status)
    if output in ("json", "yaml"):
        answer(document_text(document, output))
    elif not released:
        prose(status_text(document, style_for(), wide=output == "wide"))
    elif text := released_text(document):
        prose(text)
    else:
        remark("nothing has been released")


def released_objects(journal: Journal) -> tuple[Event, ...]:
    """The release of every object that was left to itself and has not become ours again, newest first."""
    from reconciler.adapters.journal.events import EventFilter
    from reconciler.model.ledger import MADE

    found: dict[str, Event] = {}
    for event in journal.events(kind="released", limit=_EVENTS_MAX):
        if event.subject not in found:
            ((_, last),) = journal.newest_events(EventFilter(subject=event.subject, kinds=MADE), 1)
            if last == event:
                found[event.subject] = event
    return tuple(found.values())
