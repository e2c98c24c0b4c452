"""`Cluster`, `ManagedCluster` and `ClusterProfile`: the members of a fleet. Credentials never live in the store.

A live ClusterProfile of an inventory is read as far as a document of the store may have it; all of it is untrusted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import Cluster, Taint
from reconciler.api.content import JsonObject, dig
from reconciler.api.problem import Document, Problem, Severity
from reconciler.documents import (
    Field,
    Fields,
    any_field,
    document_fields,
    document_shape,
    exactly,
    is_dns_label,
    is_dns_subdomain,
    is_label_key,
    is_label_value,
    object_field,
    objects_field,
    read_name,
    read_namespace,
    refuse_namespace,
    text_field,
    texts_field,
)

ALIAS_ANNOTATION = "fleet.reconciler/alias"
"""A name for people, shown as CLUSTER_ALIAS."""
CONTEXT_ANNOTATION = "fleet.reconciler/context"
"""The kubeconfig context that reaches the cluster, when it does not have the cluster's name."""

MANAGER_LABEL: Final = "x-k8s.io/cluster-manager"
"""Of a ClusterProfile: the name of the cluster manager that published it."""
REGION_LABEL: Final = "topology.kubernetes.io/region"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"

CLUSTER_APIS: Final[Mapping[str, str]] = {
    "cluster.karmada.io/v1alpha1": "Cluster",
    "cluster.open-cluster-management.io/v1": "ManagedCluster",
    "multicluster.x-k8s.io/v1alpha1": "ClusterProfile",
    "multicluster.x-k8s.io/v1alpha2": "ClusterProfile",
}
"""API version to the kind that declares a member there."""

_BY_KUBECONFIG = "how a member is reached is said by the kubeconfig alone"
_EFFECTS_OF_MANAGED = {"NoSelect": "NoExecute", "NoSelectIfNew": "NoSchedule", "PreferNoSelect": "PreferNoSchedule"}


def _inert(name: str, why: str) -> Field:
    return any_field(name, "Part of the upstream kind.", no_effect=why, severity=Severity.HINT)


def _taints_field(*effects: str) -> Field:
    return objects_field(
        "taints",
        "Taints: what does not tolerate them is not placed here.",
        text_field("key", "The taint key.", required=True),
        text_field("value", "The taint value."),
        _inert("timeAdded", "a taint counts from the commit that brings it"),
        text_field("effect", "What the taint does.", required=True, values=exactly(*effects)),
    )


CLUSTER_SHAPE = document_shape(
    object_field(
        "spec",
        "What is known of the member.",
        text_field("provider", "The cloud provider."),
        text_field("region", "The region."),
        text_field("zone", "The older form of zones."),
        texts_field("zones", "The zones."),
        _taints_field("NoSchedule", "PreferNoSchedule", "NoExecute"),
        _inert("id", "a member is recognised by the uid of its kube-system namespace"),
        text_field(
            "syncMode",
            "Who applies there: Push, the service of the fleet; Pull, `run --cluster` of its own.",
            values=exactly("Push", "Pull"),
            default="Push",
        ),
        *(_inert(name, _BY_KUBECONFIG) for name in ("apiEndpoint", "secretRef", "impersonatorSecretRef")),
        *(_inert(name, _BY_KUBECONFIG) for name in ("insecureSkipTLSVerification", "proxyURL", "proxyHeader")),
        _inert("resourceModels", "free capacity is computed from the nodes themselves"),
    )
)

MANAGED_CLUSTER_SHAPE = document_shape(
    object_field(
        "spec",
        "What is known of the member.",
        _taints_field(*_EFFECTS_OF_MANAGED),
        _inert("hubAcceptsClient", "every member with a document and a kubeconfig takes part"),
        _inert("leaseDurationSeconds", "members do not report to a hub"),
        _inert("managedClusterClientConfigs", _BY_KUBECONFIG),
    )
)

