"""`reconciler history`: who, when and what: the audit trail, with the commit that each decision and write rests on."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.access import journal_path
from reconciler.cli.printing import answer, document_text, remark, terminal_width


@click.command(context_settings=options.SETTINGS)
@options.resource_words("[KIND/NAME]")
@options.option("-n", "--namespace", default=None, help="Namespace of the resource, when its name is not enough.")
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
    store: str | None,
    limit: int,
    journal: Path | None,
    output: str,
) -> None:
    """Say what was decided and written, newest first, and which commit of whom it rests on."""
    from reconciler.adapters.journal.journal import Journal
    from reconciler.cli.commits import Commits
    from reconciler.cli.resources import resource_in
    from reconciler.cli.subjects import known_subjects, one_subject
    from reconciler.report.history_text import history_document, history_text

    path = journal_path(journal, store)
    with Journal.open(path, read_only=True) as opened, opened.transaction():
        about = str(one_subject(known_subjects(opened), resource_in(words), namespace)) if words else ""
        events = opened.events(about=about, limit=limit)
        commits = Commits(store or (opened.state() or {}).get("source", ""), beside=path)
    document = history_document(events, commits.words)
    if output in ("json", "yaml"):
        answer(document_text(document, output))
    elif events:
        answer(history_text(document, wide=output == "wide", width=terminal_width()))
    else:
        remark("nothing has happened yet")
