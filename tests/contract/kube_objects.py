"""Objects that the contract tests write."""

from __future__ import annotations

from typing import Any

from reconciler.api.refs import GVK

CONFIG_MAP = GVK("", "v1", "ConfigMap")
SECRET = GVK("", "v1", "Secret")
NAMESPACE = GVK("", "v1", "Namespace")
DEPLOYMENT = GVK("apps", "v1", "Deployment")
WIDGET = GVK("contract.example", "v1", "Widget")
MANAGER = "fleet-reconciler/contract"
OTHER_UID = "11111111-1111-1111-1111-111111111111"


def config_map(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def secret(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "data": data}


def deployment(name: str, replicas: int = 1, cpu: str = "100m") -> dict[str, Any]:
    labels = {"app": name}
    container = {"name": "app", "image": "nginx:1", "resources": {"requests": {"cpu": cpu, "memory": "64Mi"}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def widget(name: str, size: int = 1) -> dict[str, Any]:
    return {"apiVersion": "contract.example/v1", "kind": "Widget", "metadata": {"name": name}, "spec": {"size": size}}


WIDGET_DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.contract.example"},
    "spec": {
        "group": "contract.example",
        "scope": "Namespaced",
        "names": {
            "plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetCollectionList",
            "shortNames": ["wd"],
        },
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {"type": "object", "properties": {"size": {"type": "integer", "minimum": 0}}}
                        },
                    }
                },
                "additionalPrinterColumns": [{"name": "Size", "type": "integer", "jsonPath": ".spec.size"}],
            }
        ],
    },
}  # fmt: skip