CLUSTER_PROFILE_SHAPE = document_shape(
    object_field(
        "spec",
        "What is known of the member.",
        text_field("displayName", "A name for people, shown as CLUSTER_ALIAS."),
        object_field(
            "clusterManager",
            "Who published the profile.",
            text_field(
                "name",
                f"The cluster manager: the label {MANAGER_LABEL}, where metadata.labels has none.",
                required=True,
            ),
        ),
    )
)

_SHAPES: Final = {"ManagedCluster": MANAGED_CLUSTER_SHAPE, "ClusterProfile": CLUSTER_PROFILE_SHAPE}


def parse_cluster(document: Document) -> tuple[Cluster | None, tuple[Problem, ...]]:
    """The member that a document declares and every problem of it; None when one is an error.

    Source: design#members; design#credentials; Karmada: `cluster.karmada.io/v1alpha1`; Open Cluster Management:
    `ManagedCluster`; KEP-4322: `ClusterProfile`.
    """
    written = document.body.get("kind")
    fields = document_fields(document, _SHAPES.get(written if isinstance(written, str) else "", CLUSTER_SHAPE))
    api_version, kind = fields.text("apiVersion"), fields.text("kind")
    if api_version and CLUSTER_APIS.get(api_version) != kind:
        known = ", ".join(version for version, of in CLUSTER_APIS.items() if of == kind) or ", ".join(CLUSTER_APIS)
        fields.report.error("api-version-unknown", f"{api_version} is not known; write one of: {known}", "apiVersion")
    metadata, spec = fields.child("metadata"), fields.child("spec")
    return fields.result(_cluster(fields, metadata, spec, kind) if metadata else None)


_LABEL: Final = "at most 63 letters, digits, dashes, dots and underscores, beginning and ending alphanumerically"


def _cluster(document: Fields, metadata: Fields, spec: Fields | None, kind: str) -> Cluster:
    for key, value in metadata.text_map("labels").items():
        if not is_label_key(key) or not is_label_value(value):
            metadata.error("label-illegal", f"{key}: {value} cannot be a label: {_LABEL}", "labels", key)
    annotations = metadata.text_map("annotations")
    read = Cluster(
        name=read_name(metadata),
        alias=annotations.get(ALIAS_ANNOTATION, ""),
        labels=dict(sorted(metadata.text_map("labels").items())),
        context=annotations.get(CONTEXT_ANNOTATION, ""),
        source=document.source(),
    )
    if kind == "ClusterProfile":
        return _of_profile(read, metadata, spec)
    refuse_namespace(metadata, "a cluster")
    if spec is None:
        return read
    taints = _taints(spec)
    if kind == "ManagedCluster":
        return replace(read, taints=taints)
    zones = {zone for zone in (*spec.texts("zones"), spec.text("zone")) if zone}
    return replace(
        read,
        taints=taints,
        provider=spec.text("provider"),
        region=spec.text("region"),
        zones=tuple(sorted(zones)),
        pulls=spec.text("syncMode") == "Pull",
    )


def _of_profile(read: Cluster, metadata: Fields, spec: Fields | None) -> Cluster:
    """Return the cluster with the fields of a ClusterProfile. Its region and zone are labels, its status is not read.

    Source: KEP-4322: `displayName` is for people, `x-k8s.io/cluster-manager` has the value of `clusterManager.name`;
    KEP-2149 and "Well-Known Labels" name region and zone.
    """
    labels = dict(read.labels)
    manager = spec.child("clusterManager") if spec else None
    name = manager.text("name") if manager else ""
    if manager and name and not is_label_value(name):
        message = f"{name!r} cannot name a cluster manager: it must be the value of a label"
        manager.error("label-illegal", message, "name")
    if name:
        labels.setdefault(MANAGER_LABEL, name)
    zone = labels.get(ZONE_LABEL, "")
    return replace(
        read,
        namespace=read_namespace(metadata),
        alias=read.alias or (spec.text("displayName") if spec else ""),
        labels=dict(sorted(labels.items())),
        region=labels.get(REGION_LABEL, ""),
        zones=(zone,) if zone else (),
    )


