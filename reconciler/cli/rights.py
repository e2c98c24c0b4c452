"""The rights that a store needs in its clusters: as a role to apply, and to check our access to each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import chain
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import Cluster, Observations
from reconciler.api.content import Json, JsonObject
from reconciler.api.fleet import Fleet
from reconciler.containment import try_await
from reconciler.controller import timing
from reconciler.controller.once.planning import Access, configs_of, open_members
from reconciler.controller.round.owner_record import holder_name
from reconciler.controller.service.elector import LeaderStatus, lease_and_handover
from reconciler.errors import ConfigurationError, ReconcilerError
from reconciler.fleet import why_nameless
from reconciler.incremental import by_key
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.client import MemberCluster
from reconciler.kube.connection.kubeconfig import MemberConfig
from reconciler.kube.connection.risks import exec_plugin_of, kubeconfig_risks
from reconciler.kube.connection.session import proxy_of
from reconciler.kube.discovery import Discovery
from reconciler.kube.served_kinds import not_served, silent_api
from reconciler.report.json_parts import json_text
from reconciler.report.render_json import dump_yaml
from reconciler.rights import EXPLAINING, PAGE_RIGHTS, Level, Right, merged, needed_rights, resource_names
from reconciler.scheduler import Schedule, schedule_fleet

_SUBJECTS = "ServiceAccount:NAMESPACE/NAME, User:NAME or Group:NAME"
_RBAC = "rbac.authorization.k8s.io"
_PURPOSE = {
    "read": "be compared and told of, without any write",
    "apply": "be applied without deletions",
    "full": "be applied, deletions included",
}

GroupKind = tuple[str, str]


async def role(fleet: Fleet, access: Access, level: str, subject: str, output: str, page: str | None = None) -> str:
    """Return the role for `kubectl apply`. Raises ConfigurationError: no fleet's name, subject or kind's name."""
    if not fleet.settings.name:
        raise ConfigurationError(why_nameless(fleet))
    named = parse_subject(subject)
    schedule, recorded, wanted = _schedule(fleet, access), _recorded_kinds(access), Level(level)
    known = resource_names(fleet)
    rights, unknown = _needed(schedule, wanted, recorded, known)
    if unknown:
        known |= await _served(fleet, access)
        rights, unknown = _needed(schedule, wanted, recorded, known)
    if unknown:
        kinds = ", ".join(f"{kind} ({group})" for group, kind in unknown)
        raise ConfigurationError(
            f"how a role names {kinds} is not known: add the CustomResourceDefinition to the store, or give access "
            "to a cluster that serves it"
        )
    rights = merged((*rights, *PAGE_RIGHTS.get(page or "", ())))
    documents = role_documents(rights, named, fleet.settings.name)
    if output == "json":
        return json_text({"apiVersion": "v1", "kind": "List", "items": list(documents)})
    return role_yaml(documents, fleet.settings.name, wanted)


def _needed(
    schedule: Schedule,
    level: Level,
    recorded: Collection[GroupKind],
    resources: Mapping[GroupKind, str],
    cluster: str | None = None,
) -> tuple[tuple[Right, ...], tuple[GroupKind, ...]]:
    """Return the rights needed (`cluster` None: in any), and the kinds whose resource name is unknown."""
    settings = schedule.fleet.settings
    is_leased = settings.ha is not None and cluster in (None, settings.ha.cluster)
    rights_needed = needed_rights(schedule, level, recorded, resources, holder_name(settings.name), is_leased=is_leased)
    return rights_needed.rights, rights_needed.unknown


def _schedule(fleet: Fleet, access: Access) -> Schedule:
    """Return the schedule of the store without observations of clusters."""
    return schedule_fleet(fleet, Observations(), access.clock.now(), interpreters=access.interpreters)


def _recorded_kinds(access: Access) -> frozenset[GroupKind]:
    """Return the kinds whose recorded copies may have to be deleted in the chosen clusters."""
    if access.journal is None or not access.journal.exists():
        return frozenset()
    with Journal.open(access.journal, read_only=True) as journal:
        rows = [row for name, each in journal.ledger().items() for row in each.values() if _is_chosen(name, access)]
    # A Namespace that only follows its objects is released, never deleted.
    return frozenset(row.gvk.group_kind for row in rows if row.policy or row.gvk.group_kind != ("", "Namespace"))


def _is_chosen(cluster: str, access: Access) -> bool:
    return not access.clusters.chosen or cluster in access.clusters.chosen


async def _served(fleet: Fleet, access: Access) -> dict[GroupKind, str]:
    """Return the plurals of all kinds that the chosen clusters serve; unreachable ones add nothing."""
    async with open_members(fleet, access) as members:
        answers = await members.each(lambda member: member.discover())
    served = [
        answer for name, answer in sorted(answers.items()) if isinstance(answer, Discovery) and _is_chosen(name, access)
    ]
    return {gvk.group_kind: kind.plural for discovery in served for gvk, kind in discovery.kinds.items()}


def role_documents(rights: Iterable[Right], subject: JsonObject, fleet: str) -> tuple[JsonObject, ...]:
    """Return role and binding; of a ServiceAccount, Namespace and account first. One name serves all levels."""
    name = f"fleet-reconciler-{fleet}"
    groups = by_key(((right.group, right.names, right.verbs), right.resource) for right in sorted(rights))
    rules = [
        {
            "apiGroups": [group],
            "resources": list(resources),
            **({"resourceNames": list(names)} if names else {}),
            "verbs": list(verbs),
        }
        for (group, names, verbs), resources in groups.items()
    ]
    role = {"apiVersion": f"{_RBAC}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules}
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [subject],
    }
    if subject["kind"] != "ServiceAccount":
        return role, binding
    account = {"name": subject["name"], "namespace": subject["namespace"]}
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": subject["namespace"]}},
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        role,
        binding,
    )


def role_yaml(documents: Iterable[JsonObject], fleet: str, level: Level) -> str:
    """Return the documents as one YAML file with a comment about its purpose."""
    text = "---\n".join(dump_yaml(document) for document in documents)
    made_by = f"Made by 'reconciler doctor --rbac {level}'."
    return f"# What fleet {fleet} needs in its clusters to {_PURPOSE[level]}. {made_by}\n{text}"


def parse_subject(text: str) -> dict[str, Json]:
    """Return the subject of a role from a person's text, as a binding has it. Raises ConfigurationError."""
    kind, _, name = text.partition(":")
    namespace, _, account = name.rpartition("/")
    if kind == "ServiceAccount" and namespace and account and "/" not in namespace:
        return {"kind": kind, "name": account, "namespace": namespace}
    if kind in ("User", "Group") and name:
        return {"kind": kind, "name": name, "apiGroup": _RBAC}
    raise ConfigurationError(f"--subject {text}: it must be {_SUBJECTS}")


