"""Workloads that an autoscaler of the store scales, and the clusters of that.

Source: design#autoscaled-replicas; Karmada: the label that keeps a member's replicas. The template's number counts at
creation; afterwards the live numbers are the autoscalers', so an edit of a template does not divide them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from reconciler.interpreters.registry import Registry
from reconciler.model.binding import Binding
from reconciler.model.fleet import Fleet, Template
from reconciler.model.policy import Companion, PropagationPolicy
from reconciler.model.refs import Identity
from reconciler.stages.incremental import Dependents, Table
from reconciler.stages.templates import scale_target_of

_RETAIN_REPLICAS: Final = "resourcetemplate.karmada.io/retain-replicas"
"""Template label: the members decide about its replicas, whatever does it there."""


class Autoscaling:
    """The scale targets of the store's templates.

    `yielded`: for each target of a bound autoscaler, the clusters of that autoscaler.
    """

    __slots__ = ("_dirty", "_scalers", "yielded")

    def __init__(self) -> None:
        """Start with no template."""
        self._scalers = Dependents[Identity, Identity]()
        self._dirty: set[Identity] = set()
        self.yielded = Table[Identity, frozenset[str]]()

    def follow(self, fleet: Fleet, dirty: Iterable[Identity], interpreters: Registry) -> set[Identity]:
        """Update changed templates, and those with a changed policy; return their old and new scale targets."""
        dirty = tuple(dirty)
        before = self._scalers.on(dirty)
        templates, kinds = fleet.templates, interpreters.kinds_with("scale_target")
        for identity in dirty:
            template = templates.get(identity)
            # Few kinds scale others, and few templates carry the label.
            if template is not None and (identity[:2] in kinds or template.labels.get(_RETAIN_REPLICAS) == "true"):
                self._scalers.put(identity, _targets(template, interpreters))
            else:
                self._scalers.drop(identity)
        self._dirty = before | self._scalers.on(dirty)
        return self._dirty

    def has(self, policies: Mapping[Identity, PropagationPolicy], identity: Identity) -> bool:
        """Return whether an autoscaler is placed with a workload, or its members control its replicas."""
        scalers = self._scalers.of((identity,))
        if not scalers:
            return False
        return Companion.AUTOSCALERS in policies[identity].brings or any(scaler in policies for scaler in scalers)

    def yield_to(self, bindings: Mapping[Identity, Binding], dirty: Iterable[Identity]) -> None:
        """Compute `yielded` again. `dirty`: changed bindings."""

        def clusters_of(target: Identity) -> frozenset[str] | None:
            bound = [bindings[scaler].clusters for scaler in self._scalers.of((target,)) if scaler in bindings]
            return frozenset().union(*bound) if bound else None

        self.yielded.update(self._dirty | self._scalers.on(dirty), clusters_of)


def _targets(template: Template, interpreters: Registry) -> tuple[Identity, ...]:
    """The object that it scales, and itself when members decide about its replicas."""
    target = scale_target_of(template, interpreters)
    found = () if target is None else (target,)
    return (*found, template.identity) if template.labels.get(_RETAIN_REPLICAS) == "true" else found
