"""`reconciler clusters`: the members that the store names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.cli import options
from reconciler.cli.cluster_access import access_to
from reconciler.cli.printing import answer, run, terminal_width
from reconciler.errors import MemberClusterError, ReconcilerError

if TYPE_CHECKING:
    from reconciler.api.fleet import Fleet
    from reconciler.controller.once.planning import Access


@click.command(context_settings=options.SETTINGS)
@options.store_choice
@options.kubeconfig
@options.live_profiles
@options.option("--offline", is_flag=True, help="Do not contact the clusters.")
@options.output("table", "json", default="table")
def command(
    *,
    chosen: options.StoreChoice,
    kubeconfig: Path | None,
    profiles: options.ProfileOptions | None,
    offline: bool,
    output: str,
) -> None:
    """List the member clusters of STORE, and whether they answer."""
    from reconciler.cli.store_reading import read_fleet, require_clusters
    from reconciler.report.json_parts import json_text
    from reconciler.report.terminal import Fit, table

    fleet = read_fleet(*chosen)
    if output == "table":
        require_clusters(fleet, chosen.store)
    versions: dict[str, str] = {}
    if not offline:
        versions = run(_versions(fleet, access_to(options.Reach(kubeconfig, profiles))))
    rows = [
        {
            "name": cluster.name,
            "alias": cluster.alias,
            "provider": cluster.provider,
            "region": cluster.region,
            "zones": list(cluster.zones),
            "labels": dict(cluster.labels),
            "taints": [f"{taint.key}={taint.value}:{taint.effect}" for taint in cluster.taints],
            "status": versions.get(cluster.name, "not asked"),
        }
        for _, cluster in sorted(fleet.clusters.items())
    ]
    if output == "json":
        answer(json_text({"version": 1, "clusters": rows}))
        return
    header = ["NAME", "ALIAS", "PROVIDER", "REGION", "LABELS", "STATUS"]
    cells = [
        [*(row[key] for key in ("name", "alias", "provider", "region")), ",".join(labels), row["status"]]
        for row, (_, cluster) in zip(rows, sorted(fleet.clusters.items()), strict=True)
        for labels in [(f"{key}={value}" for key, value in sorted(cluster.labels.items()))]
    ]
    answer(table(header, cells, fit=Fit(width=terminal_width(), drop=(4, 2, 1, 3), cuts_last=True)))


async def _versions(fleet: Fleet, access: Access) -> dict[str, str]:
    from reconciler.controller.once.planning import open_members
    from reconciler.report.mask import scrub_text

    async with open_members(fleet, access) as members:
        answers = await members.each(lambda member: member.version())
    return {
        name: scrub_text(version.message if isinstance(version, MemberClusterError) else str(version))
        for name, version in answers.items()
        if isinstance(version, str | ReconcilerError)
    }
