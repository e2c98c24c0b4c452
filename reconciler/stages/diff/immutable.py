"""Fields that an API server refuses to change: such a change needs the object to be deleted and created again.

Source: the update validation of each kind in Kubernetes 1.36, and the definition of a GatewayClass; every row is tried
on a real kube-apiserver by tests/apiserver/test_immutable.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from reconciler.model.plan import MISSING, FieldChange
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.ownership import FieldPath, matches, parse_path

IMMUTABLE: Final[dict[tuple[str, str], tuple[str, ...]]] = {
    ("apps", "Deployment"): ("spec.selector",),
    ("apps", "ReplicaSet"): ("spec.selector",),
    ("apps", "DaemonSet"): ("spec.selector",),
    ("apps", "StatefulSet"): (
        "spec.selector", "spec.serviceName", "spec.volumeClaimTemplates", "spec.podManagementPolicy",
    ),
    ("batch", "Job"): (
        "spec.selector", "spec.template", "spec.completionMode", "spec.completions", "spec.backoffLimitPerIndex",
        "spec.podFailurePolicy", "spec.successPolicy", "spec.podReplacementPolicy", "spec.managedBy",
        "spec.manualSelector",
    ),
    ("", "Service"): ("spec.clusterIP", "spec.clusterIPs", "spec.loadBalancerClass"),
    ("", "PersistentVolumeClaim"): (
        "spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeMode", "spec.volumeName",
        "spec.dataSource", "spec.dataSourceRef",
    ),
    ("", "PersistentVolume"): (
        "spec.hostPath", "spec.nfs", "spec.csi", "spec.local", "spec.iscsi", "spec.fc", "spec.cephfs", "spec.rbd",
        "spec.awsElasticBlockStore", "spec.gcePersistentDisk", "spec.azureDisk", "spec.azureFile", "spec.volumeMode",
    ),
    ("storage.k8s.io", "StorageClass"): (
        "provisioner", "parameters", "reclaimPolicy", "volumeBindingMode",
    ),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("scheduling.k8s.io", "PriorityClass"): ("value", "preemptionPolicy"),
    ("networking.k8s.io", "IngressClass"): ("spec.controller",),
    ("gateway.networking.k8s.io", "GatewayClass"): ("spec.controllerName",),
    ("node.k8s.io", "RuntimeClass"): ("handler",),
    ("discovery.k8s.io", "EndpointSlice"): ("addressType",),
    ("", "Secret"): ("type",),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): ("spec.group", "spec.names.plural", "spec.scope"),
}  # fmt: skip
"""Paths by (group, kind): they and everything below them."""

POD_MUTABLE: Final = (
    "spec.containers[*].image",
    "spec.initContainers[*].image",
    "spec.activeDeadlineSeconds",
    "spec.tolerations",
)
"""All that may change in the spec of a Pod (tolerations may only grow)."""


def _parsed(texts: Iterable[str]) -> tuple[FieldPath, ...]:
    return tuple(path for path in map(parse_path, texts) if path is not None)


_PARSED: Final = {kind: _parsed(texts) for kind, texts in IMMUTABLE.items()}
_POD: Final = _parsed(POD_MUTABLE)


def immutable_change(
    kind: tuple[str, str], changes: Iterable[tuple[FieldPath, FieldChange]], live: JsonObject
) -> str | None:
    """The first changed path that cannot be changed in place; None when all can.

    `kind` is (group, kind).
    """
    frozen_data = kind in (("", "ConfigMap"), ("", "Secret")) and live.get("immutable") is True
    for path, change in changes:
        if frozen_data and path[0] in ("data", "binaryData", "immutable"):
            return change.path
        if any(matches(pattern, path) or matches(path, pattern) for pattern in _PARSED.get(kind, ())):
            if not _may_after_all(kind, path, change, live):
                return change.path
        elif kind == ("", "Pod") and path[0] == "spec" and not any(matches(pattern, path) for pattern in _POD):
            return change.path
    return None


def _may_after_all(kind: tuple[str, str], path: FieldPath, change: FieldChange, live: JsonObject) -> bool:
    """The exceptions: what is set for the first time, an indexed Job that scales, a headless name that goes."""
    if kind == ("", "Service"):
        # An ExternalName service has no address yet; taking the field away keeps the address.
        return change.before is MISSING or change.after is MISSING or dig(live, "spec", "type") == "ExternalName"
    if kind == ("", "PersistentVolumeClaim"):
        return change.before is MISSING and path[1:] in (("storageClassName",), ("volumeName",))
    if kind == ("batch", "Job"):
        if path == ("spec", "completions"):
            return bool(dig(live, "spec", "completionMode") == "Indexed")
        is_unstarted = dig(live, "spec", "suspend") is True and not dig(live, "status", "startTime")
        return bool(is_unstarted and path[1] == "template")
    return False
