"""`reconciler doctor`: whether every cluster can be reached and what our credentials may do there."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from reconciler.cli import options
from reconciler.cli.access import access_to
from reconciler.cli.printing import answer, remark, style_for
from reconciler.cli.reading import check_clusters, read_fleet
from reconciler.cli.running import run
from reconciler.model.fleet import Fleet

if TYPE_CHECKING:
    from reconciler.adapters.kube.client import MemberCluster
    from reconciler.daemon.round.session import Access

VERBS = ("list", "patch", "delete")


class Finding(Struct, frozen=True, kw_only=True):
    """What was found out about one cluster. `denied`: verb and kind that are not allowed."""

    cluster: str
    context: str
    version: str = ""
    error: str = ""
    uid: str = ""
    denied: tuple[str, ...] = ()


@click.command(context_settings=options.SETTINGS)
@options.store_argument
@options.rev
@options.as_directory
@options.kubeconfig
@options.journal
@options.cluster_filter
@options.output("text", "json", default="text")
def command(
    *,
    store: str,
    rev: str | None,
    as_directory: bool,
    kubeconfig: Path | None,
    journal: Path | None,
    clusters: tuple[str, ...],
    output: str,
) -> None:
    """Check access to every cluster of STORE: context, version, and the right to list, patch and delete each kind."""
    from reconciler.report.json_parts import json_text
    from reconciler.report.text.table import table

    fleet = read_fleet(store, rev, as_directory=as_directory)
    check_clusters(clusters, fleet)
    access = access_to(kubeconfig, journal, clusters)
    findings = run(_examine(fleet, access))
    if output == "json":
        answer(json_text({"version": 1, "clusters": [_part(finding) for finding in findings]}))
    else:
        rows = [
            [
                finding.cluster,
                finding.context,
                finding.version or "-",
                "no" if finding.error else "yes",
                *(_allowed(finding, verb) for verb in VERBS),
            ]
            for finding in findings
        ]
        answer(table(["CLUSTER", "CONTEXT", "VERSION", "REACHABLE", "LIST", "PATCH", "DELETE"], rows))
        style = style_for(sys.stderr)
        for finding in findings:
            if finding.error:
                remark(f"{style.red(finding.cluster)}: {finding.error}")
            if finding.denied:
                remark(f"{style.yellow(finding.cluster)}: not allowed: {', '.join(finding.denied)}")
        if not fleet.settings.name:
            remark("the store has no document of kind Fleet with a name; apply and run need one ('reconciler init')")
    sys.exit(1 if any(finding.error or finding.denied for finding in findings) else 0)


async def _examine(fleet: Fleet, access: Access) -> list[Finding]:
    from reconciler.daemon.round.session import open_members
    from reconciler.errors import ReconcilerError

    kinds = sorted({template.gvk for template in fleet.templates.values()})

    async def one(member: MemberCluster) -> Finding:
        version, uid, discovery = await asyncio.gather(member.version(), member.identity(), member.discover())
        served = [gvk for gvk in kinds if gvk in discovery.kinds]
        questions = [(verb, gvk) for gvk in served for verb in VERBS]
        answers = await asyncio.gather(*(member.may(verb, gvk) for verb, gvk in questions))
        denied = tuple(
            f"{verb} {gvk.kind}" for (verb, gvk), allowed in zip(questions, answers, strict=True) if not allowed
        )
        context = fleet.clusters[member.name].context_name
        return Finding(cluster=member.name, context=context, version=version, uid=uid, denied=denied)

    async with open_members(fleet, access) as members:
        found = await members.each(one)
    return [
        Finding(cluster=name, context=fleet.clusters[name].context_name, error=getattr(result, "message", str(result)))
        if isinstance(result, ReconcilerError)
        else result
        for name, result in sorted(found.items())
        if isinstance(result, Finding | ReconcilerError)
    ]


def _allowed(finding: Finding, verb: str) -> str:
    if finding.error:
        return "-"
    return "partly" if any(entry.startswith(f"{verb} ") for entry in finding.denied) else "yes"


def _part(finding: Finding) -> dict[str, object]:
    return {
        "cluster": finding.cluster,
        "context": finding.context,
        "version": finding.version or None,
        "reachable": not finding.error,
        "error": finding.error or None,
        "uid": finding.uid or None,
        "denied": list(finding.denied),
    }
