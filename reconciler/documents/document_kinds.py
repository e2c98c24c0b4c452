"""Kinds of documents: dialect, scope, namespaces that are never distributed, and our annotations on policies.

The annotations are settings without a field in the product's API. Source: design#policy-annotations.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Final

from reconciler.api.policies import AffinityMode, Companion, Flavor, Placement
from reconciler.api.problem import Document
from reconciler.api.refs import GVK, Identity
from reconciler.documents.field_reader import Fields, document_fields
from reconciler.documents.field_tables import Shape
from reconciler.regex import regex

PREFIX: Final = "fleet.reconciler/"

AFFINITY_MODE: Final = "fleet.reconciler/affinity-mode"
"""The meaning of ordered clusterAffinities, whatever the API group: `tiers` or `exclusive`."""

FAIL_BACK: Final = "fleet.reconciler/fail-back"
"""`true`: replicas that had to leave an earlier group of clusters go back as soon as that group takes them again."""

BRING: Final = "fleet.reconciler/bring"
"""Companions that are placed with a workload: some of `services,ingresses,routes,autoscalers,budgets`."""

POLICY_ANNOTATIONS: Final = (AFFINITY_MODE, BRING, FAIL_BACK)


def check_annotations(document: Fields) -> None:
    """Report unknown annotations of ours: a misspelled one would be without effect and without notice."""
    metadata = document.child("metadata")
    for name in metadata.text_map("annotations") if metadata else ():
        if metadata is not None and name.startswith(PREFIX) and name not in POLICY_ANNOTATIONS:
            known = ", ".join(POLICY_ANNOTATIONS)
            message = f"{name} is not known on a policy; known here: {known}"
            metadata.error("policy-annotation-unknown", message, "annotations", name)


def read_affinity_mode(document: Fields, flavor: Flavor, placement: Placement) -> AffinityMode:
    """Return the meaning of ordered groups.

    Source: "Elastic scheduling with multi-cluster priorities" (they spill over); Karmada: one group is in use.
    """
    needs_capacity = placement.scheduling.division.needs_capacity
    default = AffinityMode.TIERS if flavor.is_ack and needs_capacity else AffinityMode.EXCLUSIVE
    written = _written(document, AFFINITY_MODE)
    if written is None:
        return default
    if written not in tuple(AffinityMode):
        _error(document, AFFINITY_MODE, "affinity-mode-unknown", f"{written!r} is not known; it is tiers or exclusive")
        return default
    if written == AffinityMode.TIERS and not needs_capacity:
        message = "tiers are filled by free capacity, so they need dynamicWeight or Aggregated; take the annotation out"
        _error(document, AFFINITY_MODE, "affinity-mode-needs-capacity", message)
        return default
    return AffinityMode(written)


def read_fail_back(document: Fields, placement: Placement) -> bool:
    """Return whether to go back to earlier groups. Source: design#fail-back: an opt-in."""
    written = _written(document, FAIL_BACK)
    if written is None:
        return False
    if written not in ("true", "false"):
        _error(document, FAIL_BACK, "fail-back-unknown", f'{written!r} is not known; it is "true" or "false"')
        return False
    if written == "true" and len(placement.terms) + sum(len(term.overflow) for term in placement.terms) < 2:
        message = "there is no group to go back to; write several clusterAffinities, or take the annotation out"
        _error(document, FAIL_BACK, "fail-back-without-groups", message)
    return written == "true"


def read_brings(document: Fields) -> frozenset[Companion]:
    """Return the companions of the workloads that the policy claims."""
    brings, unknown = parse_brings(_written(document, BRING) or "")
    if unknown:
        _error(document, BRING, "bring-unknown", unknown)
    return brings


def parse_brings(text: str) -> tuple[frozenset[Companion], str]:
    """Return the companions that an annotation lists, and its fault; empty: none."""
    words = [word.strip() for word in text.split(",")] if text.strip() else []
    unknown = ", ".join(repr(word[:80]) for word in words if word not in tuple(Companion))
    problem = f"{unknown} is not known; name some of {', '.join(Companion)}, with commas between" if unknown else ""
    return frozenset(Companion(word) for word in words if word in tuple(Companion)), problem


def _written(document: Fields, name: str) -> str | None:
    metadata = document.child("metadata")
    return metadata.text_map("annotations").get(name) if metadata else None


