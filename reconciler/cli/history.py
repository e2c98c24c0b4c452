"""`reconciler history`: who did what, when and why, of the whole fleet or of a part of it."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from reconciler.cli import options
from reconciler.cli.access import journal_path
from reconciler.cli.printing import answer, document_text, remark, terminal_width

if TYPE_CHECKING:
    from reconciler.adapters.journal.events import EventFilter, Recorded
    from reconciler.adapters.journal.journal import Journal
    from reconciler.report.history_text import Words

_LOOK_S: Final = 1.0
"""How often who follows looks into the journal."""


@click.command(context_settings=options.SETTINGS)
@options.resource_words("[KIND/NAME]")
@options.option("-n", "--namespace", default=None, help="Only this namespace; with KIND/NAME, the one it is in.")
@options.option("--cluster", default="", help="Only this cluster: what is there, what came and left, and itself.")
@options.option("--since", default=None, metavar="WHEN", help="Only since then: 30m, 2h, 2d, or a time (RFC 3339).")
@options.option("-w", "--watch", "is_followed", is_flag=True, help="Go on with what happens, oldest first.")
@options.option(
    "--store", default=None, help="The store whose fleet is meant; its commits name the authors. Default: as `status`."
)
@options.option("--limit", type=click.IntRange(min=1), default=50, show_default=True, help="So many entries at most.")
@options.journal
@options.output("table", "wide", "json", "yaml", default="table")
def command(
    *,
    words: tuple[str, ...],
    namespace: str | None,
    cluster: str,
    since: str | None,
    is_followed: bool,
    store: str | None,
    limit: int,
    journal: Path | None,
    output: str,
) -> None:
    """Say who did what, when and why, newest first: of the whole fleet, or of what the options name together.

    Persons and their commands, commits, hand edits, ticks, clusters that were away, and what was decided and written.
    The newest 100,000 events are kept, and of what persons did the newest 10,000 beyond these.
    """
    from reconciler.adapters.journal.journal import Journal
    from reconciler.cli.commits import Commits
    from reconciler.report.history_text import history_document, history_text

    if is_followed and output == "yaml":
        raise click.UsageError("-w prints a line for each event: -o json, or none")
    path = journal_path(journal, store)
    with Journal.open(path, read_only=True) as opened, opened.transaction():
        wanted = _wanted(opened, words, namespace, cluster, since)
        events, last = opened.newest_events(wanted, limit), opened.last_event
        commits = Commits(store or (opened.state() or {}).get("source", ""), beside=path)
    if is_followed:
        _print_lines(reversed(events), commits.words, output)
        _follow(path, wanted, last, commits.words, output)
        return
    document = history_document((found.event for found in events), commits.words)
    if output in ("json", "yaml"):
        answer(document_text(document, output))
    elif events:
        answer(history_text(document, wide=output == "wide", width=terminal_width()))
    else:
        remark("nothing of that has happened" if any(wanted) else "nothing has happened yet")


def _wanted(
    journal: Journal, words: tuple[str, ...], namespace: str | None, cluster: str, since: str | None
) -> EventFilter:
    from reconciler.adapters.journal.events import EventFilter
    from reconciler.cli.resources import resource_in
    from reconciler.cli.subjects import known_subjects, one_subject

    about = str(one_subject(known_subjects(journal), resource_in(words), namespace)) if words else ""
    of_namespace = namespace if namespace and not words else ""
    return EventFilter(about=about, namespace=of_namespace, cluster=cluster, since=_moment(since) if since else "")


def _moment(text: str) -> str:
    """A span before now, or a time, as RFC 3339 in UTC.

    Raises:
        ConfigurationError: it is neither.
    """
    from reconciler.adapters.clock import epoch_s, rfc3339
    from reconciler.cli.durations import instant, seconds_in
    from reconciler.errors import ConfigurationError

    if text[:4].isdigit() and "-" in text:
        return instant(text)
    try:
        return rfc3339(epoch_s(_now()) - seconds_in(text))
    except ConfigurationError as error:
        raise ConfigurationError(
            f"{text!r} is no span and no time; write 30m, 2h, 2d or 2026-11-21T18:00:00Z"
        ) from error


def _now() -> str:
    from reconciler.adapters.clock import SystemClock

    return SystemClock().now()


def _pause() -> None:
    time.sleep(_LOOK_S)


def _follow(path: Path, wanted: EventFilter, last: int, words: Words, output: str) -> None:
    """Print what is recorded from here on, until somebody interrupts."""
    from reconciler.adapters.journal.journal import Journal

    while True:
        _pause()
        # Opened each time: the service may be started anew meanwhile, and a rebuilt journal is another file.
        with Journal.open(path, read_only=True) as opened, opened.transaction():
            newest = opened.last_event
            found = opened.events_after(min(last, newest), wanted)
        _print_lines(found, words, output)
        last = newest


def _print_lines(found: Iterable[Recorded], words: Words, output: str) -> None:
    from reconciler.report.history_text import history_entry, history_line
    from reconciler.report.json_parts import json_line

    for recorded in found:
        entry = history_entry(recorded.event, words)
        answer((json_line(entry) if output == "json" else history_line(entry)) + "\n")
