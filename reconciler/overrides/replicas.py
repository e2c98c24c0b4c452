"""The effect of overrides on assigned replicas: capacity counts the rendered replicas, not the assigned ones.

Source: design#overridden-replicas: bindings keep the assigned count, capacity uses the rendered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.api.fleet import Fleet
from reconciler.api.policies import OverridePolicy
from reconciler.api.refs import Identity
from reconciler.documents import pointer_tokens
from reconciler.kinds.body_fields import REPLICAS
from reconciler.kinds.jobs import PARALLELISM
from reconciler.kinds.registry import Registry
from reconciler.overrides.apply_rules import apply_rules
from reconciler.overrides.select import OverrideIndex

Rendered = Callable[[str, int], int]
"""(cluster, assigned replicas) to the replicas that are sent there."""


def of_replicas(overrides: Iterable[OverridePolicy]) -> tuple[OverridePolicy, ...]:
    """The override policies that may set replicas."""
    return tuple(policy for policy in overrides if any(map(_sets_replicas, _paths(policy))))


class ReplicaOverrides:
    """The override policies of a fleet that may set replicas, ready to be applied."""

    def __init__(self, fleet: Fleet, interpreters: Registry) -> None:
        """Choose them; most fleets have none."""
        self._fleet, self._interpreters = fleet, interpreters
        policies = of_replicas(fleet.overrides)
        self._index = OverrideIndex(policies, fleet.clusters) if policies else None

    def of(self, identity: Identity) -> Rendered | None:
        """Return the rendering of a workload's replicas; None: as assigned."""
        if self._index is None:
            return None
        index, template = self._index, self._fleet.templates[identity]
        rules = index.rules_of(template)
        if not rules:
            return None
        interpreter = self._interpreters.of(*identity[:2])

        def rendered(cluster: str, assigned: int) -> int:
            chosen = index.rules_on(rules, cluster)
            if not chosen:
                return assigned
            applied = apply_rules(interpreter.with_replicas(template.body, assigned), identity, chosen, interpreter)
            found = interpreter.demand(applied.body).replicas if applied.body is not None else None
            return assigned if found is None else found

        return rendered


def _paths(policy: OverridePolicy) -> Iterable[str]:
    return (operation.path for rule in policy.rules for operation in rule.overriders.plaintext)


def _sets_replicas(path: str) -> bool:
    tokens = pointer_tokens(path)
    return tokens is not None and any(tokens == place[: len(tokens)] for place in (REPLICAS, PARALLELISM))
