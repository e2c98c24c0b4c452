"""Shared fields of Kustomizations and HelmReleases: their cluster, and their reconciling."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from reconciler.api.problem import Document
from reconciler.documents import is_system_namespace, may_be_allowed
from reconciler.importers.checkouts import Checkouts
from reconciler.importers.flux.sources import Sources
from reconciler.importers.reading import Notes, Reading, Uncarried

_QUIET: Final = ("interval", "retryInterval", "timeout", "persistentClient", "maxHistory")
"""Intervals, timeouts and limits: each cluster here has its own pace."""


class Context(NamedTuple):
    """The inputs for the documents of one cluster. `names`: cluster names by those of Secrets with kubeconfigs."""

    cluster: str
    sources: Sources
    checkouts: Checkouts
    kube_version: str
    names: Mapping[str, str]
    notes: Notes


def cluster_of(spec: Reading, context: Context) -> str:
    """Return the cluster of a document: with a kubeconfig another one than its controller's.

    Raises:
        Uncarried: nobody says which one that is; the message names the option.
    """
    config = spec.child("kubeConfig")
    if not config.body:
        return context.cluster
    name = config.child("secretRef").text("name")
    if name not in context.names:
        wanted = name or "SECRET"
        raise Uncarried(
            f"which cluster the kubeconfig {wanted} leads to, nothing says: give --cluster-name {wanted}=NAME"
        )
    return context.names[name]


def check_namespace(namespace: str) -> str:
    """Return the namespace, if policies may select its objects.

    Raises:
        Uncarried: they may not.
    """
    if is_system_namespace(namespace) and not may_be_allowed(namespace):
        raise Uncarried(f"no policy may select what is in {namespace}; leave it to the tool that makes the cluster")
    return namespace


def spoken_for(spec: Reading) -> None:
    """Say of the fields that both kinds share why they are not taken."""
    for key in _QUIET:
        spec.value(key)
    spec.leave("dependsOn", "the order follows from references and kinds; a Rollout says which clusters come first")
    spec.leave("suspend", "it is not reconciled there now; see docs/how-to/suspend.md")
    spec.leave("serviceAccountName", "there is one identity for each cluster, that of the kubeconfig")
    spec.leave("healthChecks", "health is judged for every object")
    spec.leave("healthCheckExprs", "health is judged as kstatus does; no expression is evaluated")


def with_common_metadata(fields: Mapping[str, Any], spec: Reading) -> dict[str, Any]:
    """Return the fields of a kustomization with `spec.commonMetadata`: of the objects, and not of their pods."""
    common = spec.child("commonMetadata")
    labels, annotations = common.map("labels"), common.map("annotations")
    common.rest()
    found = dict(fields)
    if labels:
        found["labels"] = [{"pairs": labels, "includeSelectors": False}]
    if annotations:
        # commonAnnotations of kustomize are those of pods too.
        patch = {"apiVersion": "any/v1", "kind": "Any", "metadata": {"name": "any", "annotations": annotations}}
        found["patches"] = [*found.get("patches", []), {"target": {"name": ".*"}, "patch": json.dumps(patch)}]
    return found


def reading_of(document: Document, notes: Notes) -> tuple[Reading, str, str]:
    """The spec of a document, and its namespace and name."""
    whole = Reading(document, document.body, (), notes)
    metadata = whole.child("metadata")
    return whole.child("spec"), metadata.text("namespace", "default"), metadata.text("name")
