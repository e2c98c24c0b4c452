"""`reconciler suspend`: stop writing, to everything, to one cluster or to one resource. Works while a daemon runs."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import journal_path
from reconciler.cli.options import orders_of, person
from reconciler.cli.printing import answer_rows, remark
from reconciler.errors import ConfigurationError


@click.command(context_settings=options.SETTINGS)
@options.suspension_scope
@options.namespace_of_resource
@options.option("--reason", default="", help="Why; shown wherever a change is held.")
@options.option("--for", "span", default=None, metavar="SPAN", help="For so long: 30m, 2h, 2d.")
@options.option("--until", default=None, metavar="TIME", help="Until this time (RFC 3339).")
@options.store_of_fleet
@options.journal
@options.output("table", "json", "yaml", default="table")
def command(
    *,
    scope: tuple[str, ...],
    namespace: str | None,
    reason: str,
    span: str | None,
    until: str | None,
    store: str | None,
    journal: Path | None,
    output: str,
) -> None:
    """Stop writing to SCOPE: `fleet`, `cluster NAME` or KIND/NAME. Without a scope, list what is suspended.

    Plans go on and show what is held; nothing is written before `resume`, or before the time given.
    """
    from reconciler.api.ledger import SuspensionRecord
    from reconciler.clock import SystemClock
    from reconciler.journal.sqlite_journal import Journal
    from reconciler.observations import in_force
    from reconciler.report.status.status_document import suspensions_part

    path, now = journal_path(journal, store), SystemClock().now()
    if not scope:
        with Journal.open(path, read_only=True) as opened:
            records = in_force(opened.suspensions(), now)
        rows = [[record.scope, record.who, record.until or "resumed", record.reason] for record in records]
        header = ["SCOPE", "BY", "UNTIL", "REASON"]
        if not answer_rows("suspensions", suspensions_part(records), output, header, rows, (1,)):
            remark("nothing is suspended")
        return
    if not reason:
        raise click.UsageError("say why: --reason TEXT is shown wherever a change is held")
    record = SuspensionRecord(
        scope=scope_text(path, scope, namespace), reason=reason, who=person(), until=_end(span, until, now)
    )
    with orders_of(path) as book:
        book.suspend(record)
    end = f" until {record.until}" if record.until else "; 'reconciler resume' ends it"
    remark(f"suspended {record.scope}{end}")


def scope_text(path: Path, scope: tuple[str, ...], namespace: str | None) -> str:
    """Return the scope as the journal has it. Raises ConfigurationError: it is none, or the journal has no such."""
    from reconciler.controller.vitals.journal_documents import known_subjects, one_subject
    from reconciler.journal.sqlite_journal import Journal

    if scope == ("fleet",):
        return "fleet"
    with Journal.open(path, read_only=True) as journal:
        if scope[0] == "cluster" and len(scope) == 2:
            known = {entry["name"] for entry in (journal.state() or {}).get("clusters", ())} | {*journal.cluster_uids()}
            if scope[1] not in known:
                raise ConfigurationError(
                    f"the journal knows no cluster {scope[1]}; it knows {', '.join(sorted(known)) or 'none'}"
                )
            return f"cluster {scope[1]}"
        if len(scope) in (1, 2) and "/" in "/".join(scope) and scope[0] != "cluster":
            return str(one_subject(known_subjects(journal), "/".join(scope), namespace))
    raise ConfigurationError(f"{' '.join(scope)} is no scope; write fleet, cluster NAME, or KIND/NAME -n NAMESPACE")


def _end(span: str | None, until: str | None, now: str) -> str:
    from reconciler.clock import epoch_s, moment, rfc3339, seconds_in

    if span and until:
        raise click.UsageError("give --for or --until, not both")
    if span:
        return rfc3339(epoch_s(now) + seconds_in(span))
    return moment(until, now) if until else ""
