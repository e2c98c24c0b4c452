"""A kind that clusters define themselves, in two versions."""

from __future__ import annotations

from typing import Any, Final

WIDGETS: Final = ("example.com", "widgets")
"""(group, plural)."""
DEFINITION: Final = "widgets.example.com"


def definition(scope: str = "Namespaced", *versions: str) -> dict[str, Any]:
    """The CustomResourceDefinition of Widgets; of v1 and v2 it serves these, or v1."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    served = [
        {"name": name, "served": name in (versions or ("v1",)), "storage": name == "v1", "schema": schema}
        for name in ("v1", "v2")
    ]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": DEFINITION},
        "spec": {
            "group": "example.com",
            "scope": scope,
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
            "versions": served,
        },
    }


def widget(name: str, value: str, version: str = "v1") -> dict[str, Any]:
    """A Widget in `demo`."""
    return {"apiVersion": f"example.com/{version}", "kind": "Widget",
            "metadata": {"name": name, "namespace": "demo"}, "spec": {"value": value}}  # fmt: skip
