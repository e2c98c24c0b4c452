"""Live objects as templates of a store, and policies that adopt them in their clusters.

Source: design#foreign-objects: conflictResolution decides about objects that exist and are not ours; design#identity;
design#stale-copies.
"""

from __future__ import annotations

from typing import Any

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject, dig
from reconciler.documents import is_never_distributed
from reconciler.kinds.body_fields import prune_server_fields
from reconciler.kinds.registry import Registry
from reconciler.ownership import MarkPlace, foreign_mark, read_owner, strip_marks

_MADE_BY_THE_CLUSTER = frozenset(
    {
        ("", "ConfigMap", "kube-root-ca.crt"),
        ("", "ServiceAccount", "default"),
        *(("", kind, "kubernetes") for kind in ("Endpoints", "Service")),
        ("discovery.k8s.io", "EndpointSlice", "kubernetes"),
        ("networking.k8s.io", "ServiceCIDR", "kubernetes"),
        ("", "Namespace", "default"),
        *(("scheduling.k8s.io", "PriorityClass", f"system-{what}-critical") for what in ("cluster", "node")),
    }
)
_KINDS_OF_THE_CLUSTER = frozenset(
    {
        *(("", kind) for kind in ("ComponentStatus", "Event", "Node")),
        ("events.k8s.io", "Event"),
        ("networking.k8s.io", "IPAddress"),
        ("storage.k8s.io", "CSINode"),
    }
)
"""Kinds that a cluster consists of, or writes about itself."""
_KEPT_UP_BY_THE_CLUSTER = (
    ("labels", "kubernetes.io/bootstrapping"),
    ("labels", "kube-aggregator.kubernetes.io/automanaged"),
    ("annotations", "apf.kubernetes.io/autoupdate-spec"),
)
"""Marks of objects that an API server makes and restores itself: its roles, services and priority levels."""
_MADE_BY_OPERATORS = (
    ("labels", "reconcile.external-secrets.io/managed"),
    ("labels", "secrets-store.csi.k8s.io/managed"),
    ("annotations", "cert-manager.io/certificate-name"),
)
"""Marks of Secrets that operators make of other objects, whether these own them or not.

Source: external-secrets, LabelManaged; Secrets Store CSI driver; cert-manager, CertificateNameKey.
"""
_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secret, not a secret
POLICY_API = "policy.one.alibabacloud.com/v1alpha1"


def reason_to_skip(live: LiveObject) -> str:
    """Return the reason why an object may not be written into a store; empty if it may."""
    identity = live.identity
    mark = foreign_mark(live.body)
    is_brought = mark is not None and mark.place is MarkPlace.OWNER
    if dig(live.body, "metadata", "ownerReferences") and not is_brought:
        return "another object makes it"
    if identity[:2] == ("", "Secret") and _has_mark(live, _MADE_BY_OPERATORS):
        return "an operator makes it of another object"
    if is_never_distributed(live.gvk, identity):
        return "no policy may select it"
    if _is_made_by_the_cluster(live):
        return "every cluster makes its own"
    if dig(live.body, "metadata", "deletionTimestamp"):
        return "it is being deleted"
    if read_owner(live.body) is not None:
        return "a fleet store holds it already"
    return f"{mark.tool} holds it; take it from there first" if mark is not None else ""


def _is_made_by_the_cluster(live: LiveObject) -> bool:
    group, kind, _, name = live.identity
    if (group, kind) in _KINDS_OF_THE_CLUSTER or (group, kind, name) in _MADE_BY_THE_CLUSTER:
        return True
    if live.body.get("type") == _TOKEN:
        return True
    return _has_mark(live, _KEPT_UP_BY_THE_CLUSTER)


def _has_mark(live: LiveObject, marks: tuple[tuple[str, str], ...]) -> bool:
    return any(dig(live.body, "metadata", field, mark) is not None for field, mark in marks)


def template_of(live: LiveObject, interpreters: Registry) -> JsonObject:
    """Return the object as a person would have written it: without fields of servers, controllers and ourselves."""
    body = {"apiVersion": live.gvk.api_version, "kind": live.gvk.kind, **live.body}
    pruned = prune_server_fields(interpreters.of(*live.identity[:2]).sanitize(body))
    return strip_marks(pruned)


def adopting_policy(
    namespace: str, selectors: list[dict[str, str]], placement: dict[str, Any], name: str
) -> dict[str, Any]:
    """Return a policy that adopts the objects in its placement; without a namespace a cluster policy."""
    return {
        "apiVersion": POLICY_API,
        "kind": "PropagationPolicy" if namespace else "ClusterPropagationPolicy",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": {"conflictResolution": "Overwrite", "resourceSelectors": selectors, "placement": placement},
    }
