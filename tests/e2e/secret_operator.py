"""A stand-in for the External Secrets Operator: it makes the Secrets of ExternalSecrets and says so in their status.

As the real one does, it copies labels and annotations of the ExternalSecret to the Secret, marks of ours included.
"""

from __future__ import annotations

import json
from typing import Any

from tests.real_clusters import RealCluster

GROUP = "external-secrets.io"


def definition(kind: str) -> dict[str, Any]:
    """The CustomResourceDefinition of a kind of the operator, with any fields."""
    name = kind.lower()
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": anything, "status": anything}}}
    version = {"name": "v1", "served": True, "storage": True, "subresources": {"status": {}}, "schema": schema}
    names = {"kind": kind, "plural": f"{name}s", "singular": name}
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{name}s.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }  # fmt: skip


def install(cluster: RealCluster) -> None:
    """Have a cluster serve ExternalSecrets and SecretStores."""
    kinds = [definition(kind) for kind in ("ExternalSecret", "SecretStore")]
    cluster.apply(*kinds)
    for kind in kinds:
        cluster.kubectl("wait", "--for=condition=Established", f"crd/{kind['metadata']['name']}")


def reconcile(cluster: RealCluster, namespace: str) -> None:
    """Make what is missing, and say how far each ExternalSecret came."""
    for wish in cluster.get(f"externalsecrets.{GROUP}", "-n", namespace)["items"]:
        metadata = wish["metadata"]
        owner = {"apiVersion": wish["apiVersion"], "kind": wish["kind"], "name": metadata["name"],
                 "uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True}  # fmt: skip
        copied = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
        made = {"name": wish["spec"]["target"]["name"], "namespace": namespace, "ownerReferences": [owner], **copied}
        cluster.apply(
            {"apiVersion": "v1", "kind": "Secret", "metadata": made, "stringData": {"password": "from-elsewhere"}},
            manager="external-secrets",
        )
        ready = {"type": "Ready", "status": "True", "reason": "SecretSynced"}
        status = {"conditions": [ready], "syncedResourceVersion": f"{metadata['generation']}-abc"}
        cluster.kubectl("patch", f"externalsecret.{GROUP}", metadata["name"], "-n", namespace,
                        "--subresource=status", "--type=merge", "-p", json.dumps({"status": status}))  # fmt: skip
