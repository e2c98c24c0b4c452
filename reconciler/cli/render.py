"""`reconciler render`: the objects of every cluster as the store wants them. No cluster is asked."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.printing import answer, has_errors, show_problems


@click.command(context_settings=options.SETTINGS)
@options.store_choice
@options.observations
@options.cluster_filter
@options.option("--fresh", is_flag=True, help="Place again, whatever the previous placement was.")
@options.time("--now", words="Compute as of this time (RFC 3339). Default: now.")
@options.output("yaml", "json", "name", "placementdecision", default="yaml")
@options.option("--show-secrets", is_flag=True, help="Print values of Secrets instead of masking them.")
def command(
    *,
    chosen: options.StoreChoice,
    observations: Path | None,
    clusters: tuple[str, ...],
    fresh: bool,
    now: str | None,
    output: str,
    show_secrets: bool,
) -> None:
    """Print the objects of every cluster as STORE wants them; reads the files as they lie unless --rev is given."""
    from reconciler.cli.store_reading import bulk_load, check_clusters, read_fleet, read_observations
    from reconciler.clock import SystemClock
    from reconciler.plugins import with_plugins
    from reconciler.report.render_json import (
        dump_yaml,
        placement_decisions,
        render_json,
        render_yaml,
        rendering,
        sorted_manifests,
    )
    from reconciler.scheduler import schedule_fleet

    if output == "placementdecision" and clusters:
        raise click.UsageError("a decision is about all clusters: leave --cluster out of -o placementdecision")
    interpreters = with_plugins()
    with bulk_load():
        fleet = read_fleet(*chosen)
        check_clusters(clusters, fleet)
        observed = read_observations(observations)
        schedule = schedule_fleet(fleet, observed, now or SystemClock().now(), interpreters=interpreters, fresh=fresh)
        result = rendering(schedule, frozenset(clusters), with_bodies=output != "placementdecision")
    if output == "json":
        answer(render_json(result, show_secrets=show_secrets))
    elif output == "yaml":
        answer(render_yaml(sorted_manifests(result.manifests), show_secrets=show_secrets))
        show_problems(result.problems, hints=False)
    elif output == "placementdecision":
        namespaces = {name: cluster.namespace for name, cluster in fleet.clusters.items()}
        answer("".join(f"---\n{dump_yaml(one)}" for one in placement_decisions(result, namespaces)))
        show_problems(result.problems, hints=False)
    else:
        for manifest in sorted_manifests(result.manifests):
            answer(f"{manifest.cluster} {manifest.gvk.api_version} {manifest.identity}")
        show_problems(result.problems, hints=False)
    sys.exit(1 if has_errors(result.problems) else 0)
