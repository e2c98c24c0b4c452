"""`reconciler evict`: take a resource away from a cluster, as soon as others have it. Works while a daemon runs."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import journal_path
from reconciler.cli.options import orders_of, person, resource_in
from reconciler.cli.printing import answer_rows, remark
from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.api.refs import Identity
    from reconciler.journal.sqlite_journal import Journal


@click.command(context_settings=options.SETTINGS)
@options.resource_words("[KIND/NAME]")
@options.namespace_of_resource
@options.option("--cluster", default="", help="The cluster that it leaves.")
@options.option("--reason", default="", help="Why; shown in plans, `status` and `explain`.")
@options.option(
    "--for", "span", default="10m", show_default=True, metavar="SPAN", help="It may not come back for so long."
)
@options.option("--undo", is_flag=True, help="Let it come back now.")
@options.store_of_fleet
@options.journal
@options.output("table", "json", "yaml", default="table")
def command(
    *,
    words: tuple[str, ...],
    namespace: str | None,
    cluster: str,
    reason: str,
    span: str,
    undo: bool,
    store: str | None,
    journal: Path | None,
    output: str,
) -> None:
    """Take KIND/NAME away from a cluster. Without a resource, list what is evicted.

    Its replicas go to other clusters first; where none can take them, they stay. It is also how a failed copy goes
    that `purgeMode: Never` keeps.
    """
    from reconciler.api.ledger import EvictionRecord
    from reconciler.clock import SystemClock, epoch_s, rfc3339, seconds_in
    from reconciler.journal.sqlite_journal import Journal
    from reconciler.observations import in_force
    from reconciler.report.status.status_document import evictions_part

    path, now = journal_path(journal, store), SystemClock().now()
    if not words:
        with Journal.open(path, read_only=True) as opened:
            orders = in_force(opened.evictions(), now)
        rows = [[str(order.identity), order.cluster, order.who, order.until, order.reason] for order in orders]
        header = ["RESOURCE", "CLUSTER", "BY", "UNTIL", "REASON"]
        if not answer_rows("evictions", evictions_part(orders), output, header, rows, (2, 1)):
            remark("nothing is evicted")
        return
    if not cluster:
        raise click.UsageError("name the cluster that it leaves: --cluster NAME")
    resource = resource_in(words)
    with Journal.open(path, read_only=True) as opened:
        if undo:  # It may be placed nowhere any more.
            evicted = [order.identity for order in opened.evictions() if order.cluster == cluster]
            identity = _one(evicted, resource, namespace, f"is evicted from {cluster}")
        else:
            identity = _there(opened, resource, namespace, cluster)
    with orders_of(path) as book:
        if undo:
            book.readmit(identity, cluster, person(), reason)
            remark(f"{identity} may come back to {cluster}")
            return
        until = rfc3339(epoch_s(now) + seconds_in(span))
        book.evict(
            EvictionRecord(identity=identity, cluster=cluster, since=now, until=until, who=person(), reason=reason)
        )
    remark(f"{identity} leaves {cluster} as soon as others have it, and stays away until {until}")


def _there(journal: Journal, resource: str, namespace: str | None, cluster: str) -> Identity:
    """Return the resource that is in the cluster, or kept out of it already. Raises ConfigurationError: it is not."""
    ledger = journal.ledger()
    where: dict[Identity, set[str]] = {
        identity: {target.cluster for target in placement.targets}
        for identity, placement in journal.previous_placements().items()
    }
    for name, rows in ledger.items():
        for identity in rows:
            # A copy that purgeMode Never keeps is in no placement any more.
            where.setdefault(identity, set()).add(name)
    identity = _one(where, resource, namespace, "is placed anywhere")
    known = where[identity] | {order.cluster for order in journal.evictions() if order.identity == identity}
    if cluster not in known:
        raise ConfigurationError(f"{identity} is not in {cluster}; it is in {', '.join(sorted(known))}")
    row = ledger.get(cluster, {}).get(identity)
    # A Namespace that was there before us is used as it is, and in no ledger.
    if (row.dependency or not row.policy) if row is not None else identity[:2] == ("", "Namespace"):
        raise ConfigurationError(f"{identity} goes where what needs it goes; evict that from {cluster}")
    return identity


def _one(identities: Iterable[Identity], resource: str, namespace: str | None, what: str) -> Identity:
    from reconciler.api.refs import called

    matches = called(identities, resource, namespace)
    if len(matches) == 1:
        return matches[0]
    where = f" in namespace {namespace}" if namespace else ""
    if not matches:
        raise ConfigurationError(f"nothing called {resource}{where} {what}")
    raise ConfigurationError(f"{resource} may be: {', '.join(map(str, matches))}; name the namespace with -n")
