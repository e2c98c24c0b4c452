"""Which replicas an autoscaler of the store decides, and in which clusters.

Source: design, row "spec.replicas under an HPA / KEDA target"; Karmada: the label that keeps a member's replicas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from reconciler.interpreters.registry import Lookup, interpreter_for
from reconciler.model.binding import Binding
from reconciler.model.fleet import Fleet
from reconciler.model.refs import Identity

RETAIN_REPLICAS: Final = "resourcetemplate.karmada.io/retain-replicas"
"""Template label: the members decide about its replicas, whatever does it there."""


def scale_targets(
    fleet: Fleet, bindings: Mapping[Identity, Binding], lookup: Lookup = interpreter_for
) -> dict[Identity, frozenset[str]]:
    """For each target of an autoscaler, the clusters to which that autoscaler goes."""
    clusters: dict[Identity, set[str]] = defaultdict(set)
    for identity, binding in bindings.items():
        template = fleet.templates.get(identity)
        if template is None:
            continue
        target = lookup(*identity[:2]).scale_target(template.body)
        if target is not None:
            clusters[target].update(binding.clusters)
        if template.labels.get(RETAIN_REPLICAS) == "true":
            clusters[identity].update(binding.clusters)
    return {identity: frozenset(names) for identity, names in clusters.items()}
