"""`reconciler doctor`: check access to every cluster and the rights of our credentials there, and who leads."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click
from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import Cluster
from reconciler.api.fleet import Fleet
from reconciler.cli import options
from reconciler.cli.cluster_access import access_to
from reconciler.cli.printing import answer, remark, run, style_for, terminal_width
from reconciler.cli.run_options import KeysNamed, program_named, sops_binary_options
from reconciler.cli.store_reading import check_clusters, read_fleet, require_clusters
from reconciler.errors import ConfigurationError, ReconcilerError

if TYPE_CHECKING:
    from reconciler.controller.once.planning import Access
    from reconciler.controller.service.elector import LeaderStatus
    from reconciler.kube.client import MemberCluster
    from reconciler.kube.connection.kubeconfig import MemberConfig
    from reconciler.kube.discovery import Discovery
    from reconciler.rights import Level, Right
    from reconciler.scheduler import Schedule


def _leader_words(leader: LeaderStatus) -> str:
    where = f"the Lease in {leader.cluster}"
    if leader.error:
        return f"{where} cannot be read, so nobody can lead from here: {leader.error}"
    left = "" if leader.has_handover else "; what the next leader has to know is not there"
    if not leader.holder:
        return f"nobody leads: nobody holds {where}{left}"
    return f"{leader.holder} leads in term {leader.term}; it renewed {where} at {leader.renewed or 'no time'}{left}"


VERBS = ("list", "patch", "delete")
_NO_EVENTS = (
    "not allowed: list events, so why pods of StatefulSets, DaemonSets and Jobs are not made is not told; "
    "'reconciler doctor --rbac full' prints the role",
)


class Finding(Struct, frozen=True, kw_only=True):
    """Result of the checks of one cluster.

    `denied`: rights that the store needs and we do not have. `level`: the highest level for which the rights suffice;
    empty: none. `risks`: unsafe ways of access, and what a missing right hides. `exec_plugin`: the command that is run
    for credentials. `pod_account`: the folder with token and authority of the pod's account; empty: not used.
    `unserved`: a remedy for each kind of the store that the cluster does not serve.
    """

    cluster: str
    context: str
    version: str = ""
    error: str = ""
    uid: str = ""
    denied: tuple[Right, ...] = ()
    level: str = ""
    risks: tuple[str, ...] = ()
    exec_plugin: str = ""
    pod_account: str = ""
    unserved: tuple[str, ...] = ()


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
@sops_binary_options
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
    keys: KeysNamed,
    output: str,
) -> None:
    """Check access to every cluster of STORE: context, version, risks, and every right that STORE needs there."""
    from reconciler.cli.rights import role
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
    findings, leading = run(_examine(fleet, access))
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
        _tell(findings, fleet)
        for name in sorted(_pulling(fleet, access)):
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


def _sops(keys: KeysNamed, store: str) -> tuple[str, str]:
    """The version of the sops that was named, and why it cannot be used; both empty: none was named."""
    try:
        program = program_named(keys, store)
        return (program.version() if program is not None else ""), ""
    except ConfigurationError as error:
        return "", str(error)


def _tell(findings: list[Finding], fleet: Fleet) -> None:
    from reconciler.report.terminal import Fit, table

    rows = [
        [
            finding.cluster,
            finding.context,
            finding.version or "-",
            "no" if finding.error else "yes",
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
        if finding.exec_plugin:
            plugin = finding.exec_plugin
            remark(f"{finding.cluster}: credentials come from the exec plugin {plugin}, which is run as this user")
        if finding.pod_account:
            remark(f"{finding.cluster}: reached as the account of this pod, with what is in {finding.pod_account}")
    if not fleet.settings.name:
        from reconciler.fleet import why_nameless

        remark(f"{why_nameless(fleet)}; apply and run need one")


def _pulling(fleet: Fleet, access: Access) -> frozenset[str]:
    from reconciler.controller.cluster_reads.clusters_needed import pulling

    return frozenset() if access.clusters.chosen else pulling(fleet)


async def _examine(fleet: Fleet, access: Access) -> tuple[list[Finding], LeaderStatus | None]:
    from reconciler.cli.rights import decided, needed, recorded_kinds
    from reconciler.controller.once.planning import configs_of, open_members
    from reconciler.controller.service.elector import LeaderStatus, who_leads
    from reconciler.rights import EXPLAINING, Level, resource_names

    schedule, recorded, known = decided(fleet, access), recorded_kinds(access), resource_names(fleet)

    async def one(member: MemberCluster) -> Finding:
        version, uid, discovery = await asyncio.gather(member.version(), member.identity(), member.discover())
        names = known | {gvk.group_kind: kind.plural for gvk, kind in discovery.kinds.items()}
        served = {(gvk.group, kind.plural) for gvk, kind in discovery.kinds.items()}
        wanted = {level: needed(schedule, level, recorded, names, member.name)[0] for level in Level}
        rights = [right for right in wanted[Level.FULL] if (right.group, right.resource) in served]
        refused = tuple(chain.from_iterable(await asyncio.gather(*(_denied(member, right) for right in rights))))
        denied = tuple(right for right in refused if right != EXPLAINING)
        context = fleet.clusters[member.name].context_name
        return Finding(
            cluster=member.name, context=context, version=version, uid=uid, denied=denied, level=_level(wanted, denied),
            unserved=_unserved(schedule, member.name, discovery), risks=_NO_EVENTS if denied != refused else (),
        )  # fmt: skip

    ha, leading, pulling = fleet.settings.ha, None, _pulling(fleet, access)
    async with open_members(fleet, access) as members:
        configs = configs_of(fleet, access)
        results = await members.each(one)
        if ha is not None and (not access.clusters.chosen or ha.cluster in access.clusters.chosen):
            member = members.get(ha.cluster)
            why = str(members.failed.get(ha.cluster, f"the store has no cluster {ha.cluster}"))
            leading = LeaderStatus(cluster=ha.cluster, error=why)
            if member is not None:
                leading = await who_leads(member, fleet.settings.name)
    findings = [
        _finding(fleet.clusters[name], result, configs[name], access)
        for name, result in sorted(results.items())
        if name not in pulling and (not access.clusters.chosen or name in access.clusters.chosen)
    ]
    return findings, leading


def _unserved(schedule: Schedule, cluster: str, discovery: Discovery) -> tuple[str, ...]:
    """Of each kind that the store could have in a cluster, and does not define, why it cannot be had there."""
    from reconciler.kube.served_kinds import not_served, silent_api

    wanted = {
        schedule.fleet.templates[identity].gvk
        for identity, binding in schedule.bindings.items()
        if identity in schedule.fleet.templates and any(target.cluster == cluster for target in binding.targets)
    }
    lacking = {gvk for gvk in wanted - discovery.kinds.keys() if gvk.group_kind not in schedule.definitions}
    return tuple(
        silent_api(gvk) if gvk.api_version in discovery.stale else not_served(gvk, discovery.kinds)
        for gvk in sorted(lacking)
    )


def _finding(
    cluster: Cluster, result: Finding | ReconcilerError, config: MemberConfig | ConfigurationError, access: Access
) -> Finding:
    """Return the result of a cluster, or its error, with the risks of the way to it."""
    from reconciler.kube.connection.risks import exec_plugin_of, kubeconfig_risks

    finding = result
    if not isinstance(finding, Finding):
        error = getattr(result, "message", str(result))
        finding = Finding(cluster=cluster.name, context=cluster.context_name, error=error)
    remarks = access.profiles.remarks(cluster) if access.profiles is not None else ()
    if isinstance(config, ConfigurationError):
        return replace(finding, risks=(*finding.risks, *remarks))
    return replace(
        finding,
        risks=(*finding.risks, *kubeconfig_risks(config, access.clock.now()), *remarks),
        exec_plugin=exec_plugin_of(config),
        pod_account=config.source if config.is_in_cluster else "",
    )


async def _denied(member: MemberCluster, right: Right) -> tuple[Right, ...]:
    names = right.names or ("",)
    questions = [(verb, name) for verb in right.verbs for name in names]
    answers = await asyncio.gather(
        *(member.allows(verb, right.group, right.resource, name=name) for verb, name in questions)
    )
    refused = [question for question, allowed in zip(questions, answers, strict=True) if not allowed]
    lacking = {name: tuple(verb for verb in right.verbs if (verb, name) in refused) for name in names}
    return tuple(replace(right, names=(name,) if name else (), verbs=verbs) for name, verbs in lacking.items() if verbs)


def _level(wanted: Mapping[Level, tuple[Right, ...]], denied: tuple[Right, ...]) -> str:
    refused = {pair for right in denied for pair in _single(right)}
    enough = [level for level, rights in wanted.items() if refused.isdisjoint(chain(*map(_single, rights)))]
    return str(enough[-1]) if enough else ""


def _single(right: Right) -> Iterator[tuple[str, str, str, str]]:
    for verb in right.verbs:
        yield from ((verb, right.group, right.resource, name) for name in right.names or ("",))


def _part(finding: Finding) -> dict[str, object]:
    return {
        "cluster": finding.cluster,
        "context": finding.context,
        "version": finding.version or None,
        "reachable": not finding.error,
        "error": finding.error or None,
        "uid": finding.uid or None,
        "denied": [str(replace(right, verbs=(verb,))) for right in finding.denied for verb in right.verbs],
        "level": finding.level or None,
        "risks": list(finding.risks),
        "execPlugin": finding.exec_plugin or None,
        "podAccount": finding.pod_account or None,
        **({"unserved": list(finding.unserved)} if finding.unserved else {}),
    }
