"""`reconciler now`: the running service looks at everything now, as `systemctl reload` makes it."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import journal_path
from reconciler.cli.options import orders_of, person
from reconciler.cli.printing import remark
from reconciler.errors import JournalError


@click.command(context_settings=options.SETTINGS)
@options.store_of_fleet
@options.journal
def command(*, store: str | None, journal: Path | None) -> None:
    """Ask the running service to look at everything now: the store, the kubeconfig, every cluster.

    It does so within seconds, and by itself at every commit, event and resync.
    """
    from reconciler.journal.journal_lock import holder

    path = journal_path(journal, store)
    service = holder(path)
    if service is None:
        raise JournalError(
            f"{path}: no service runs with this journal; 'reconciler apply' makes the clusters equal to the store "
            "once, 'reconciler run' starts a service"
        )
    with orders_of(path) as book:
        book.ask(person())
    remark(f"asked {service} to look at everything now; 'reconciler status' tells what it found")
