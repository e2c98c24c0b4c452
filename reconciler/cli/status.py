"""`reconciler status`: how far the clusters are from the store, as the last round left it. No cluster is asked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import ServiceAddress, commits_of, journal_path, refuse_local, server_options
from reconciler.cli.printing import answer, document_text, prose, remark, style_for


@click.command(context_settings=options.SETTINGS)
@options.optional_store
@options.journal
@server_options
@options.option("--released", is_flag=True, help="List the objects that were left to themselves instead.")
@options.output("table", "wide", "json", "yaml", default="table")
def command(
    *, store: str | None, journal: Path | None, server: ServiceAddress | None, released: bool, output: str
) -> None:
    """Say how far the clusters are from the store: what is in step, held, suspended or failed, and why.

    It is read from the journal, also while a daemon runs; with STORE, a Git repository, the commit is named too.
    """
    from reconciler.clock import SystemClock
    from reconciler.observations import age_s
    from reconciler.report.status.text import released_text, status_text

    if server is not None:
        refuse_local(server, store=store, named_store=store, journal=journal)
    now = SystemClock().now()
    document = server.open().get("status").document if server is not None else _read(journal, store, now)
    if (ahead_s := -age_s(document["time"], now)) > 60:  # clocks of machines differ
        remark(f"the last round is {ahead_s:.0f} s ahead of the clock here: that was set back, or is slow")
    if output in ("json", "yaml"):
        answer(document_text(document, output))
    elif not released:
        prose(status_text(document, style_for(), wide=output == "wide"))
    elif text := released_text(document):
        prose(text)
    else:
        remark("nothing has been released")


def _read(journal: Path | None, store: str | None, now: str) -> dict[str, Any]:
    from reconciler.controller.vitals.journal_documents import picture_in, status_of
    from reconciler.journal.sqlite_journal import Journal

    path = journal_path(journal, store)
    with Journal.open(path, read_only=True) as opened, opened.transaction():
        commits = commits_of(store or picture_in(opened)["source"], beside=path)
        document = status_of(opened, commits, now)
    if store is not None and commits.fault:
        remark(f"the store cannot be read, and this is what the journal knows: {commits.fault}")
    return document