def _taints(spec: Fields) -> tuple[Taint, ...]:
    """Taints; those of a ManagedCluster are translated: NoSelect takes away, NoSelectIfNew only keeps new away."""
    taints: list[Taint] = []
    known: set[tuple[str, str]] = set()
    for fields in spec.children("taints"):
        key, value, effect = fields.text("key"), fields.text("value"), fields.text("effect")
        fields.check("key", is_label_key, "label-key-illegal", "{} cannot be the key of a taint")
        taint = Taint(key=key, value=value, effect=_EFFECTS_OF_MANAGED.get(effect, effect))
        if (key, taint.effect) in known:
            fields.error("taint-repeated", f"there is already a taint {key} with effect {effect}; keep one")
        known.add((key, taint.effect))
        taints.append(taint)
    return tuple(taints)


DEFAULT_PROPERTIES: Final[Mapping[str, str]] = {REGION_LABEL: REGION_LABEL, ZONE_LABEL: ZONE_LABEL}
"""Properties of a profile to the labels that they become."""

NAME_MAX_CHARS: Final = 240
"""A file is named after it, and file systems take 255 bytes."""
DISPLAY_NAME_MAX_CHARS: Final = 256


class Profile(Struct, frozen=True, kw_only=True):
    """One cluster of the inventory."""

    name: str
    namespace: str
    display_name: str = ""
    manager: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    """With the properties that become labels."""
    dropped: tuple[str, ...] = ()
    """The parts that were left out of it, in words."""


def read_profile(body: JsonObject, properties: Mapping[str, str]) -> Profile | str:
    """The profile, or why it cannot be a document. `properties`: names of properties to the labels that they become."""
    name, namespace = dig(body, "metadata", "name"), dig(body, "metadata", "namespace")
    if not isinstance(name, str) or not is_dns_subdomain(name) or len(name) > NAME_MAX_CHARS:
        return f"its name cannot be that of a cluster: small letters, digits, dashes and dots, at most {NAME_MAX_CHARS}"
    if not isinstance(namespace, str) or not is_dns_label(namespace):
        return "its namespace is not legal"
    dropped: list[str] = []
    labels = _labels(dig(body, "metadata", "labels"), dropped)
    for key, value in _properties(dig(body, "status", "properties"), properties, dropped).items():
        labels.setdefault(key, value)
    display, manager = dig(body, "spec", "displayName"), dig(body, "spec", "clusterManager", "name")
    if not (isinstance(display, str) and len(display) <= DISPLAY_NAME_MAX_CHARS and display.isprintable()):
        if display is not None:
            dropped.append(f"its displayName is no text of one line with at most {DISPLAY_NAME_MAX_CHARS} characters")
        display = ""
    if not (isinstance(manager, str) and manager and is_label_value(manager)):
        if manager is not None:
            dropped.append("its clusterManager cannot be the value of a label")
        manager = ""
    return Profile(
        name=name,
        namespace=namespace,
        display_name=display,
        manager=manager,
        labels=dict(sorted(labels.items())),
        dropped=tuple(dropped),
    )


def _labels(value_map: Any, dropped: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for key, value in value_map.items() if isinstance(value_map, Mapping) else ():
        if isinstance(value, str) and is_label_key(key) and is_label_value(value):
            labels[key] = value
        else:
            dropped.append(f"its label {key!r} is not legal")
    return labels


def _properties(values: Any, wanted: Mapping[str, str], dropped: list[str]) -> dict[str, str]:
    labels: dict[str, str] = {}
    for each in values if isinstance(values, list) else ():
        name, value = (each.get("name"), each.get("value")) if isinstance(each, Mapping) else (None, None)
        key = wanted.get(name) if isinstance(name, str) else None
        if key is None:
            continue
        if isinstance(value, str) and value and is_label_value(value):
            labels[key] = value
        else:
            dropped.append(f"its property {name!r} has no value that a label can have")
    return labels
