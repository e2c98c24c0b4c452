"""A pod template inside a body: the common part of kinds that run pods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from reconciler.interpreters.pods.references import CONTAINER_LISTS, as_dependencies, pod_references
from reconciler.interpreters.pods.shape import pod_shape
from reconciler.interpreters.reading import mapping, mappings, namespace_of
from reconciler.model.demand import DependencyRef, PodShape
from reconciler.model.tree import Json, JsonObject, Step, dig, without


class PodTemplate(NamedTuple):
    """The path of the pod template: `("spec", "template")`, or empty for a Pod, which is its own template."""

    path: tuple[str, ...]

    def of(self, body: JsonObject) -> Json:
        """Return the pod template; None without one."""
        return dig(body, *self.path)

    def spec(self, body: JsonObject) -> Json:
        """Return the pod spec; None without one."""
        return dig(body, *self.path, "spec")

    def shape(self, body: JsonObject) -> PodShape:
        """Return the requests of one pod."""
        return pod_shape(self.spec(body))

    def containers(self, body: JsonObject) -> tuple[tuple[Step, ...], ...]:
        """Steps to every container: init containers, containers, ephemeral containers."""
        spec = self.spec(body)
        return tuple(
            (*self.path, "spec", field, index)
            for field in CONTAINER_LISTS
            for index, _ in mappings(dig(spec, field))
        )  # fmt: skip

    def images(self, body: JsonObject) -> tuple[tuple[tuple[Step, ...], str], ...]:
        """Every image of its containers as (steps, reference)."""
        spec = mapping(self.spec(body))
        found: list[tuple[tuple[Step, ...], str]] = []
        for field in CONTAINER_LISTS:
            containers = spec.get(field)
            # By hand: every workload is asked, for each registry that it is pulled from.
            for index, container in enumerate(containers) if isinstance(containers, list) else ():
                image = container.get("image") if isinstance(container, (dict, Mapping)) else None
                if isinstance(image, str) and image:
                    found.append(((*self.path, "spec", field, index, "image"), image))
        return tuple(found)

    def dependencies(self, body: JsonObject) -> tuple[DependencyRef, ...]:
        """Return the references of its pods."""
        return as_dependencies(pod_references(self.spec(body), (*self.path, "spec")), namespace_of(body))

    def prune(self, body: JsonObject) -> JsonObject:
        """The body without the empty creationTimestamp that generated templates carry."""
        metadata = dig(body, *self.path, "metadata")
        if isinstance(metadata, (dict, Mapping)) and "creationTimestamp" in metadata:
            return without(body, (*self.path, "metadata", "creationTimestamp"))
        return body


SPEC_TEMPLATE = PodTemplate(("spec", "template"))
