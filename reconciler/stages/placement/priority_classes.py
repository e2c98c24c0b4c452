"""Values of the priority classes that policies name: the order of taking free capacity.

Source: Karmada: schedulePriority with priorityClassSource KubePriorityClass; here the store holds the classes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from reconciler.model.fleet import Fleet
from reconciler.model.problem import Problem, Severity
from reconciler.model.refs import Identity
from reconciler.model.tree import dig

BUILT_IN: Final[Mapping[str, int]] = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Those that every cluster has. Source: Kubernetes."""


def priority_classes(fleet: Fleet) -> tuple[dict[str, int], list[Problem]]:
    """The value of each class that a policy names, and a warning for each policy whose class is not known."""
    values: dict[str, int] = {}
    problems: list[Problem] = []
    for policy in fleet.propagation:
        name = policy.priority_class
        if not name or name in values:
            continue
        template = fleet.templates.get(Identity("scheduling.k8s.io", "PriorityClass", "", name))
        value = dig(template.body, "value") if template else BUILT_IN.get(name)
        if isinstance(value, int) and not isinstance(value, bool):
            values[name] = value
        elif fleet.is_complete:
            message = (
                f"the store has no PriorityClass {name}, so what {policy.ref} selects is placed with priority 0; "
                "add it, or take schedulePriority out"
            )
            path, code = "spec.schedulePriority.priorityClassName", "priority-class-unknown"
            problems.append(
                Problem(source=policy.source, path=path, code=code, message=message, severity=Severity.WARNING)
            )
    return values, problems
