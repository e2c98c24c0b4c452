"""The role that a store needs in its clusters, ready for `kubectl apply`.

The role has one name at every level, so that applying another level replaces the rights of before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from reconciler.api.content import Json, JsonObject
from reconciler.incremental import by_key
from reconciler.report.render_json import dump_yaml
from reconciler.rights import Level, Right

_RBAC = "rbac.authorization.k8s.io"


class RoleSubject(Struct, frozen=True, kw_only=True):
    """The subject of a role: a ServiceAccount of a namespace, a User or a Group."""

    kind: str
    name: str
    namespace: str = ""


def role_documents(rights: Iterable[Right], subject: RoleSubject, fleet: str) -> tuple[JsonObject, ...]:
    """The ClusterRole and its ClusterRoleBinding; for a ServiceAccount, that and its Namespace come before them."""
    name = f"fleet-reconciler-{fleet}"
    groups = by_key(((right.group, right.names, right.verbs), right.resource) for right in sorted(rights))
    role = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRole",
        "metadata": {"name": name},
        "rules": [_rule(*found) for found in groups.items()],
    }
    group = {} if subject.kind == "ServiceAccount" else {"apiGroup": _RBAC}
    namespace = {"namespace": subject.namespace} if subject.namespace else {}
    binding = {
        "apiVersion": f"{_RBAC}/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": subject.kind, "name": subject.name, **namespace, **group}],
    }
    return (*_account(subject), role, binding)


def role_yaml(documents: Iterable[JsonObject], fleet: str, level: Level) -> str:
    """Return the documents as one YAML file with a comment about its purpose."""
    text = "---\n".join(dump_yaml(document) for document in documents)
    made_by = f"Made by 'reconciler doctor --rbac {level}'."
    return f"# What fleet {fleet} needs in its clusters to {_PURPOSE[level]}. {made_by}\n{text}"


_PURPOSE: Mapping[Level, str] = {
    Level.READ: "be compared and told of, without any write",
    Level.APPLY: "be applied without deletions",
    Level.FULL: "be applied, deletions included",
}


def _account(subject: RoleSubject) -> tuple[JsonObject, ...]:
    if subject.kind != "ServiceAccount":
        return ()
    return (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": subject.namespace}},
        {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": subject.name, "namespace": subject.namespace},
        },
    )


_Group = tuple[str, tuple[str, ...], tuple[str, ...]]


def _rule(group: _Group, resources: list[str]) -> Json:
    api_group, names, verbs = group
    named: dict[str, Json] = {"resourceNames": list(names)} if names else {}
    return {"apiGroups": [api_group], "resources": list(resources), **named, "verbs": list(verbs)}
