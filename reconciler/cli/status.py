"""`reconciler status`: how far the clusters are from the store, as the last round left it. No cluster is asked."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.access import journal_path
from reconciler.cli.printing import answer, document_text, remark, style_for


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
    from reconciler.cli.commits import commits_of
    from reconciler.daemon.answers.status import picture_in, status_of
    from reconciler.report.status.text import released_text, status_text

    path, now = journal_path(journal, store), SystemClock().now()
    with Journal.open(path, read_only=True) as opened, opened.transaction():
        commits = commits_of(store or picture_in(opened)["source"], beside=path)
        document = status_of(opened, commits, now)
    if output in ("json", "yaml"):
        answer(document_text(document, output))
    elif not released:
        answer(status_text(document, style_for(), wide=output == "wide"))
    elif text := released_text(document):
        answer(text)
    else:
        remark("nothing has been released")
