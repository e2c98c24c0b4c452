"""Workloads whose replicas an autoscaler of the store decides: an edit of their template does not divide them again.

Source: design#autoscaled-replicas. What the template says counts at creation; afterwards the live numbers are the
autoscalers', and dividing another number would only move them about.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.interpreters.registry import GENERIC, Lookup, interpreter_for
from reconciler.model.fleet import Fleet
from reconciler.model.policy import Companion, PropagationPolicy
from reconciler.model.refs import Identity
from reconciler.stages.dependencies.scale_targets import RETAIN_REPLICAS


class AutoscaledMemo:
    """The autoscalers of the store by what they scale."""

    __slots__ = ("_scalers", "_targets")

    def __init__(self) -> None:
        """Start with none."""
        self._targets: dict[Identity, Identity] = {}
        self._scalers: dict[Identity, set[Identity]] = {}

    def follow(
        self, fleet: Fleet, judged: Iterable[Identity], lookup: Lookup = interpreter_for
    ) -> dict[Identity, None]:
        """Take in templates that came, went or changed, or whose policy did; what their autoscalers scale or scaled."""
        concerned: dict[Identity, None] = {}
        for identity in judged:
            target_of = lookup(*identity[:2]).scale_target
            if target_of is GENERIC.scale_target:
                continue
            template = fleet.templates.get(identity)
            before, after = self._targets.pop(identity, None), target_of(template.body) if template else None
            if before is not None:
                self._scalers[before].discard(identity)
                concerned[before] = None
            if after is not None:
                self._targets[identity] = after
                self._scalers.setdefault(after, set()).add(identity)
                concerned[after] = None
        return concerned

    def has(self, fleet: Fleet, policies: Mapping[Identity, PropagationPolicy], identity: Identity) -> bool:
        """Whether an autoscaler goes where the workload goes, or its members decide about its replicas."""
        if fleet.templates[identity].labels.get(RETAIN_REPLICAS) == "true":
            return True
        scalers = self._scalers.get(identity)
        if not scalers:
            return False
        return Companion.AUTOSCALERS in policies[identity].brings or any(scaler in policies for scaler in scalers)
