"""Live objects as templates of a store, and policies that adopt them: replicas as weights, differences as overrides.

Source: design#foreign-objects: conflictResolution decides about objects that exist and are not ours; design#identity;
design#stale-copies; design#division: static weights equal to the live replicas reproduce the live replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from reconciler.api.clusters import LiveObject
from reconciler.api.content import Json, JsonObject, dig, digest_of
from reconciler.api.refs import GVK, Identity
from reconciler.documents import is_never_distributed, pointer_text
from reconciler.kinds.body_fields import prune_server_fields
from reconciler.kinds.registry import Registry
from reconciler.ownership import MarkPlace, foreign_mark, read_owner, strip_marks

_NAME_MAX = 63
OBVIOUS_GROUPS = frozenset({"", "apps", "batch"})
"""Groups whose kinds are known by their kind alone; names of policies and files leave them out."""

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
    is_own = identity[:2] in _KINDS_OF_THE_CLUSTER or (*identity[:2], identity.name) in _MADE_BY_THE_CLUSTER
    if is_own or live.body.get("type") == _TOKEN or _has_mark(live, _KEPT_UP_BY_THE_CLUSTER):
        return "every cluster makes its own"
    if dig(live.body, "metadata", "deletionTimestamp"):
        return "it is being deleted"
    if read_owner(live.body) is not None:
        return "a fleet store holds it already"
    return f"{mark.tool} holds it; take it from there first" if mark is not None else ""


def _has_mark(live: LiveObject, marks: tuple[tuple[str, str], ...]) -> bool:
    return any(dig(live.body, "metadata", field, mark) is not None for field, mark in marks)


def template_of(live: LiveObject, interpreters: Registry) -> JsonObject:
    """Return the object as a person would have written it: without fields of servers, controllers and ourselves."""
    body = {"apiVersion": live.gvk.api_version, "kind": live.gvk.kind, **live.body}
    return strip_marks(prune_server_fields(interpreters.of(*live.identity[:2]).sanitize(body)))


class Imported(Struct, frozen=True, kw_only=True):
    """One object for the store: its template, its clusters, and the differences there.

    `weights`: replicas by cluster if they are divided; empty: each cluster has the template's number. `patches`:
    differences of clusters, as operations of an override.
    """

    gvk: GVK
    identity: Identity
    template: JsonObject
    clusters: tuple[str, ...]
    weights: Mapping[str, int]
    patches: Mapping[str, tuple[JsonObject, ...]]


def imported(copies: Mapping[str, LiveObject], interpreters: Registry) -> Imported:
    """Return the copies of one object, by cluster, as one template; it has the most common content."""
    clusters = tuple(sorted(copies))
    first = copies[clusters[0]]
    kind = interpreters.of(*first.identity[:2])
    bodies: dict[str, Any] = {}
    for name in clusters:
        body = template_of(copies[name], interpreters)
        # Clusters of different versions may serve different versions of a kind; a store has one.
        bodies[name] = {**body, "apiVersion": first.gvk.api_version, "kind": first.gvk.kind}
    weights = _weights(first, bodies, interpreters)
    if weights:
        total = sum(weights.values())
        bodies = {name: kind.with_replicas(body, total) for name, body in bodies.items()}
    # The most common body; of equals, that of the first cluster by name.
    digests = {name: digest_of(body) for name, body in sorted(bodies.items())}
    (digest, _), *_ = Counter(digests.values()).most_common(1)
    template = next(bodies[name] for name, other in digests.items() if other == digest)
    patches = {name: tuple(_operations(template, body)) for name, body in bodies.items()}
    return Imported(
        gvk=first.gvk,
        identity=first.identity,
        template=template,
        clusters=clusters,
        weights=weights,
        patches={name: other for name, other in patches.items() if other},
    )


def policies_of(objects: Iterable[Imported]) -> Iterator[dict[str, Any]]:
    """The policies under which the objects are adopted where they run, as they run there.

    One policy for all objects of a namespace that are in the same clusters, one more for each that is divided, and an
    override policy for each that differs.
    """
    alike: dict[tuple[str, tuple[str, ...]], list[Imported]] = {}
    for one in sorted(objects, key=lambda one: one.identity):
        if one.weights:
            weights = [
                {"targetCluster": {"clusterNames": [name]}, "weight": weight}
                for name, weight in sorted(one.weights.items())
            ]
            scheduling = {
                "replicaSchedulingType": "Divided",
                "replicaDivisionPreference": "Weighted",
                "weightPreference": {"staticWeightList": weights},
            }
            divided = {"clusterAffinity": {"clusterNames": list(one.clusters)}, "replicaScheduling": scheduling}
            name = _safe_name(*_words(one.identity))
            yield _adopting(one.identity.namespace, [_selector(one)], divided, name)
        else:
            alike.setdefault((one.identity.namespace, one.clusters), []).append(one)
        if one.patches:
            yield _override_policy(one)
    for (namespace, clusters), group in sorted(alike.items(), key=lambda item: item[0]):
        placement = {"clusterAffinity": {"clusterNames": list(clusters)}}
        yield _adopting(namespace, [_selector(one) for one in group], placement, _safe_name(*clusters))


def _weights(first: LiveObject, bodies: Mapping[str, JsonObject], interpreters: Registry) -> dict[str, int]:
    """Replicas by cluster where they differ and can be divided; empty where all have the same, or one has none.

    A Job divides its completions when it is made, and those of one that runs are fixed.
    """
    kind = interpreters.of(*first.identity[:2])
    demands = {name: kind.demand(body) for name, body in bodies.items()}
    replicas = {name: demand.replicas or 0 for name, demand in demands.items()}
    can_divide = all(demand.is_divisible and not demand.components for demand in demands.values())
    if not can_divide or first.identity[:2] == ("batch", "Job") or not all(replicas.values()):
        return {}
    return replicas if len(set(replicas.values())) > 1 else {}


def _operations(before: Json, after: Json, at: tuple[str, ...] = ()) -> Iterator[JsonObject]:
    if before == after:
        return
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        for key in sorted(before.keys() | after.keys()):
            path = (*at, key)
            if key not in after:
                yield {"path": pointer_text(path), "operator": "remove"}
            elif key not in before:
                yield {"path": pointer_text(path), "operator": "add", "value": after[key]}
            else:
                yield from _operations(before[key], after[key], path)
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _operations(one, other, (*at, str(index)))
    else:
        yield {"path": pointer_text(at), "operator": "replace", "value": after}


def _selector(one: Imported) -> dict[str, str]:
    return {"apiVersion": one.gvk.api_version, "kind": one.gvk.kind, "name": one.identity.name}


def _override_policy(one: Imported) -> dict[str, Any]:
    """One rule for clusters that differ in the same way."""
    alike: dict[str, list[str]] = {}
    for name, operations in sorted(one.patches.items()):
        alike.setdefault(digest_of(list(operations)), []).append(name)
    rules = [
        {"targetCluster": {"clusterNames": names}, "overriders": {"plaintext": list(one.patches[names[0]])}}
        for names in alike.values()
    ]
    spec = {"resourceSelectors": [_selector(one)], "overrideRules": rules}
    return _policy("OverridePolicy", one.identity.namespace, _safe_name(*_words(one.identity)), spec)


def _words(identity: Identity) -> tuple[str, ...]:
    return (identity.kind, *(() if identity.group in OBVIOUS_GROUPS else (identity.group,)), identity.name)


def _safe_name(*parts: str) -> str:
    """Return a legal name for a policy: of its subject, or of a digest if that is too long or illegal."""
    name = "-".join(("imported", *parts)).lower()
    is_legal = len(name) <= _NAME_MAX and all(
        (letter.isalnum() and letter.isascii()) or letter in "-." for letter in name
    )
    return name if is_legal else f"imported-{digest_of(list(parts))[:16]}"


def _adopting(namespace: str, selectors: list[dict[str, str]], placement: JsonObject, name: str) -> dict[str, Any]:
    spec = {"conflictResolution": "Overwrite", "resourceSelectors": selectors, "placement": placement}
    return _policy("PropagationPolicy", namespace, name, spec)


def _policy(kind: str, namespace: str, name: str, spec: JsonObject) -> dict[str, Any]:
    return {
        "apiVersion": POLICY_API,
        "kind": kind if namespace else f"Cluster{kind}",
        "metadata": {"name": name, **({"namespace": namespace} if namespace else {})},
        "spec": spec,
    }
