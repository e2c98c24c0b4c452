"""`reconciler observe`: write the observations of the clusters, for `--observations` elsewhere."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import access_to
from reconciler.cli.printing import answer, remark, run, write_file


@click.command(context_settings=options.SETTINGS)
@options.store_choice
@options.kubeconfig
@options.journal
@options.cluster_filter
@options.file_option("-o", "--file", "output", help="File to write.")
def command(
    *,
    chosen: options.StoreChoice,
    kubeconfig: Path | None,
    journal: Path | None,
    clusters: tuple[str, ...],
    output: Path | None,
) -> None:
    """Write nodes, free capacity, workloads and placements of every cluster of STORE as YAML."""
    from reconciler.cli.store_reading import check_clusters, read_fleet
    from reconciler.controller.once.planning import observe_once
    from reconciler.observations import dump_observations
    from reconciler.report.render_json import dump_yaml

    fleet = read_fleet(*chosen)
    check_clusters(clusters, fleet)
    access = access_to(options.Reach(kubeconfig, journal=journal), clusters, fleet=fleet)
    observations = run(observe_once(fleet, access))
    text = dump_yaml(dump_observations(observations))
    if output is None:
        answer(text)
    else:
        # A reader must never see half a file.
        write_file(output, text)
        remark(f"wrote {output}: {len(observations.clusters)} clusters")
    for name, cluster in sorted(observations.clusters.items()):
        if not cluster.reachable:
            remark(f"{name}: not reachable")
