"""Fields of a kind that a cluster writes itself whatever a store says of them.

They are left out of requests, so that they are neither compared nor in conflict, and a template with such fields, for
example an exported one, gets a warning. Fields that only the API server writes into every object are in
`body_fields`. Source: design#fields-of-the-cluster; each row has its own.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.content import Json, JsonObject, Step, dig

EVERY: Final = "*"
"""A step to each entry of a list."""

Kind = tuple[str, str]


class ClusterField(NamedTuple):
    """A field that a cluster writes: its path, writer and reason, and a check of an object's value.

    `is_sent`: the user may mean it, so that it is sent and only warned about.
    """

    path: tuple[str, ...]
    why: str
    is_theirs: Callable[[JsonObject, Json], bool] = lambda body, value: True
    is_sent: bool = False


def _is_exported(body: JsonObject, value: Json) -> bool:
    """Return whether the object was read from a cluster: it has fields that only an API server writes."""
    return bool(dig(body, "metadata", "uid") or dig(body, "metadata", "resourceVersion"))


def _is_address(body: JsonObject, value: Json) -> bool:
    """Return whether it is an address, and not the word that makes a Service headless."""
    address = dig(body, "spec", "clusterIP")
    is_headless = address == "None" or (address is None and dig(body, "spec", "clusterIPs") == ["None"])
    return not is_headless


def _is_bound(body: JsonObject, value: Json) -> bool:
    """Return whether a controller bound it; without the annotation a person did, and means it."""
    return dig(body, "metadata", "annotations", "pv.kubernetes.io/bound-by-controller") is not None


def _is_token(body: JsonObject, value: Json) -> bool:
    name = dig(value, "name")
    return isinstance(name, str) and name.startswith(f"{dig(body, 'metadata', 'name')}-token-")


def _is_of_an_account(body: JsonObject, value: Json) -> bool:
    return bool(dig(body, "type") == "kubernetes.io/service-account-token")


_INJECTING: Final = (
    "cert-manager.io/inject-ca-from",
    "cert-manager.io/inject-ca-from-secret",
    "cert-manager.io/inject-apiserver-ca",
    "service.beta.openshift.io/inject-cabundle",
)
"""Annotations that request a CA bundle.

