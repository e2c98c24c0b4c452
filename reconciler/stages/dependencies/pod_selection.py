"""Which pods Services and budgets select. Source: Kubernetes."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.interpreters.reading import mapping, mappings, text
from reconciler.model.policy import LabelRequirement, LabelSelector, Operator
from reconciler.model.tree import Json


def selected_by_labels(labels: Mapping[str, str], selector: Json) -> bool:
    """Return whether a Service selects pods with these labels. Without a selector it selects none."""
    wanted = mapping(selector)
    return bool(wanted) and all(labels.get(key) == value for key, value in wanted.items())


def selected_by_selector(labels: Mapping[str, str], selector: Json) -> bool:
    """Return whether a label selector selects pods with these labels: an empty one all, a missing one none."""
    if not isinstance(selector, Mapping):
        return False
    if not selected_by_labels(labels, selector.get("matchLabels")) and mapping(selector.get("matchLabels")):
        return False
    requirements = [_requirement(expression) for _, expression in mappings(selector.get("matchExpressions"))]
    if None in requirements:
        return False
    return LabelSelector(requirements=tuple(r for r in requirements if r is not None)).matches(labels)


def _requirement(expression: Mapping[str, Json]) -> LabelRequirement | None:
    operator, values = text(expression.get("operator")), expression.get("values")
    if operator not in tuple(Operator):
        return None
    given = frozenset(value for value in values if isinstance(value, str)) if isinstance(values, list) else frozenset()
    return LabelRequirement(key=text(expression.get("key")), operator=Operator(operator), values=given)
