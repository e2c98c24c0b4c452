"""Which replicas an autoscaler of the store decides, and in which clusters.

Source: design#autoscaled-replicas; Karmada: the label that keeps a member's replicas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final

from reconciler.interpreters.registry import GENERIC, Lookup, interpreter_for
from reconciler.model.binding import Binding
from reconciler.model.fleet import Fleet, Template
from reconciler.model.refs import Identity

RETAIN_REPLICAS: Final = "resourcetemplate.karmada.io/retain-replicas"
"""Template label: the members decide about its replicas, whatever does it there."""


class ScaleMemo:
    """The autoscalers of the last call, each with the objects whose replicas are not ours to set for its sake."""

    def __init__(self) -> None:
        """Start with none."""
        self.targets: dict[Identity, tuple[Identity, ...]] = {}
        self.result: Mapping[Identity, frozenset[str]] = {}


def scale_targets(
    fleet: Fleet,
    bindings: Mapping[Identity, Binding],
    lookup: Lookup = interpreter_for,
    memo: ScaleMemo | None = None,
    dirty: Iterable[Identity] | None = None,
) -> Mapping[Identity, frozenset[str]]:
    """For each target of an autoscaler, the clusters to which that autoscaler goes.

    With a `memo`, only `dirty` templates and bindings are looked at again.
    """
    memo = memo or ScaleMemo()
    is_changed = False
    for identity in bindings if dirty is None else dirty:
        template = fleet.templates.get(identity) if identity in bindings else None
        targets = _targets(template, lookup) if template is not None else ()
        if targets:
            memo.targets[identity] = targets
            is_changed = True
        elif memo.targets and identity in memo.targets:
            del memo.targets[identity]
            is_changed = True
    if is_changed:
        clusters: dict[Identity, set[str]] = defaultdict(set)
        for identity, targets in memo.targets.items():
            for target in targets:
                clusters[target].update(bindings[identity].clusters)
        memo.result = {identity: frozenset(clusters[identity]) for identity in sorted(clusters)}
    return memo.result


def _targets(template: Template, lookup: Lookup) -> tuple[Identity, ...]:
    """The object that it scales, and itself when members decide about its replicas."""
    target_of = lookup(*template.identity[:2]).scale_target
    # Few kinds scale others, and only their bodies need be looked at.
    target = None if target_of is GENERIC.scale_target else target_of(template.body)
    found = () if target is None else (target,)
    return (*found, template.identity) if template.labels.get(RETAIN_REPLICAS) == "true" else found
