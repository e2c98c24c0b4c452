"""Label and field selectors, as strings of a query and as LabelSelector objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from reconciler.sim.objects.status import Body, Json, bad_request

Labels = Mapping[str, str]
Matches = Callable[[Labels], bool]

_IN = re.compile(r"^(\S+)\s+(in|notin)\s*\(([^()]*)\)$")
_EQUALS = re.compile(r"^([^\s=!<>]+)\s*(==|=|!=)\s*([^\s=!]*)$")
_ORDER = re.compile(r"^([^\s=!<>]+)\s*([<>])\s*(-?\d+)$")
_EXISTS = re.compile(r"^(!?)\s*([A-Za-z0-9][-A-Za-z0-9_./]*)$")
_COMMA = re.compile(r",(?![^(]*\))")


def labels_match(selector: str) -> Matches:
    """The predicate of a `labelSelector` query. Raises Refused (400) when it cannot be parsed."""
    tests = [_requirement(part.strip()) for part in _COMMA.split(selector) if part.strip()]
    return lambda labels: all(test(labels) for test in tests)


def _requirement(text: str) -> Matches:
    if match := _IN.match(text):
        key, operator, values = match[1], match[2], {value.strip() for value in match[3].split(",")}
        if operator == "in":
            return lambda labels: labels.get(key) in values
        return lambda labels: labels.get(key) not in values
    if match := _EQUALS.match(text):
        key, operator, value = match[1], match[2], match[3]
        if operator == "!=":
            return lambda labels: labels.get(key) != value
        return lambda labels: labels.get(key) == value
    if match := _ORDER.match(text):
        key, above, bound = match[1], match[2] == ">", int(match[3])
        return lambda labels: key in labels and (int(labels[key]) > bound if above else int(labels[key]) < bound)
    if match := _EXISTS.match(text):
        absent, key = bool(match[1]), match[2]
        return lambda labels: (key in labels) != absent
    raise bad_request(f"unable to parse requirement: {text!r} is no label requirement")


def object_matches(selector: Body | None, labels: Labels) -> bool:
    """Return whether a LabelSelector matches. None selects nothing, an empty one everything."""
    if selector is None:
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(expression_matches(e, labels) for e in selector.get("matchExpressions") or ())


def expression_matches(expression: Body, labels: Labels) -> bool:
    """Return whether one matchExpressions entry (of a LabelSelector or a node selector) holds."""
    key, operator = expression["key"], expression["operator"]
    values = expression.get("values") or []
    value = labels.get(key)
    match operator:
        case "In":
            return value in values
        case "NotIn":
            return value not in values
        case "Exists":
            return key in labels
        case "DoesNotExist":
            return key not in labels
        case "Gt" | "Lt":
            if value is None or not value.lstrip("-").isdigit():
                return False
            return int(value) > int(values[0]) if operator == "Gt" else int(value) < int(values[0])
    return False


def selector_text(selector: Body | None) -> str:
    """A LabelSelector as `kubectl get` prints it."""
    if not selector:
        return "<none>"
    parts = [f"{key}={value}" for key, value in sorted((selector.get("matchLabels") or {}).items())]
    words = {"In": "in", "NotIn": "notin"}
    for expression in selector.get("matchExpressions") or ():
        key, operator = expression["key"], expression["operator"]
        if operator in words:
            parts.append(f"{key} {words[operator]} ({','.join(sorted(expression['values']))})")
        else:
            parts.append(key if operator == "Exists" else f"!{key}")
    return ",".join(parts) or "<none>"


_FIELDS: dict[str, tuple[str, ...]] = {
    "Pod": ("spec.nodeName", "status.phase", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
            "status.podIP"),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase",),
    "Secret": ("type",),
    "Job": ("status.successful",),
    "Event": ("involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
              "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason",
              "reportingComponent", "source", "type"),
}  # fmt: skip


def fields_match(selector: str, kind: str) -> Callable[[Body], bool]:
    """The predicate of a `fieldSelector` query. Raises Refused (400) for a field that is not indexed."""
    allowed = ("metadata.name", "metadata.namespace", *_FIELDS.get(kind, ()))
    tests: list[tuple[tuple[str, ...], bool, str]] = []
    for part in filter(None, selector.split(",")):
        match = _EQUALS.match(part.strip())
        if match is None:
            raise bad_request(f"invalid selector: {part!r}; can't understand {part!r}")
        if match[1] not in allowed:
            known = ", ".join(f'"{name}"' for name in allowed)
            raise bad_request(f'"{match[1]}" is not a known field selector: only {known}')
        tests.append((tuple(match[1].split(".")), match[2] != "!=", match[3]))
    return lambda body: all((_field(body, steps) == value) == wanted for steps, wanted, value in tests)


def _field(body: Body, steps: tuple[str, ...]) -> str:
    value: Json = body
    for step in steps:
        value = value.get(step) if isinstance(value, dict) else None
    if steps[-1] == "unschedulable":
        return "true" if value else "false"
    return "" if value is None else str(value)
