"""Kinds that a cluster will serve because their definition goes there in the same round.

Source: design#kind-not-served: a cluster that does not serve a kind is no candidate for it, but a kind whose
CustomResourceDefinition is in the same plan waits for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler.model.binding import Binding
from reconciler.model.fleet import Fleet
from reconciler.model.observation import Observations
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import JsonObject, dig


def with_defined_kinds(fleet: Fleet, definitions: Mapping[Identity, Binding], seen: Observations) -> Observations:
    """The observations with the kinds that the bound definitions bring to each cluster."""
    brought: dict[str, set[GVK]] = {}
    for identity, binding in definitions.items():
        kinds = _served_kinds(fleet.templates[identity].body)
        for cluster in binding.clusters:
            brought.setdefault(cluster, set()).update(kinds)
    clusters = {
        name: replace(cluster, apis=cluster.apis | brought[name])
        if name in brought and cluster.apis is not None
        else cluster
        for name, cluster in seen.clusters.items()
    }
    return replace(seen, clusters=clusters)


def _served_kinds(definition: JsonObject) -> set[GVK]:
    group, kind = dig(definition, "spec", "group"), dig(definition, "spec", "names", "kind")
    versions = dig(definition, "spec", "versions")
    if not isinstance(group, str) or not isinstance(kind, str) or not isinstance(versions, list):
        return set()
    served = (entry for entry in versions if isinstance(entry, Mapping) and entry.get("served") is True)
    return {GVK(group, str(entry.get("name")), kind) for entry in served}
