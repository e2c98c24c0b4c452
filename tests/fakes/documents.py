"""Documents of a store that follows the life of one small application."""

from __future__ import annotations

from typing import Any

ACK = "policy.one.alibabacloud.com/v1alpha1"


def config_map(name: str, **data: str) -> dict[str, Any]:
    """A ConfigMap in `demo`."""
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "demo"}, "data": data}


def secret(name: str, **data: str) -> dict[str, Any]:
    """A Secret in `demo`."""
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name, "namespace": "demo"}, "stringData": data}


def web(image: str, replicas: int, settings: str = "settings") -> dict[str, Any]:
    """The Deployment `web`, which takes its environment from the ConfigMap `settings`."""
    labels = {"app": "web"}
    container = {"name": "main", "image": image, "envFrom": [{"configMapRef": {"name": settings}}]}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "demo"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    }  # fmt: skip


def policy(name: str, kind: str, *clusters: str, keep: bool = False, **spec: Any) -> dict[str, Any]:
    """A PropagationPolicy for the one object of its kind and name (`of`: another name) in those clusters."""
    selector = {"apiVersion": "apps/v1" if kind == "Deployment" else "v1", "kind": kind, "name": spec.pop("of", name)}
    placement = {"clusterAffinity": {"clusterNames": list(clusters)}, **spec.pop("placement", {})}
    return {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": {"name": name, "namespace": "demo"},
            "spec": {"resourceSelectors": [selector], "placement": placement,
                     "preserveResourcesOnDeletion": keep, **spec}}  # fmt: skip


def divided(*clusters: str) -> dict[str, Any]:
    """The part of a placement that divides replicas evenly."""
    weights = [{"targetCluster": {"clusterNames": [name]}, "weight": 1} for name in clusters]
    return {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                                  "weightPreference": {"staticWeightList": weights}}}  # fmt: skip
