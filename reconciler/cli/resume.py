"""`reconciler resume`: end a suspension. Works while a daemon runs."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import journal_path
from reconciler.cli.options import orders_of, person
from reconciler.cli.printing import remark
from reconciler.errors import ConfigurationError


@click.command(context_settings=options.SETTINGS)
@options.suspension_scope
@options.namespace_of_resource
@options.option("--all", "is_all", is_flag=True, help="End every suspension.")
@options.option("--reason", default="", help="Why; shown in `history`.")
@options.store_of_fleet
@options.journal
def command(
    *, scope: tuple[str, ...], namespace: str | None, is_all: bool, reason: str, store: str | None, journal: Path | None
) -> None:
    """End the suspension of SCOPE: `fleet`, `cluster NAME` or KIND/NAME."""
    from reconciler.controller.vitals.journal_documents import one_subject, subject_of

    if bool(scope) is is_all:
        raise click.UsageError("name what to resume (fleet, cluster NAME or KIND/NAME), or give --all")
    with orders_of(journal_path(journal, store)) as book:
        scopes = [record.scope for record in book.suspensions()]
        wanted, text = scopes, " ".join(scope)
        if not is_all and text in scopes:
            wanted = [text]
        elif not is_all:
            subjects = [subject for known in scopes if (subject := subject_of(known)) is not None]
            try:
                wanted = [str(one_subject(subjects, "/".join(scope), namespace))]
            except ConfigurationError as error:
                listed_scopes = ", ".join(scopes) or "nothing"
                raise ConfigurationError(f"{text} is not suspended; suspended: {listed_scopes}") from error
        for chosen in wanted:
            book.resume(chosen, person(), reason)
            remark(f"resumed {chosen}")
        if not scopes:
            remark("nothing is suspended")