Source: cert-manager, CA injector; OpenShift, service CA certificates."""


def _is_injected(body: JsonObject, value: Json) -> bool:
    """Return whether another program fills the bundle in: an annotation asks for it, or it is blank."""
    return _is_blank(value) or any(dig(body, "metadata", "annotations", name) for name in _INJECTING)


def _is_blank(value: Json) -> bool:
    """Return whether the value is empty, or the encoded line break that is a placeholder for a bundle."""
    if not isinstance(value, str):
        return value is None or value in ([], {})
    try:
        return not base64.b64decode(value).strip()
    except (binascii.Error, ValueError):
        return not value


def _annotations(why: str, *names: str) -> Iterator[ClusterField]:
    return (ClusterField(("metadata", "annotations", name), why) for name in names)


_BUNDLE: Final = "an injector in each cluster writes the CA bundle of that cluster"
_ROLLOUTS: Final = "the Deployment controller of each cluster counts its own rollouts"
_BINDING: Final = "each cluster binds claims and volumes by itself"
_PORT: Final = "the port was given out by the cluster it comes from, and may be taken in another"
_JOB_LABELS: Final = "the Job controller of each cluster makes it for its own Job"
_ACCOUNT: Final = "the token controller of each cluster fills it in for the account there"
_UID_LABELS: Final = ("controller-uid", "batch.kubernetes.io/controller-uid")
_NAME_LABELS: Final = ("job-name", "batch.kubernetes.io/job-name")

_WEBHOOKS: Final = (ClusterField(("webhooks", EVERY, "clientConfig", "caBundle"), _BUNDLE, _is_injected),)

CLUSTER_FIELDS: Final[Mapping[Kind, tuple[ClusterField, ...]]] = {
    # Kubernetes, RBAC: aggregated ClusterRoles: "the control plane overwrites any values".
    ("rbac.authorization.k8s.io", "ClusterRole"): (
        ClusterField(
            ("rules",),
            "each cluster fills it from the roles that aggregationRule selects",
            lambda body, value: dig(body, "aggregationRule") is not None,
        ),
    ),
    ("admissionregistration.k8s.io", "MutatingWebhookConfiguration"): _WEBHOOKS,
    ("admissionregistration.k8s.io", "ValidatingWebhookConfiguration"): _WEBHOOKS,
    ("apiextensions.k8s.io", "CustomResourceDefinition"): (
        ClusterField(("spec", "conversion", "webhook", "clientConfig", "caBundle"), _BUNDLE, _is_injected),
    ),
    ("apiregistration.k8s.io", "APIService"): (ClusterField(("spec", "caBundle"), _BUNDLE, _is_injected),),
    # Kubernetes, Service: clusterIP and ports are allocated; Karmada: the address goes unless the Service is headless.
    ("", "Service"): (
        *(
            ClusterField(("spec", name), "each cluster gives the Service an address of its own", _is_address)
            for name in ("clusterIP", "clusterIPs")
        ),
        ClusterField(("spec", "healthCheckNodePort"), _PORT, _is_exported, is_sent=True),
        ClusterField(("spec", "ports", EVERY, "nodePort"), _PORT, _is_exported, is_sent=True),
    ),
    # Karmada: token Secrets of a ServiceAccount go; there the second of two neighbours stays.
    ("", "ServiceAccount"): (
        ClusterField(("secrets", EVERY), "each cluster makes the tokens of its accounts", _is_token),
    ),
    # Kubernetes, TokenController: a token Secret with the uid of another account is deleted.
    ("", "Secret"): (
        ClusterField(("metadata", "annotations", "kubernetes.io/service-account.uid"), _ACCOUNT, _is_of_an_account),
        *(ClusterField(("data", name), _ACCOUNT, _is_of_an_account) for name in ("token", "ca.crt", "namespace")),
    ),
    # Kubernetes, persistent volumes: binding; pkg/controller/volume/persistentvolume: AnnBoundByController. Karmada:
    # the node that a scheduler selected in one cluster means nothing in another.
    ("", "PersistentVolumeClaim"): (
        ClusterField(("spec", "volumeName"), _BINDING, _is_bound),
        *_annotations(
            _BINDING,
            "pv.kubernetes.io/bind-completed",
            "pv.kubernetes.io/bound-by-controller",
            "volume.kubernetes.io/storage-provisioner",
            "volume.beta.kubernetes.io/storage-provisioner",
            "volume.kubernetes.io/selected-node",
        ),
    ),
    ("", "PersistentVolume"): (
        ClusterField(("spec", "claimRef"), _BINDING, _is_bound),
        ClusterField(("spec", "claimRef", "uid"), _BINDING),
        ClusterField(("spec", "claimRef", "resourceVersion"), _BINDING),
        *_annotations(_BINDING, "pv.kubernetes.io/bound-by-controller"),
    ),
    # Kubernetes, Namespace: its finalizer is set at creation. OpenShift, security context constraints: ids.
    ("", "Namespace"): (
        ClusterField(("spec", "finalizers"), "each API server sets it itself"),
        *_annotations(
            "each cluster gives its namespaces ids of its own",
            "openshift.io/sa.scc.mcs",
            "openshift.io/sa.scc.supplemental-groups",
            "openshift.io/sa.scc.uid-range",
        ),
    ),
    # Kubernetes, scheduling: a pod with a node is bound, and no scheduler looks at it.
    ("", "Pod"): (
        ClusterField(("spec", "nodeName"), "the scheduler of each cluster chooses among its own nodes", _is_exported),
    ),
    ("", "Endpoints"): tuple(
        _annotations("the controller of each cluster writes it", "endpoints.kubernetes.io/last-change-trigger-time")
    ),
    # Kubernetes, pkg/controller/deployment/util: annotations of revisions.
    ("apps", "Deployment"): tuple(
        _annotations(
            _ROLLOUTS, "deployment.kubernetes.io/revision", "deployment.kubernetes.io/revision-history"
        )
    ),
    ("apps", "ReplicaSet"): tuple(
        _annotations(
            _ROLLOUTS,
            "deployment.kubernetes.io/revision",
            "deployment.kubernetes.io/revision-history",
            "deployment.kubernetes.io/desired-replicas",
            "deployment.kubernetes.io/max-replicas",
        )
    ),
    ("apps", "DaemonSet"): tuple(
        _annotations("each API server counts its own templates", "deprecated.daemonset.template.generation")
    ),
    # Karmada: pruned fields of a Job. Kubernetes, Job: its selector and these labels are made unless manualSelector.
    ("batch", "Job"): (
        *(
            ClusterField((*path, name), _JOB_LABELS, lambda body, _: dig(body, "spec", "manualSelector") is not True)
            for path, names in (
                (("spec", "selector", "matchLabels"), _UID_LABELS),
                (("spec", "template", "metadata", "labels"), _UID_LABELS + _NAME_LABELS),
                (("metadata", "labels"), _UID_LABELS + _NAME_LABELS),
            )
            for name in names
        ),
        *_annotations(_JOB_LABELS, "batch.kubernetes.io/job-tracking"),
    ),
    # Kubernetes, pkg/apis/autoscaling/annotations: the status of autoscaling/v2 as autoscaling/v1 shows it.
    ("autoscaling", "HorizontalPodAutoscaler"): tuple(
        _annotations(
            "the autoscaler of each cluster writes it",
            "autoscaling.alpha.kubernetes.io/conditions",
            "autoscaling.alpha.kubernetes.io/current-metrics",
        )
    ),
}  # fmt: skip


def fields_of_the_cluster(body: JsonObject) -> Iterator[tuple[tuple[Step, ...], ClusterField]]:
    """Yield the non-blank fields of an object that its cluster writes, with the steps to each."""
    for field in _of_kind(body):
        for steps, value in _values_at(body, field.path, ()):
            if not _is_blank(value) and field.is_theirs(body, value):
                yield steps, field


def without_cluster_fields(body: JsonObject) -> JsonObject:
    """The object without fields that its cluster writes; the object itself when it has none.

    A mapping or list that becomes empty goes as well.
    """
    pruned: JsonObject = body
    for field in _of_kind(body):
        if not field.is_sent:
            theirs = [steps for steps, value in _values_at(pruned, field.path, ()) if field.is_theirs(body, value)]
            for steps in reversed(theirs):
                pruned = _without(pruned, steps)
    return pruned


def _of_kind(body: JsonObject) -> tuple[ClusterField, ...]:
    return CLUSTER_FIELDS.get((str(body.get("apiVersion")).rpartition("/")[0], str(body.get("kind"))), ())


def _values_at(tree: Json, path: tuple[str, ...], steps: tuple[Step, ...]) -> Iterator[tuple[tuple[Step, ...], Json]]:
    if not path:
        yield steps, tree
        return
    below: Iterable[tuple[Step, Json]] = ()
    if path[0] == EVERY:
        below = enumerate(tree) if isinstance(tree, list) else ()
    elif isinstance(tree, (dict, Mapping)) and path[0] in tree:
        below = ((path[0], tree[path[0]]),)
    for step, value in below:
        yield from _values_at(value, path[1:], (*steps, step))


def _without(tree: Json, steps: tuple[Step, ...]) -> Json:
    head, rest = steps[0], steps[1:]
    copy: Any = [*tree] if isinstance(tree, list) else {**tree}
    below = _without(tree[head], rest) if rest else None
    if below or (rest and isinstance(tree, list)):
        copy[head] = below
    else:
        del copy[head]
    return copy
