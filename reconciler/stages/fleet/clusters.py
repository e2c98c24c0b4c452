"""`Cluster` and `ManagedCluster` documents: the members of a fleet. Credentials never live in the store."""

from __future__ import annotations

from reconciler.model.cluster import Cluster, Taint
from reconciler.model.problem import Document, Problem, Severity
from reconciler.stages.documents import (
    Field,
    Fields,
    FieldType,
    document_fields,
    document_shape,
    exactly,
    is_label_key,
    is_label_value,
    read_name,
    refuse_namespace,
    shape,
)

ALIAS_ANNOTATION = "fleet.reconciler/alias"
"""A name for people, shown as CLUSTER_ALIAS."""
CONTEXT_ANNOTATION = "fleet.reconciler/context"
"""The kubeconfig context that reaches the cluster, when it does not have the cluster's name."""

CLUSTER_APIS = {"cluster.karmada.io/v1alpha1": "Cluster", "cluster.open-cluster-management.io/v1": "ManagedCluster"}

_BY_KUBECONFIG = "how a member is reached is said by the kubeconfig alone"
_EFFECTS_OF_MANAGED = {"NoSelect": "NoExecute", "NoSelectIfNew": "NoSchedule", "PreferNoSelect": "PreferNoSchedule"}


def _inert(name: str, why: str) -> Field:
    return Field(name, FieldType.ANY, "Part of the upstream kind.", no_effect=why, severity=Severity.HINT)


_TAINT_KEY = Field("key", FieldType.TEXT, "The taint key.", required=True)
_TAINT_VALUE = Field("value", FieldType.TEXT, "The taint value.")
_TAINT_TIME = _inert("timeAdded", "a taint counts from the commit that brings it")


def _taints_field(*effects: str) -> Field:
    effect = Field("effect", FieldType.TEXT, "What the taint does.", required=True, values=exactly(*effects))
    return Field(
        "taints",
        FieldType.OBJECTS,
        "Taints: what does not tolerate them is not placed here.",
        shape=shape(_TAINT_KEY, _TAINT_VALUE, _TAINT_TIME, effect),
    )


CLUSTER_SHAPE = document_shape(
    Field(
        "spec",
        FieldType.OBJECT,
        "What is known of the member.",
        shape=shape(
            Field("provider", FieldType.TEXT, "The cloud provider."),
            Field("region", FieldType.TEXT, "The region."),
            Field("zone", FieldType.TEXT, "The older form of zones."),
            Field("zones", FieldType.TEXTS, "The zones."),
            _taints_field("NoSchedule", "PreferNoSchedule", "NoExecute"),
            _inert("id", "a member is recognised by the uid of its kube-system namespace"),
            _inert("syncMode", "members are always written to from here"),
            _inert("apiEndpoint", _BY_KUBECONFIG),
            _inert("secretRef", _BY_KUBECONFIG),
            _inert("impersonatorSecretRef", _BY_KUBECONFIG),
            _inert("insecureSkipTLSVerification", _BY_KUBECONFIG),
            _inert("proxyURL", _BY_KUBECONFIG),
            _inert("proxyHeader", _BY_KUBECONFIG),
            _inert("resourceModels", "free capacity is computed from the nodes themselves"),
        ),
    )
)

MANAGED_CLUSTER_SHAPE = document_shape(
    Field(
        "spec",
        FieldType.OBJECT,
        "What is known of the member.",
        shape=shape(
            _taints_field(*_EFFECTS_OF_MANAGED),
            _inert("hubAcceptsClient", "every member with a document and a kubeconfig takes part"),
            _inert("leaseDurationSeconds", "members do not report to a hub"),
            _inert("managedClusterClientConfigs", _BY_KUBECONFIG),
        ),
    )
)


def is_cluster(api_version: str, kind: str) -> bool:
    """Whether a document declares a member."""
    return CLUSTER_APIS.get(api_version) == kind


def parse_cluster(document: Document) -> tuple[Cluster | None, tuple[Problem, ...]]:
    """The member that a document declares and every problem of it; None when one is an error.

    Source: design#members; design#credentials; Karmada: `cluster.karmada.io/v1alpha1`; Open Cluster Management:
    `ManagedCluster`.
    """
    managed = document.body.get("kind") == "ManagedCluster"
    fields = document_fields(document, MANAGED_CLUSTER_SHAPE if managed else CLUSTER_SHAPE)
    api_version, kind = fields.text("apiVersion"), fields.text("kind")
    if api_version and not is_cluster(api_version, kind):
        known = ", ".join(CLUSTER_APIS)
        fields.report.error("api-version-unknown", f"{api_version} is not known; write one of: {known}", "apiVersion")
    metadata, spec = fields.child("metadata"), fields.child("spec")
    cluster = _cluster(fields, metadata, spec, managed=managed) if metadata else None
    return (None if fields.report.has_errors else cluster), fields.report.sorted()


def _cluster(document: Fields, metadata: Fields, spec: Fields | None, *, managed: bool) -> Cluster:
    refuse_namespace(metadata, "a cluster")
    for key, value in metadata.text_map("labels").items():
        if not is_label_key(key) or not is_label_value(value):
            message = f"{key}: {value} cannot be a label"
            document.report.error("label-illegal", message, *metadata.path("labels", key))
    annotations = metadata.text_map("annotations")
    has_place = spec is not None and not managed
    zones = (*spec.texts("zones"), spec.text("zone")) if spec and has_place else ()
    return Cluster(
        name=read_name(metadata),
        alias=annotations.get(ALIAS_ANNOTATION, ""),
        labels=dict(sorted(metadata.text_map("labels").items())),
        provider=spec.text("provider") if spec and has_place else "",
        region=spec.text("region") if spec and has_place else "",
        zones=tuple(sorted({zone for zone in zones if zone})),
        taints=_taints(spec) if spec else (),
        context=annotations.get(CONTEXT_ANNOTATION, ""),
        source=document.source(),
    )


def _taints(spec: Fields) -> tuple[Taint, ...]:
    """Taints; those of a ManagedCluster are translated: NoSelect takes away, NoSelectIfNew only keeps new away."""
    taints: list[Taint] = []
    for fields in spec.children("taints"):
        key, value, effect = fields.text("key"), fields.text("value"), fields.text("effect")
        if fields.has("key") and not is_label_key(key):
            fields.report.error("label-key-illegal", f"{key!r} cannot be the key of a taint", *fields.path("key"))
        taint = Taint(key=key, value=value, effect=_EFFECTS_OF_MANAGED.get(effect, effect))
        if any(other.key == taint.key and other.effect == taint.effect for other in taints):
            message = f"there is already a taint {key} with effect {effect}; keep one"
            fields.report.error("taint-repeated", message, *fields.steps)
        taints.append(taint)
    return tuple(taints)
