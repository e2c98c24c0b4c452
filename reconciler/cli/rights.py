"""The rights that a store needs in its clusters: as a role to apply, and to check credentials against."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from reconciler.api.clusters import Observations
from reconciler.api.content import Json, JsonObject
from reconciler.api.fleet import Fleet
from reconciler.controller.once.planning import Access, open_members
from reconciler.controller.round.owner_record import holder_name
from reconciler.errors import ConfigurationError
from reconciler.fleet import why_nameless
from reconciler.incremental import by_key
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.discovery import Discovery
from reconciler.report.json_parts import json_text
from reconciler.report.render_json import dump_yaml
from reconciler.rights import PAGE_RIGHTS, Level, Right, merged, needed_rights, resource_names
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
    schedule, recorded, wanted = decided(fleet, access), recorded_kinds(access), Level(level)
    known = resource_names(fleet)
    rights, unknown = needed(schedule, wanted, recorded, known)
    if unknown:
        known |= await _served(fleet, access)
        rights, unknown = needed(schedule, wanted, recorded, known)
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


def needed(
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


def decided(fleet: Fleet, access: Access) -> Schedule:
    """Return the schedule of the store without observations of clusters."""
    return schedule_fleet(fleet, Observations(), access.clock.now(), interpreters=access.interpreters)


def recorded_kinds(access: Access) -> frozenset[GroupKind]:
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
