"""`reconciler explain`: the reasons of a placement. A lookup in the schedule, not a second computation."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import ServiceAddress, access_to, refuse_local, server_options
from reconciler.cli.options import resource_and_store
from reconciler.cli.printing import answer, prose, remark, run, style_for
from reconciler.errors import JournalError

if TYPE_CHECKING:
    from reconciler.api.fleet import Fleet
    from reconciler.api.refs import Identity


@click.command(context_settings=options.SETTINGS)
@options.resource_words("KIND/NAME [STORE]")
@options.named_store
@options.option("-n", "--namespace", default=None, help="Namespace of the resource, when the name alone is not enough.")
@options.rev
@options.as_directory
@options.kubeconfig
@options.journal
@options.observations
@server_options
@options.option("--live", is_flag=True, help="Ask the clusters for free capacity and previous placements.")
@options.output("text", "json", default="text")
def command(
    *,
    words: tuple[str, ...],
    store: str,
    namespace: str | None,
    rev: str | None,
    as_directory: bool,
    kubeconfig: Path | None,
    journal: Path | None,
    observations: Path | None,
    live: bool,
    server: ServiceAddress | None,
    output: str,
) -> None:
    """Say why KIND/NAME lives where it does: policy, clusters, arithmetic, overrides, each with file and line.

    `KIND NAME` will do, too.
    """
    from reconciler.cli.last_good_content import LastGood
    from reconciler.cli.store_reading import bulk_load, read_fleet, read_observations
    from reconciler.report.json_parts import json_text
    from reconciler.report.status.explanation import explanation_text

    resource, named = resource_and_store(words)
    if server is None:
        with bulk_load():
            fleet = read_fleet(named or store, rev, as_directory=as_directory, last_good=LastGood(journal))
        identity = _the_one(fleet, resource, namespace)
        access = access_to(options.Reach(kubeconfig, journal=journal), fleet=fleet)
        from reconciler.clock import SystemClock
        from reconciler.controller.once.planning import decide_once
        from reconciler.placement import constraints_in_force, without_outdated_caps
        from reconciler.planner import render_one
        from reconciler.report.status.explanation import explanation_document
        from reconciler.scheduler import schedule_fleet

        if live:
            reading = run(decide_once(fleet, access))
            schedule, now, known = reading.schedule, reading.snapshot.now, reading.snapshot.observations
        else:
            now, known = SystemClock().now(), read_observations(observations)
            schedule = schedule_fleet(fleet, known, now, interpreters=access.interpreters)
        known = without_outdated_caps(known, fleet.templates, schedule.policies, schedule.interpreters)
        in_force = constraints_in_force(known.constraints, now).get(identity, ())
        standing = _recorded_rollouts(access.journal) if fleet.rollouts else ()
        document = explanation_document(schedule, render_one(schedule, identity), identity, in_force, standing)
    else:
        if named:
            raise click.UsageError(f"{named} says what is read here; with --server the service reads it")
        refuse_local(server, store=store, rev=rev, as_directory=as_directory, kubeconfig=kubeconfig, journal=journal,
                      observations=observations, live=live)  # fmt: skip
        kind, _, name = resource.partition("/")
        document = server.open().get("explain", kind, namespace or "-", name).document
    if output == "json":
        answer(json_text(document))
    else:
        prose(explanation_text(document, style_for()))


def _the_one(fleet: Fleet, resource: str, namespace: str | None) -> Identity:
    """The resource of the store that is called so; without one, or with several, the command ends."""
    from reconciler.api.refs import called, close_to

    matches = called(fleet.templates, resource, namespace)
    if len(matches) == 1:
        return matches[0]
    what = "no resource of the store is" if not matches else "several resources of the store are"
    remark(f"error: {what} called {resource}" + (f" in namespace {namespace}" if namespace else ""))
    for identity in matches:
        remark(f"  {identity.kind}/{identity.name} -n {identity.namespace}")
    if broken := _broken(fleet, resource, namespace) if not matches else "":
        remark(f"  {broken}")
    elif close := close_to(fleet.templates, resource) if not matches else ():
        remark(f"  did you mean {' or '.join(close)}?")
    sys.exit(1)


def _broken(fleet: Fleet, resource: str, namespace: str | None) -> str:
    """Return what is wrong with the document that is called so, or with a file that may hold it; else empty."""
    from reconciler.api.problem import Severity
    from reconciler.api.refs import called

    named = {reach.source for reach in fleet.frozen if called(reach.identities, resource, namespace)}
    unread = {reach.source.path for reach in fleet.frozen if reach.everything or reach.namespace}
    errors = [problem for problem in fleet.problems if problem.severity is Severity.ERROR]
    broken = [
        one for source in sorted(named) for one in errors if one.source.path == source.path and one.source >= source
    ]
    if broken:
        return f"it is broken in {broken[0].source}: {broken[0].message}"
    perhaps = [problem for problem in errors if problem.source.path in unread]
    return f"{perhaps[0].source.path} may hold it, and is broken: {perhaps[0]}" if perhaps else ""


def _recorded_rollouts(journal: Path | None) -> Sequence[Mapping[str, Any]]:
    """Return the state of the rollouts from the journal here; empty if there is none."""
    from reconciler.journal.sqlite_journal import Journal

    if journal is None or not journal.exists():
        return ()
    try:
        with Journal.open(journal, read_only=True) as opened:
            return [*(opened.state() or {}).get("rollouts", ())]
    except JournalError as error:
        remark(f"where the rollouts stand is not known: {error}")
        return ()
