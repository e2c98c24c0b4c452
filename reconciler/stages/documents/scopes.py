"""Which built-in kinds live in a namespace: every kind of Kubernetes 1.36, also those that are off by default.

Source: `kubectl api-resources` of a 1.36 API server, which a test compares this table with, and the `genclient` marks
of k8s.io/api for kinds whose API is not served by default.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

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
