"""The kustomization that replaces the other tool's additions to a folder: one file that a person can maintain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct, field

from reconciler.api.content import JsonObject

FILE: Final = "kustomization.yaml"
_DELETE: Final = '{"apiVersion": "any/v1", "kind": "Any", "metadata": {"name": "any"}, "$patch": "delete"}'


class Overlay(Struct, frozen=True, kw_only=True):
    """Additions to the resources. `fields` are kustomize's own, as they are to be written.

    `without`: removed objects, as kustomize's targets. `kube_version`: the one that charts see that name none.
    `edited`: the folder of the checkout in whose kustomization the other tool writes them.
    """

    fields: Mapping[str, Any] = field(default_factory=dict)
    kube_version: str = ""
    without: tuple[Mapping[str, str], ...] = ()
    edited: str | None = None


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
    return {FILE: (body,)}
