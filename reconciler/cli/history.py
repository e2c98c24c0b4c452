"""`reconciler history`: persons, changes, times and reasons, of the whole fleet or of a part of it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import (
    ServiceAddress,
    commits_of,
    journal_path,
    refuse_local,
    served_history,
    server_options,
)
from reconciler.cli.printing import answer, document_text, remark, terminal_width

if TYPE_CHECKING:
    from reconciler.report.views.queries import HistoryQuery

    History = Callable[[HistoryQuery], tuple[dict[str, Any], int]]

_CHECK_S: Final = 1.0


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
@server_options
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
    server: ServiceAddress | None,
    output: str,
) -> None:
    """Say who did what, when and why, newest first: of the whole fleet, or of what the options select.

    The newest 100,000 events are kept, and of persons 10,000 more; `spec.history` of the Fleet document says otherwise.
    """
    from msgspec.structs import replace

    from reconciler.cli.options import resource_in
    from reconciler.controller.vitals.journal_documents import JournalHistory
    from reconciler.report.status.history_text import history_text
    from reconciler.report.views.queries import HistoryQuery

    if is_followed and output == "yaml":
        raise click.UsageError("-w prints a line for each event: -o json, or none")

    question = HistoryQuery(
        resource=resource_in(words) if words else "",
        namespace=namespace or "",
        cluster=cluster,
        since=_moment(since) if since else "",
        limit=limit,
    )
    if server is not None:
        refuse_local(server, store=store, journal=journal)
        ask: History = partial(served_history, server.open())
    else:
        path = journal_path(journal, store)
        ask = JournalHistory(path, lambda source: commits_of(store or source, beside=path)).ask
    document, last = ask(question)
    if is_followed:
        _print_lines(reversed(document["events"]), output)
        _follow(ask, replace(question, after=last, limit=sys.maxsize), output)
    elif output in ("json", "yaml"):
        answer(document_text(document, output))
    elif document["events"]:
        answer(history_text(document, wide=output == "wide", width=terminal_width()))
    else:
        is_part = question.resource or question.namespace or question.cluster or question.since
        remark("nothing of that has happened" if is_part else "nothing has happened yet")


def _moment(text: str) -> str:
    """Return a time, or a span before now, in UTC (RFC 3339). Raises ConfigurationError: it is neither."""
    from reconciler.clock import epoch_s, instant, rfc3339, seconds_in
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
    from reconciler.clock import SystemClock

    return SystemClock().now()


def _pause() -> None:
    time.sleep(_CHECK_S)


def _follow(ask: History, question: HistoryQuery, output: str) -> None:
    from msgspec.structs import replace

    while True:
        _pause()
        document, last = ask(question)
        question = replace(question, after=last)
        _print_lines(document["events"], output)


def _print_lines(entries: Iterable[Mapping[str, Any]], output: str) -> None:
    from reconciler.report.json_parts import json_line
    from reconciler.report.status.history_text import history_line

    for entry in entries:
        answer((json_line(dict(entry)) if output == "json" else history_line(entry)) + "\n")
