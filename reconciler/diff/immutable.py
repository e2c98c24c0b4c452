"""Fields that an API server refuses to change: a person may allow to delete and create the object.

Source: the update validation of each kind in Kubernetes 1.36, and the definition of a GatewayClass, each row tried by
tests/apiserver/test_immutable.py; design#replacement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.content import Json, JsonObject, dig, with_value
from reconciler.api.demand import exact
from reconciler.api.plan import MISSING, Action, Cause, Change, Engine, FieldChange, HeldBy, Hold
from reconciler.diff.canonical import node_at
from reconciler.documents import Schema
from reconciler.errors import RefusedField
from reconciler.ownership import DirectiveEffect, FieldPath, has_effect, matches, parse_path

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
    ("", "Service"): ("spec.clusterIP", "spec.clusterIPs", "spec.loadBalancerClass", "spec.healthCheckNodePort"),
    ("", "PersistentVolumeClaim"): (
        "spec.accessModes", "spec.selector", "spec.storageClassName", "spec.volumeMode", "spec.volumeName",
        "spec.dataSource", "spec.dataSourceRef", "spec.resources",
    ),
    ("", "PersistentVolume"): (
        "spec.hostPath", "spec.nfs", "spec.csi", "spec.local", "spec.iscsi", "spec.fc", "spec.cephfs", "spec.rbd",
        "spec.awsElasticBlockStore", "spec.gcePersistentDisk", "spec.azureDisk", "spec.azureFile", "spec.volumeMode",
        "spec.nodeAffinity",
    ),
    ("", "ResourceQuota"): ("spec.scopes",),
    ("storage.k8s.io", "StorageClass"): ("provisioner", "parameters", "reclaimPolicy", "volumeBindingMode"),
    ("storage.k8s.io", "VolumeAttributesClass"): ("driverName", "parameters"),
    ("storage.k8s.io", "CSIDriver"): ("spec.attachRequired", "spec.volumeLifecycleModes"),
    ("certificates.k8s.io", "CertificateSigningRequest"): ("spec",),
    ("resource.k8s.io", "ResourceClaim"): ("spec",),
    ("resource.k8s.io", "ResourceClaimTemplate"): ("spec",),
    ("networking.k8s.io", "ServiceCIDR"): ("spec.cidrs",),
    ("rbac.authorization.k8s.io", "RoleBinding"): ("roleRef",),
    ("rbac.authorization.k8s.io", "ClusterRoleBinding"): ("roleRef",),
    ("scheduling.k8s.io", "PriorityClass"): ("value", "preemptionPolicy"),
    ("networking.k8s.io", "IngressClass"): ("spec.controller",),
    ("gateway.networking.k8s.io", "GatewayClass"): ("spec.controllerName",),
    ("node.k8s.io", "RuntimeClass"): ("handler",),
    ("discovery.k8s.io", "EndpointSlice"): ("addressType",),
    ("", "Secret"): ("type",),
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        "spec.group", "spec.names.plural", "spec.names.kind", "spec.scope",
    ),
}  # fmt: skip
"""Paths by (group, kind): they and everything below them."""

POD_MUTABLE: Final = (
    "spec.containers[*].image", "spec.initContainers[*].image", "spec.activeDeadlineSeconds", "spec.tolerations",
)  # fmt: skip
"""All that may change in the spec of a Pod (tolerations may only grow)."""

_OF_A_SUSPENDED_JOB: Final = (
    "spec.template.metadata.annotations", "spec.template.metadata.labels", "spec.template.spec.affinity",
    "spec.template.spec.containers[*].resources", "spec.template.spec.initContainers[*].resources",
    "spec.template.spec.nodeSelector", "spec.template.spec.schedulingGates", "spec.template.spec.tolerations",
)  # fmt: skip
"""All that may change in the pod template of a Job that is suspended and has not begun."""

_DEFAULTS: Final[Mapping[str, Json]] = {
    "spec.podManagementPolicy": "OrderedReady",
    "spec.completionMode": "NonIndexed",
    "spec.volumeMode": "Filesystem",
    "spec.hostPath.type": "",
    "spec.attachRequired": True,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "Immediate",
    "preemptionPolicy": "PreemptLowerPriority",
    "type": "Opaque",
}
"""The API server's defaults of such fields: removing a field with its default changes nothing."""

_IMMUTABLE_WORDS: Final = (
    "immutable", "may not be changed", "may not change", "cannot be changed", "cannot change", "can not be changed",
    "cannot be modified", "cannot be updated", "may not be updated", "updates to",
)  # fmt: skip
"""Words of API servers and webhooks for an immutable field; the author of a kind's rule chooses others."""


def refused_in_place(refused: Iterable[RefusedField], schema: Schema | None) -> str | None:
    """Return the immutable field in a refusal, by its words or a rule on old and new value; None: other reason."""
    for field in refused:
        node = node_at(schema.root, parse_path(field.field) or ()) if schema is not None else None
        if any(words in field.message for words in _IMMUTABLE_WORDS) or (node and node.has_transition_rule):
            return field.field or "the object"
    return None


