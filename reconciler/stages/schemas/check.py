"""Violations of a kind's schema: fields that do not exist and values of a wrong type.

Source: server-side apply ("field not declared in schema"; values of the types of the OpenAPI document), as `kubectl
--validate=strict` reports as well. Null stands for an absent field everywhere. Missing and out-of-range values are left
to the API server.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from reconciler.model.override import OverrideOperator, PatchOperation
from reconciler.model.tree import Json, JsonObject
from reconciler.model.tree import Step as PathStep
from reconciler.stages.documents import type_name
from reconciler.stages.patches import pointer_tokens
from reconciler.stages.schemas.schema import Node, Shape

NOT_JUDGED: Final = frozenset({"status"})
"""Fields at the top that are never sent."""


class SchemaFault(NamedTuple):
    """The place of a misfit, as steps, with a problem code and a message."""

    steps: tuple[PathStep, ...]
    code: str
    message: str


def body_faults(root: Node, body: JsonObject) -> list[SchemaFault]:
    """Everything in an object that its schema does not allow, in the order of the body; values are not repeated."""
    if all(_fits_field(root, name, value) for name, value in body.items()):
        return []  # Nearly every object.
    return [
        fault
        for name, value in body.items()
        if name not in NOT_JUDGED
        for fault in _field_faults(root, name, value, ())
    ]


def may_not_fit(root: Node, operation: PatchOperation) -> bool:
    """Return whether a patch operation could make an object violate its schema."""
    if operation.operator is OverrideOperator.REMOVE:
        return False
    node = root
    for token in pointer_tokens(operation.path) or ():
        if node.shape in (Shape.ANY, Shape.SCALAR):
            return node.shape is Shape.SCALAR
        below = node.item if node.shape is Shape.LIST else node.child(token)
        if below is None:
            return True
        node = below
    return not _fits(node, operation.value)


def _fits_field(root: Node, name: str, value: Json) -> bool:
    node = root.child(name)
    return name in NOT_JUDGED or (node is not None and _fits(node, value))


def _fits(node: Node, value: Json) -> bool:
    """Return whether a value fits, without its path: this runs on everything in a store."""
    if value.__class__ in node.accepts or value is None or node.shape is Shape.ANY:
        return True
    if isinstance(value, dict):
        if node.shape is not Shape.OBJECT:
            return False
        fields, item = node.fields, node.item
        for name, below in value.items():
            child = fields.get(name, item)
            if child is None or not (below.__class__ in child.accepts or _fits(child, below)):
                return False
        return True
    if isinstance(value, list):
        item = node.item
        if node.shape is not Shape.LIST or item is None:
            return False
        return all(below.__class__ in item.accepts or _fits(item, below) for below in value)
    if isinstance(value, Mapping):
        return _fits(node, dict(value))
    return isinstance(value, float) and int in node.accepts and value.is_integer()


def _faults(node: Node, value: Json, steps: tuple[PathStep, ...]) -> Iterator[SchemaFault]:
    if _fits(node, value):
        return
    if isinstance(value, Mapping) and node.shape is Shape.OBJECT:
        for name, below in value.items():
            yield from _field_faults(node, name, below, steps)
    elif isinstance(value, list) and node.shape is Shape.LIST and node.item is not None:
        for index, below in enumerate(value):
            yield from _faults(node.item, below, (*steps, index))
    else:
        yield SchemaFault(steps, "wrong-type", _wrong_type(node, value))


def _field_faults(node: Node, name: str, value: Json, steps: tuple[PathStep, ...]) -> Iterator[SchemaFault]:
    child = node.child(name)
    if child is None:
        yield SchemaFault((*steps, name), "unknown-field", _unknown(node, name))
    else:
        yield from _faults(child, value, (*steps, name))


def _wrong_type(node: Node, value: Json) -> str:
    wanted = _wanted(node)
    is_text = str in node.accepts and int not in node.accepts
    tip = "; quote it" if is_text and isinstance(value, bool | int | float) else ""
    if isinstance(value, str) and str not in node.accepts and node.shape is Shape.SCALAR:
        tip = "; take the quotes away"
    return f"{type_name(value)} where {wanted} is needed{tip}"


def _wanted(node: Node) -> str:
    if node.shape is not Shape.SCALAR:
        return {Shape.OBJECT: "a mapping", Shape.LIST: "a list"}.get(node.shape, "a value")
    if node.accepts == {bool}:
        return "a boolean"
    if node.accepts == {int}:
        return "an integer"
    if node.accepts == {int, float}:
        return "a number"
    return "a string" if int not in node.accepts else "a string or a number"


def _unknown(node: Node, name: str) -> str:
    by_lower = {field.lower(): field for field in node.fields}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    if close:
        return f"unknown field {name}; did you mean {by_lower[close[0]]}?"
    return f"unknown field {name}; there is none of that name here: check the spelling and the indentation"
