"""Fields that take one of a few words. Source: Kubernetes validation; its OpenAPI document has none of them."""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from reconciler.api.content import Json, JsonObject, Step
from reconciler.documents import Findings

_Values = Mapping[str, tuple[str, ...]]
"""By path the words that are allowed; `[]`: each item of a list."""

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_PULL: Final = ("Always", "IfNotPresent", "Never")
_POD: Final[_Values] = {
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "tolerations.[].operator": ("Exists", "Equal", "Lt", "Gt"),
    "tolerations.[].effect": ("NoSchedule", "PreferNoSchedule", "NoExecute"),
    "topologySpreadConstraints.[].whenUnsatisfiable": ("DoNotSchedule", "ScheduleAnyway"),
    **{
        f"{containers}.[].{name}": words
        for containers in ("containers", "initContainers")
        for name, words in {
            "imagePullPolicy": _PULL,
            "ports.[].protocol": _PROTOCOLS,
            "terminationMessagePolicy": ("File", "FallbackToLogsOnError"),
        }.items()
    },
}
_UPDATES: Final = ("RollingUpdate", "OnDelete")
_ACCESS: Final = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")
_SUBJECTS: Final = ("ServiceAccount", "User", "Group")
_OPERATORS: Final[_Values] = {"spec.selector.matchExpressions.[].operator": ("In", "NotIn", "Exists", "DoesNotExist")}


def _pods(path: str, *restarts: str) -> _Values:
    """Return the values of a pod's spec at a path. `restarts`: what `restartPolicy` may be there."""
    return {f"{path}.{name}": words for name, words in {**_POD, "restartPolicy": restarts}.items()}


_TEMPLATE: Final = "spec.template.spec"
_BY_KIND: Final[Mapping[tuple[str, str], _Values]] = {
    ("", "Pod"): _pods("spec", "Always", "OnFailure", "Never"),
    ("", "ReplicationController"): _pods(_TEMPLATE, "Always"),
    ("apps", "ReplicaSet"): _pods(_TEMPLATE, "Always"),
    ("apps", "Deployment"): {**_pods(_TEMPLATE, "Always"), "spec.strategy.type": ("RollingUpdate", "Recreate")},
    ("apps", "DaemonSet"): {**_pods(_TEMPLATE, "Always"), "spec.updateStrategy.type": _UPDATES},
    ("apps", "StatefulSet"): {
        **_pods(_TEMPLATE, "Always"),
        "spec.updateStrategy.type": _UPDATES,
        "spec.podManagementPolicy": ("OrderedReady", "Parallel"),
        "spec.volumeClaimTemplates.[].spec.accessModes.[]": _ACCESS,
    },
    ("batch", "Job"): _pods(_TEMPLATE, "OnFailure", "Never"),
    ("batch", "CronJob"): {
        **_pods("spec.jobTemplate.spec.template.spec", "OnFailure", "Never"),
        "spec.concurrencyPolicy": ("Allow", "Forbid", "Replace"),
    },
    ("", "Service"): {
        "spec.type": ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"),
        "spec.ports.[].protocol": _PROTOCOLS,
        "spec.sessionAffinity": ("None", "ClientIP"),
        "spec.externalTrafficPolicy": ("Cluster", "Local"),
        "spec.internalTrafficPolicy": ("Cluster", "Local"),
    },
    ("", "PersistentVolumeClaim"): {
        "spec.accessModes.[]": _ACCESS,
        "spec.volumeMode": ("Filesystem", "Block"),
    },
    ("networking.k8s.io", "Ingress"): {
        "spec.rules.[].http.paths.[].pathType": ("Exact", "Prefix", "ImplementationSpecific")
    },
    ("networking.k8s.io", "NetworkPolicy"): {
        "spec.policyTypes.[]": ("Ingress", "Egress"),
        "spec.ingress.[].ports.[].protocol": _PROTOCOLS,
        "spec.egress.[].ports.[].protocol": _PROTOCOLS,
    },
    ("", "PersistentVolume"): {
        "spec.accessModes.[]": _ACCESS,
        "spec.persistentVolumeReclaimPolicy": ("Retain", "Delete", "Recycle"),
    },
    ("policy", "PodDisruptionBudget"): {
        "spec.unhealthyPodEvictionPolicy": ("IfHealthyBudget", "AlwaysAllow"),
        **_OPERATORS,
    },
    ("rbac.authorization.k8s.io", "RoleBinding"): {
        "subjects.[].kind": _SUBJECTS,
        "roleRef.kind": ("Role", "ClusterRole"),
    },
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): {
        "subjects.[].kind": _SUBJECTS,
        "roleRef.kind": ("ClusterRole",),
    },
    ("storage.k8s.io", "StorageClass"): {
        "reclaimPolicy": ("Delete", "Retain"),
        "volumeBindingMode": ("Immediate", "WaitForFirstConsumer"),
    },
}


def _tree(values: _Values) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for path, words in values.items():
        *above, name = path.split(".")
        below = tree
        for step in above:
            below = below.setdefault(step, {})
        below[name] = words
    return tree


_TREES: Final = {kind: _tree(values) for kind, values in _BY_KIND.items()}
KINDS_WITH_VALUES: Final = frozenset(_BY_KIND)
"""(group, kind) of objects that have such fields."""


def check_field_values(body: JsonObject, group_kind: tuple[str, str], findings: Findings) -> None:
    """Report words that an API server refuses, with those that it takes."""
    tree = _TREES.get(group_kind)
    if tree is None or _fits(body, tree):
        return
    for at, value, words in _misfits(body, tree, ()):
        by_lower = {one.lower(): one for one in words}
        close = difflib.get_close_matches(value.lower(), by_lower, n=1)
        tip = f"did you mean {by_lower[close[0]]}?" if close else f"write {' or '.join(words)}"
        findings.error("unknown-value", f"{value[:80]!r} is none of {', '.join(words)}; {tip}", *at)


def _fits(value: Json, tree: Any) -> bool:
    """Return whether all words are allowed, without their paths: this runs on every workload of a store."""
    if tree.__class__ is tuple:
        return value.__class__ is not str or not value or value in tree
    if value.__class__ is dict:
        for name, below in tree.items():
            if (found := value.get(name)) is not None and not _fits(found, below):
                return False
    elif value.__class__ is list and (below := tree.get("[]")) is not None:
        return all(_fits(item, below) for item in value)
    return True


def _misfits(value: Json, tree: Any, at: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], str, tuple[str, ...]]]:
    """Yield the words that are not allowed: steps, word, and what is. Other types are reported by the schema."""
    if isinstance(value, str) and not _fits(value, tree):
        yield at, value, tree
    elif isinstance(value, dict) and isinstance(tree, dict):
        for name in tree.keys() & value.keys():
            yield from _misfits(value[name], tree[name], (*at, name))
    elif isinstance(value, list) and isinstance(tree, dict) and "[]" in tree:
        for index, item in enumerate(value):
            yield from _misfits(item, tree["[]"], (*at, index))
