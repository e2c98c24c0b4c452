"""`reconciler doctor`: check access to every cluster and the rights of our credentials there, and who leads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.cli import options
from reconciler.cli.cluster_access import access_to, program_named
from reconciler.cli.printing import answer, remark, run, style_for, terminal_width
from reconciler.errors import ConfigurationError

if TYPE_CHECKING:
    from reconciler.cli.rights import Finding
    from reconciler.controller.service.elector import LeaderStatus


def _leader_words(leader: LeaderStatus) -> str:
    where = f"the Lease in {leader.cluster}"
    if leader.error:
        return f"{where} cannot be read, so no process can become the leader here: {leader.error}"
    left = "" if leader.has_handover else "; what the next leader has to know is not there"
    if not leader.holder:
        return f"nobody leads: nobody holds {where}{left}"
    return f"{leader.holder} leads in term {leader.term}; it renewed {where} at {leader.renewed or 'no time'}{left}"


VERBS = ("list", "patch", "delete")


@click.command(context_settings=options.SETTINGS)
@options.store_choice
@options.reach
@options.cluster_filter
@options.option("--rbac", type=click.Choice(["read", "apply", "full"]), default=None,
                help="Print the role that STORE needs: to read, to apply without deleting, or for "
                     "everything.")  # fmt: skip
@options.option("--subject", default="ServiceAccount:fleet-system/fleet-reconciler", show_default=True,
                help="With --rbac: who gets the role; User:NAME and Group:NAME will do, too.")  # fmt: skip
@options.option("--page", type=click.Choice(["objects", "logs"]), default=None,
                help="With --rbac: also what the page reads of an object: its pods and events, or logs of broken pods "
                     "as well.")  # fmt: skip
@options.option("--review", is_flag=True, help="Check what judges pull requests of STORE's repository instead.")
@options.sops_binary_options
@options.output("text", "json", default="text")
def command(
    *,
    chosen: options.StoreChoice,
    reach: options.Reach,
    clusters: tuple[str, ...],
    rbac: str | None,
    subject: str,
    page: str | None,
    review: bool,
    keys: options.KeysNamed,
    output: str,
) -> None:
    """Check access to every cluster of STORE: context, version, risks, and every right that STORE needs there."""
    from reconciler.cli.rights import examine, role
    from reconciler.cli.store_reading import check_clusters, read_fleet, require_clusters
    from reconciler.report.json_parts import json_text

    if review:
        _review(Path(chosen.store), output)
    fleet = read_fleet(*chosen)
    check_clusters(clusters, fleet)
    require_clusters(fleet, chosen.store)
    access = access_to(reach, clusters, fleet=fleet)
    if rbac is not None:
        answer(run(role(fleet, access, rbac, subject, output, page)))
        return
    sops, fault = _sops(keys, chosen.store)
    findings, leading = run(examine(fleet, access))
    if output == "json":
        parts = [_part(finding) for finding in findings]
        sops_part = {"version": sops or None, "error": fault or None} if sops or fault else None
        document = {"version": 1, "clusters": parts, "sops": sops_part}
        if leading is not None:
            document["leader"] = {
                "cluster": leading.cluster,
                "holder": leading.holder or None,
                "term": leading.term,
                "renewed": leading.renewed or None,
                "handover": leading.has_handover,
                "error": leading.error or None,
            }
        answer(json_text(document))
    else:
        _print_findings(findings, fleet)
        for name in () if clusters else sorted(access.clusters.elsewhere(fleet)):
            remark(
                f"{name}: another process applies there (spec.syncMode: Pull); --cluster {name} asks it all the same"
            )
        if leading is not None:
            remark(_leader_words(leading))
        if sops or fault:
            remark(fault or f"sops {sops} opens what is encrypted for other keys than age, as this user")
    is_unled = leading is not None and bool(leading.error)
    is_useless = bool(fault) or is_unled or not fleet.settings.name
    sys.exit(1 if is_useless or any(finding.error or finding.denied for finding in findings) else 0)


def _review(store: Path, output: str) -> NoReturn:
    """Print the gaps in the check of pull requests, and exit: 1 when there is one."""
    from reconciler.lint import NOT_SEEN, is_judge, review_faults
    from reconciler.report.json_parts import json_text

    folder = store.resolve()
    root = next((files for files in (folder, *folder.parents) if (files / ".git").exists()), folder)
    files = {path.relative_to(root).as_posix(): path for path in root.glob("*") if path.is_file()}
    for below in root.iterdir():
        if is_judge(below.name) or below.name == "docs":
            files |= {path.relative_to(root).as_posix(): path for path in below.rglob("*") if path.is_file()}
    faults = review_faults({path: file.read_bytes() for path, file in files.items() if is_judge(path)})
    if output == "json":
        answer(json_text({"version": 1, "review": faults}))
    else:
        answer("\n".join(faults) or "No gap is seen in the check of pull requests.")
        remark(NOT_SEEN)
    sys.exit(1 if faults else 0)


def _sops(keys: options.KeysNamed, store: str) -> tuple[str, str]:
    """The version of the sops that was named, and why it cannot be used; both empty: none was named."""
    try:
        program = program_named(keys, store)
        return (program.version() if program is not None else ""), ""
    except ConfigurationError as error:
        return "", str(error)


def _print_findings(findings: list[Finding], fleet: Fleet) -> None:
    from reconciler.report.terminal import Fit, table

    rows = [
        [
            finding.cluster,
            finding.context,
            finding.version or "-",
            "yes" if finding.version else "no",
            *("-" if finding.error else "partly" if verb in denied else "yes" for verb in VERBS),
        ]
        for finding in findings
        for denied in [{verb for right in finding.denied for verb in right.verbs}]
    ]
    header = ["CLUSTER", "CONTEXT", "VERSION", "REACHABLE", "LIST", "PATCH", "DELETE"]
    # The context is most often the cluster's name.
    answer(table(header, rows, fit=Fit(width=terminal_width(), drop=(1, 2))))
    style = style_for(sys.stderr)
    for finding in findings:
        name = style.yellow(finding.cluster)
        if finding.error:
            remark(f"{style.red(finding.cluster)}: {finding.error}")
        if finding.denied:
            enough = f"enough to {finding.level}; " if finding.level else ""
            lacking = "; ".join(map(str, finding.denied))
            remark(f"{name}: {enough}not allowed: {lacking}; 'reconciler doctor --rbac full' prints the role")
        for text in (*finding.unserved, *finding.risks):
            remark(f"{name}: {text}")
        if plugin := finding.exec_plugin:
            remark(f"{finding.cluster}: credentials come from the exec plugin {plugin}, which is run as this user")
        if finding.pod_account:
            remark(f"{finding.cluster}: reached as the account of this pod, with what is in {finding.pod_account}")
    if not fleet.settings.name:
        from reconciler.fleet import why_nameless

        remark(f"{why_nameless(fleet)}; apply and run need one")


def _part(finding: Finding) -> dict[str, object]:
    return {
        "cluster": finding.cluster,
        "context": finding.context,
        "version": finding.version or None,
        "reachable": bool(finding.version),
        "error": finding.error or None,
        "uid": finding.uid or None,
        "denied": [str(replace(right, verbs=(verb,))) for right in finding.denied for verb in right.verbs],
        "level": finding.level or None,
        "risks": list(finding.risks),
        "execPlugin": finding.exec_plugin or None,
        "podAccount": finding.pod_account or None,
        **({"unserved": list(finding.unserved)} if finding.unserved else {}),
    }
