"""ClusterProfiles for tests: the definition as the documented types have it, and objects of it.

Source: KEP-4322 and KEP-5339, the types of v1alpha1 and v1alpha2.
"""

from __future__ import annotations

from typing import Any

API_VERSION = "multicluster.x-k8s.io/v1alpha1"

_TEXT = {"type": "string"}
_NAMED_CLUSTER = {
    "type": "object",
    "required": ["name"],
    "properties": {
        "name": _TEXT,
        "cluster": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    },
}
_STATUS = {
    "type": "object",
    "properties": {
        "conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        "version": {"type": "object", "properties": {"kubernetes": _TEXT}},
        "properties": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["name", "value"],
                "properties": {"name": _TEXT, "value": _TEXT, "lastObservedTime": _TEXT},
            },
        },
        "accessProviders": {"type": "array", "items": _NAMED_CLUSTER},
        "credentialProviders": {"type": "array", "items": _NAMED_CLUSTER},
    },
}
_SPEC = {
    "type": "object",
    "required": ["clusterManager"],
    "properties": {
        "displayName": _TEXT,
        "clusterManager": {"type": "object", "required": ["name"], "properties": {"name": _TEXT}},
    },
}
DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "clusterprofiles.multicluster.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/issues/4322"},
    },
    "spec": {
        "group": "multicluster.x-k8s.io",
        "scope": "Namespaced",
        "names": {
            "kind": "ClusterProfile",
            "listKind": "ClusterProfileList",
            "plural": "clusterprofiles",
            "singular": "clusterprofile",
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "required": ["spec"],
                        "properties": {"spec": _SPEC, "status": _STATUS},
                    }
                },
            }
        ],
    },
}
"""Without the status subresource, so that a test writes an object in one step."""


def profile(name: str, namespace: str = "fleet", **parts: Any) -> dict[str, Any]:
    """A ClusterProfile; `labels`, `spec` and `status` as given."""
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterProfile",
        "metadata": {"name": name, "namespace": namespace, "labels": parts.get("labels", {})},
        "spec": parts.get("spec", {"displayName": name.upper(), "clusterManager": {"name": "ocm"}}),
        "status": parts.get("status", {}),
    }