def _error(document: Fields, name: str, code: str, message: str) -> None:
    metadata = document.child("metadata")
    document.report.error(code, f"{name}: {message}", *(metadata.path("annotations", name) if metadata else ()))


FLAVORS: Mapping[str, Flavor] = {
    "policy.one.alibabacloud.com/v1alpha1": Flavor.ACK,
    "one.alibabacloud.com/v1alpha1": Flavor.ACK_LEGACY,
    "policy.karmada.io/v1alpha1": Flavor.KARMADA,
}
"""The API versions of policies."""

PROPAGATION_KINDS = frozenset({"PropagationPolicy", "ClusterPropagationPolicy"})
OVERRIDE_KINDS = frozenset({"OverridePolicy", "ClusterOverridePolicy"})
POLICY_GROUPS = frozenset(api_version.partition("/")[0] for api_version in FLAVORS)

_COMPUTED = "it is what Karmada computes; write the resource and a policy instead"
_NO_HPA = "put a HorizontalPodAutoscaler and a policy for it into the store instead"
_NEEDS_CONTROL_PLANE = "it needs Karmada's control plane in the members"
_OWN_INTERPRETERS = "kinds are known to the reconciler by its own interpreters"
_NO_CONTROL_PLANE = "it configures Karmada's own control plane, which a fleet store does not have"
_REFUSED: Mapping[tuple[str, str], str] = {
    ("policy.karmada.io", "FederatedResourceQuota"): "put a ResourceQuota and a policy for it into the store instead",
    ("policy.karmada.io", "ClusterTaintPolicy"): "write the taints into the Cluster documents of the store instead",
    ("remedy.karmada.io", "Remedy"): _NO_CONTROL_PLANE,
    ("work.karmada.io", "Work"): _COMPUTED,
    ("work.karmada.io", "ResourceBinding"): _COMPUTED,
    ("work.karmada.io", "ClusterResourceBinding"): _COMPUTED,
    ("apps.karmada.io", "WorkloadRebalancer"): "placements are computed afresh when observations change",
    ("autoscaling.karmada.io", "FederatedHPA"): _NO_HPA,
    ("autoscaling.karmada.io", "CronFederatedHPA"): "commit the change of spec.replicas instead",
    ("networking.karmada.io", "MultiClusterService"): _NEEDS_CONTROL_PLANE,
    ("networking.karmada.io", "MultiClusterIngress"): _NEEDS_CONTROL_PLANE,
    ("config.karmada.io", "ResourceInterpreterCustomization"): _OWN_INTERPRETERS,
    ("config.karmada.io", "ResourceInterpreterWebhookConfiguration"): "no webhook takes part in a plan",
    ("search.karmada.io", "ResourceRegistry"): _NO_CONTROL_PLANE,
}


def is_policy(api_version: str, kind: str) -> bool:
    """Return whether a document is one of the four policy kinds, in any version of the three groups."""
    return api_version.partition("/")[0] in POLICY_GROUPS and kind in PROPAGATION_KINDS | OVERRIDE_KINDS


def refused_kind(api_version: str, kind: str) -> str:
    """Return why a store may not have a kind of Karmada's control API, with the remedy; empty for every other kind."""
    return _REFUSED.get((api_version.rpartition("/")[0], kind), "")


_NAMESPACED: Final[Mapping[str, str]] = {
    "": (
        "Binding ConfigMap Endpoints Event LimitRange PersistentVolumeClaim Pod PodTemplate "
        "ReplicationController ResourceQuota Secret Service ServiceAccount"
    ),
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authorization.k8s.io": "LocalSubjectAccessReview",
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "certificates.k8s.io": "PodCertificateRequest",
    "coordination.k8s.io": "Lease LeaseCandidate",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "networking.k8s.io": "Ingress NetworkPolicy",
    "policy": "Eviction PodDisruptionBudget",
    "rbac.authorization.k8s.io": "Role RoleBinding",
    "resource.k8s.io": "ResourceClaim ResourceClaimTemplate",
    "scheduling.k8s.io": "PodGroup Workload",
    "storage.k8s.io": "CSIStorageCapacity",
}

_CLUSTER_SCOPED: Final[Mapping[str, str]] = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "IPAddress IngressClass ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}

