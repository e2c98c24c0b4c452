"""`reconciler explain`: why a resource lives where it does. A lookup in the decision, not a second computation."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.access import access_to
from reconciler.cli.printing import answer, remark, style_for
from reconciler.cli.reading import bulk_load, read_fleet, read_observations
from reconciler.cli.running import run


@click.command(context_settings=options.SETTINGS)
@options.resource_words("KIND/NAME [STORE]")
@options.named_store
@options.option("-n", "--namespace", default=None, help="Namespace of the resource, when the name alone is not enough.")
@options.rev
@options.as_directory
@options.kubeconfig
@options.journal
@options.observations
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
    output: str,
) -> None:
    """Say why KIND/NAME lives where it does: policy, clusters, arithmetic, overrides, each with file and line.

    `KIND NAME` will do, too.
    """
    from reconciler.adapters.clock import SystemClock
    from reconciler.cli.resources import resource_and_store
    from reconciler.daemon.round.session import decide_once
    from reconciler.engine import decide, render_one
    from reconciler.report.close_names import close_to
    from reconciler.report.explanation import explain, explanation_document, explanation_text
    from reconciler.report.json_parts import json_text
    from reconciler.report.naming import called
    from reconciler.stages.decision import without_outdated_caps
    from reconciler.stages.placement import constraints_in_force

    resource, named = resource_and_store(words)
    with bulk_load():
        fleet = read_fleet(named or store, rev, as_directory=as_directory)
    matches = called(fleet.templates, resource, namespace)
    if len(matches) != 1:
        what = "no resource of the store is" if not matches else "several resources of the store are"
        remark(f"error: {what} called {resource}" + (f" in namespace {namespace}" if namespace else ""))
        for identity in matches:
            remark(f"  {identity.kind}/{identity.name} -n {identity.namespace}")
        if close := close_to(fleet.templates, resource) if not matches else ():
            remark(f"  did you mean {' or '.join(close)}?")
        sys.exit(1)
    access = access_to(kubeconfig, journal, fleet=fleet)
    if live:
        reading = run(decide_once(fleet, access))
        decision, now, known = reading.decision, reading.now, reading.world.observations
    else:
        now, known = SystemClock().now(), read_observations(observations)
        decision = decide(fleet, known, now, interpreters=access.interpreters)
    known = without_outdated_caps(known, fleet.templates, decision.policies, decision.interpreters)
    in_force = constraints_in_force(known.constraints, now).get(matches[0], ())
    found = explain(decision, render_one(decision, matches[0]), matches[0], in_force)
    document = explanation_document(found)
    answer(json_text(document) if output == "json" else explanation_text(document, style_for()))
