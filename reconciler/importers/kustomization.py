"""The kustomization that replaces the other tool's additions to a folder: one file that a person can maintain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from reconciler.api.content import JsonObject

FILE: Final = "kustomization.yaml"
NAMESPACE_FILE: Final = "namespace.yaml"
_DELETE: Final = '{"apiVersion": "any/v1", "kind": "Any", "metadata": {"name": "any"}, "$patch": "delete"}'


class Overlay(Struct, frozen=True, kw_only=True):
    """Additions to the resources. `fields` are kustomize's own, as they are to be written.

    `default_namespace`: for namespaced objects without one. `without`: removed objects, as kustomize's targets.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    default_namespace: str = ""
    without: tuple[Mapping[str, str], ...] = ()


def overlay_of(
    overlay: Overlay, resources: tuple[str, ...], components: tuple[str, ...] = ()
) -> dict[str, tuple[JsonObject, ...]]:
    """The files of a folder that builds the resources and puts the overlay around them."""
    body: dict[str, Any] = {
        "apiVersion": "kustomize.config.k8s.io/v1beta1",
        "kind": "Kustomization",
        "resources": list(resources),
        **overlay.fields,
    }
    if components:
        body["components"] = list(components)
    removals = [{"target": dict(target), "patch": _DELETE} for target in overlay.without]
    if removals:
        body["patches"] = [*removals, *body.get("patches", [])]
    if not overlay.default_namespace or "namespace" in overlay.fields:
        return {FILE: (body,)}
    # `namespace` would also move objects with a namespace of their own.
    body["transformers"] = [NAMESPACE_FILE]
    transformer = {
        "apiVersion": "builtin",
        "kind": "NamespaceTransformer",
        "metadata": {"name": "namespace", "namespace": overlay.default_namespace},
        "unsetOnly": True,
    }
    return {FILE: (body,), NAMESPACE_FILE: (transformer,)}