def _parsed(texts: Iterable[str]) -> tuple[FieldPath, ...]:
    return tuple(path for path in map(parse_path, texts) if path is not None)


_PARSED: Final = {kind: _parsed(texts) for kind, texts in IMMUTABLE.items()}
_POD: Final = _parsed(POD_MUTABLE)
_SUSPENDED: Final = _parsed(_OF_A_SUSPENDED_JOB)


def immutable_change(
    kind: tuple[str, str], changes: Iterable[tuple[FieldPath, FieldChange]], live: JsonObject
) -> str | None:
    """Return the first changed path that cannot be changed in place; None when all can. `kind` is (group, kind)."""
    frozen_data = kind in (("", "ConfigMap"), ("", "Secret")) and live.get("immutable") is True
    for path, change in changes:
        if frozen_data and path[0] in ("data", "binaryData", "immutable"):
            return change.path
        if change.after is MISSING and change.path in _DEFAULTS and change.before == _DEFAULTS[change.path]:
            continue
        if any(matches(pattern, path) or matches(path, pattern) for pattern in _PARSED.get(kind, ())):
            if not _may_after_all(kind, path, change, live):
                return change.path
        elif kind == ("", "Pod") and path[0] == "spec":
            before, after = change.before, change.after
            if path == ("spec", "tolerations") and isinstance(before, list):
                may = isinstance(after, list) and all(one in after for one in before)
            else:
                may = any(matches(pattern, path) for pattern in _POD)
            if not may:
                return change.path
    return None


def _may_after_all(kind: tuple[str, str], path: FieldPath, change: FieldChange, live: JsonObject) -> bool:
    """Return whether an exception allows it: a first value, an indexed Job that scales, a removed headless name."""
    match kind:
        case ("", "Service"):
            # An ExternalName service has no address yet; taking the field away keeps the address.
            is_kept = change.after is MISSING and path[:2] != ("spec", "loadBalancerClass")
            return change.before is MISSING or is_kept or dig(live, "spec", "type") == "ExternalName"
        case ("", "PersistentVolumeClaim"):
            if path[:3] == ("spec", "resources", "requests"):
                # Kubernetes, expanding claims, recovering from failure: up once it is bound, down above its capacity.
                was, wants = exact(change.before), exact(change.after)
                if dig(live, "status", "phase") != "Bound" or was is None or wants is None:
                    return False
                has = exact(dig(live, "status", "capacity", "storage"))
                return wants >= was or (has is not None and wants > has)
            return change.before is MISSING and path[1:] in (("storageClassName",), ("volumeName",))
        case ("", "PersistentVolume"):
            return change.before is MISSING and path == ("spec", "nodeAffinity")
        case ("networking.k8s.io", "ServiceCIDR"):
            before, after = change.before, change.after
            return isinstance(before, list) and isinstance(after, list) and after[: len(before)] == before
        case ("batch", "Job"):
            if path == ("spec", "completions"):
                return change.after is not MISSING and dig(live, "spec", "completionMode") == "Indexed"
            is_unstarted = dig(live, "spec", "suspend") is True and not dig(live, "status", "startTime")
            return bool(is_unstarted and any(matches(pattern, path) for pattern in _SUSPENDED))
        case _:
            return False


ALLOW_REPLACE: Final = "fleet.reconciler/replace"
"""Template annotation, value `allowed`: an immutable field may be changed by deleting and creating the object."""

_NEVER_REPLACED: Final = ("Namespace", "CustomResourceDefinition", "PersistentVolume", "PersistentVolumeClaim")


def why_not_replaced(kind: str, body: JsonObject, at: str) -> Hold | None:
    """Return why an object is not replaced for the change of the field `at`; None: its template allows it."""
    if kind in _NEVER_REPLACED:
        return Hold(HeldBy.REPLACEMENT, f"{at} cannot be changed and a {kind} is never replaced")
    metadata: JsonObject = dig(body, "metadata") or {}
    if dig(metadata, "annotations", ALLOW_REPLACE) == "allowed" or has_effect(metadata, DirectiveEffect.REPLACE):
        return None
    return Hold(
        HeldBy.REPLACEMENT,
        f"{at} cannot be changed in place; to delete and create it, annotate the template with "
        f"{ALLOW_REPLACE}: allowed",
    )


def as_replacement(change: Change, at: str, path: tuple[str, ...]) -> Change:
    """Return an update that an API server refuses as a replacement. `path`: of the kind's replicas."""
    assert change.manifest is not None, "an update has a manifest"
    body, chosen = change.manifest, dig(change.before, *path)
    if path and dig(body, *path) is None and chosen is not None:
        body = with_value(body, path, chosen)  # Others decide about them: they stay as they are.
    return replace(
        change,
        action=Action.REPLACE,
        cause=Cause.DECLARED,
        hold=why_not_replaced(change.identity.kind, change.manifest, at),
        manifest=body,
        engine=Engine.SERVER_SIDE,
        steady_path=(),
        removed_paths=(),
        in_the_way=(),
    )