BUILT_IN: Final[Mapping[tuple[str, str], bool]] = {
    (group, kind): namespaced
    for namespaced, groups in ((True, _NAMESPACED), (False, _CLUSTER_SCOPED))
    for group, kinds in groups.items()
    for kind in kinds.split()
}
"""(group, kind) of every built-in kind, with whether it is namespaced."""


def is_namespaced(group: str, kind: str) -> bool | None:
    """Return whether a built-in kind is namespaced; None for every other kind.

    >>> is_namespaced("apps", "Deployment"), is_namespaced("", "Node"), is_namespaced("example.com", "Node")
    (True, False, None)
    """
    return BUILT_IN.get((group, kind))


def guessed_plural(kind: str) -> str:
    """Return the plural of a kind as paths and roles name it.

    Source: apimachinery, meta.UnsafeGuessKindToResource, which is right for every built-in kind (a test compares it
    with an API server).

    >>> guessed_plural("NetworkPolicy"), guessed_plural("StorageClass"), guessed_plural("Endpoints")
    ('networkpolicies', 'storageclasses', 'endpoints')
    """
    name = kind.lower()
    if name.endswith("endpoints"):
        return name
    if name.endswith("s"):
        return f"{name}es"
    return f"{name[:-1]}ies" if name.endswith("y") else f"{name}s"


OWN_API_VERSION: Final = "fleet.reconciler/v1alpha1"


def check_own_api_version(document: Fields) -> None:
    """Report an API version that is not the one of our kinds."""
    api_version = document.text("apiVersion")
    if api_version and api_version != OWN_API_VERSION:
        message = f"{api_version} is not known; write {OWN_API_VERSION}"
        document.report.error("api-version-unknown", message, "apiVersion")


def refuse_namespace(metadata: Fields, kind: str) -> None:
    """Report a namespace of an object that has none. `kind`: its name in a sentence."""
    if metadata.has("namespace"):
        metadata.error("namespace-on-cluster-kind", f"{kind} has no namespace; take it out", "namespace")


def own_document(
    document: Document, root: Shape, kind: str, is_legal: Callable[[str], bool], rule: str
) -> tuple[Fields, str]:
    """Return the top of a document of our own, which has no namespace, and its name, with errors where they are wrong.

    `rule`: what its name names, and how, as the end of a sentence.
    """
    fields = document_fields(document, root)
    check_own_api_version(fields)
    metadata = fields.child("metadata")
    if metadata is None:
        return fields, ""
    refuse_namespace(metadata, f"a {kind}")
    metadata.check("name", is_legal, "name-illegal", f"{{}} cannot name {rule}")
    return fields, metadata.text("name")


_SYSTEM = regex(r"kube-.*|karmada-system|karmada-cluster|karmada-es-.*|fleet-system", re.DOTALL)

CONTROL_GROUPS = frozenset({"policy.karmada.io", "cluster.karmada.io", "work.karmada.io"})
"""Karmada's own control API: its objects are never distributed."""


# Thousands of templates live in a namespace.
@lru_cache(maxsize=4096)
def is_system_namespace(namespace: str) -> bool:
    """Return whether nothing is distributed into a namespace.

    Source: "PropagationPolicy and OverridePolicy" (any namespace other than the system reserved ones); Karmada:
    `kube-*` and its own namespaces; `fleet-system` has our own marks in members.

    >>> is_system_namespace("kube-system"), is_system_namespace("kubernetes"), is_system_namespace("default")
    (True, False, False)
    """
    return _SYSTEM.fullmatch(namespace) is not None


def system_namespace_of(identity: Identity) -> str:
    """Return the system namespace that an object is in or is; empty for any other object."""
    is_one = identity.group == "" and identity.kind == "Namespace"
    namespace = identity.name if is_one else identity.namespace
    return namespace if is_system_namespace(namespace) else ""


def may_be_allowed(namespace: str) -> bool:
    """Return whether `spec.namespaces.allowed` of the Fleet document may name a namespace."""
    return namespace.startswith("kube-")


def is_never_distributed(gvk: GVK, identity: Identity, *, is_admitted: bool = False) -> bool:
    """Return whether no policy may claim an object: it belongs to the control API, or to a system namespace.

    `is_admitted`: the Fleet document allows its namespace.
    """
    return gvk.group in CONTROL_GROUPS or not (is_admitted or system_namespace_of(identity) == "")