_NO_EVENTS = (
    "not allowed: list events, so the reason why pods of StatefulSets, DaemonSets and Jobs are not made is not known; "
    "'reconciler doctor --rbac full' prints the role",
)
_SLOW = "it answers, after more than the {:g} s that `run`, `diff` and `apply` wait for: nothing is changed there"


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


async def examine(fleet: Fleet, access: Access) -> tuple[list[Finding], LeaderStatus | None]:
    """Return the result of each cluster, and who leads; None: no Lease decides, or its cluster was not chosen."""
    schedule, recorded, known = _schedule(fleet, access), _recorded_kinds(access), resource_names(fleet)

    async def one(member: MemberCluster) -> Finding:
        began_s = access.clock.monotonic_s()
        uid = await member.identity()
        is_slow = access.clock.monotonic_s() - began_s > timing.PROMPT_S
        version, discovery = await asyncio.gather(member.version(), member.discover())
        names = known | {gvk.group_kind: kind.plural for gvk, kind in discovery.kinds.items()}
        served = {(gvk.group, kind.plural) for gvk, kind in discovery.kinds.items()}
        wanted = {level: _needed(schedule, level, recorded, names, member.name)[0] for level in Level}
        rights = [right for right in wanted[Level.FULL] if (right.group, right.resource) in served]
        answers, fault = await try_await(asyncio.gather(*(_denied(member, right) for right in rights)))
        refused = tuple(chain.from_iterable(answers or ()))
        denied = tuple(right for right in refused if right != EXPLAINING)
        return Finding(
            cluster=member.name, context=fleet.clusters[member.name].context_name, version=version, uid=uid,
            error=f"it answers reads but no questions about rights: {getattr(fault, 'message', '')}" if fault
            else is_slow * _SLOW.format(timing.PROMPT_S),
            denied=denied, level="" if fault else _level(wanted, denied),
            unserved=_unserved(schedule, member.name, discovery), risks=_NO_EVENTS if denied != refused else (),
        )  # fmt: skip

    ha, leading = fleet.settings.ha, None
    async with open_members(fleet, access) as members:
        configs = configs_of(fleet, access)
        results = await members.each(one)
        if ha is not None and _is_chosen(ha.cluster, access):
            member = members.get(ha.cluster)
            why = str(members.failed.get(ha.cluster, f"the store has no cluster {ha.cluster}"))
            leading = LeaderStatus(cluster=ha.cluster, error=why)
            if member is not None:
                leading = await lease_and_handover(member, fleet.settings.name)
    findings = [
        _finding(fleet.clusters[name], results[name], configs[name], access)
        for name in sorted(access.clusters.own(fleet))
    ]
    return findings, leading


def _unserved(schedule: Schedule, cluster: str, discovery: Discovery) -> tuple[str, ...]:
    """Of each kind that the store could have in a cluster, and does not define, why it cannot be had there."""
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
    finding = result
    if not isinstance(finding, Finding):
        proxy = "" if isinstance(config, ConfigurationError) else urlsplit(proxy_of(config)).netloc.rpartition("@")[2]
        error = getattr(result, "message", str(result)) + (f" (through the proxy {proxy})" if proxy else "")
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
    return ((verb, right.group, right.resource, name) for verb in right.verbs for name in right.names or ("",))
