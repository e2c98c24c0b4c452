"""`reconciler resume`: end a suspension. Works while a daemon runs."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import journal_path
from reconciler.cli.options import orders_of
from reconciler.cli.printing import remark


@click.command(context_settings=options.SETTINGS)
@options.suspension_scope
@options.option("-n", "--namespace", default=None, help="Namespace of the resource, when its name is not enough.")
@options.option("--all", "is_all", is_flag=True, help="End every suspension.")
@options.option("--reason", default="", help="Why; shown in `history`.")
@options.store_of_fleet
@options.journal
def command(
    *,
    scope: tuple[str, ...],
    namespace: str | None,
    is_all: bool,
    reason: str,
    store: str | None,
    journal: Path | None,
) -> None:
    """End the suspension of SCOPE: `fleet`, `cluster NAME` or KIND/NAME."""
    from reconciler.cli.options import person

    if bool(scope) is is_all:
        raise click.UsageError("name what to resume (fleet, cluster NAME or KIND/NAME), or give --all")
    with orders_of(journal_path(journal, store)) as book:
        found = [record.scope for record in book.suspensions()]
        for chosen in found if is_all else [_one_of(found, scope, namespace)]:
            book.resume(chosen, person(), reason)
            remark(f"resumed {chosen}")
        if not found:
            remark("nothing is suspended")


def _one_of(found: list[str], scope: tuple[str, ...], namespace: str | None) -> str:
    from reconciler.controller.vitals.journal_documents import one_subject, subject_of
    from reconciler.errors import ConfigurationError

    text = " ".join(scope)
    if text in found:
        return text
    subjects = [subject for known in found if (subject := subject_of(known)) is not None]
    try:
        return str(one_subject(subjects, "/".join(scope), namespace))
    except ConfigurationError as error:
        raise ConfigurationError(f"{text} is not suspended; suspended: {', '.join(found) or 'nothing'}") from error
