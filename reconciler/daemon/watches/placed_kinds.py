"""Which kinds are placed in which cluster, kept up from one decision to the next."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from reconciler.engine import Decision
from reconciler.model.binding import Binding, TargetCluster
from reconciler.model.fleet import Template
from reconciler.model.refs import GVK, Identity
from reconciler.stages.incremental import changed_keys

_Placed = tuple[GVK, tuple[TargetCluster, ...]]


class PlacedKinds:
    """Counts the objects of each kind in each cluster; only what is decided otherwise is counted again."""

    def __init__(self) -> None:
        """Nothing is placed."""
        self._bindings: Mapping[Identity, Binding] = {}
        self._templates: Mapping[Identity, Template] = {}
        self._placed: dict[Identity, _Placed] = {}
        self._counts: dict[str, Counter[GVK]] = {}

    def follow(self, decision: Decision) -> None:
        """Take over where everything goes now."""
        bindings, templates = decision.bindings, decision.fleet.templates
        changed = changed_keys(self._bindings, bindings) | changed_keys(self._templates, templates)
        self._bindings, self._templates = bindings, templates
        for identity in changed:
            before = self._placed.pop(identity, None)
            if before is not None:
                self._count(before, -1)
            binding, template = bindings.get(identity), templates.get(identity)
            if binding is not None and binding.targets:
                # What is placed without a template is a Namespace that follows what lives in it.
                gvk = template.gvk if template is not None else GVK(identity.group, "v1", identity.kind)
                placed = self._placed[identity] = (gvk, binding.targets)
                self._count(placed, 1)

    def of(self, cluster: str) -> frozenset[GVK]:
        """The kinds of what is placed in a cluster."""
        return frozenset(self._counts.get(cluster, ()))

    @property
    def everywhere(self) -> frozenset[GVK]:
        """The kinds of what is placed in any cluster."""
        return frozenset().union(*self._counts.values())

    def _count(self, placed: _Placed, number: int) -> None:
        gvk, targets = placed
        for cluster, _ in targets:
            counts = self._counts.setdefault(cluster, Counter())
            counts[gvk] += number
            if not counts[gvk]:
                del counts[gvk]
