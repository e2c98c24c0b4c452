"""Violations of a kind's schema: fields that do not exist and values of a wrong type.

Source: server-side apply ("field not declared in schema"; values of the types of the OpenAPI document), as `kubectl
--validate=strict` reports as well. Null stands for an absent field everywhere. Missing and out-of-range values are
those of the table of `templates`.

Built-in kinds also become msgspec types, which check a body seven times sooner and say yes or no.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import chain
from typing import Any, Final, NamedTuple

import msgspec

from reconciler.api.content import Json, JsonObject
from reconciler.api.content import Step as PathStep
from reconciler.api.policies import OverrideOperator, PatchOperation
from reconciler.api.refs import GVK
from reconciler.decoding import prepared
from reconciler.documents.field_reader import is_number, type_name
from reconciler.documents.json_patch import pointer_tokens
from reconciler.documents.schema import NodeForm, SchemaNode, builtin_schema, key_names

NOT_JUDGED: Final = frozenset({"status"})
"""Fields at the top that are never sent."""


class SchemaFault(NamedTuple):
    """The place of a misfit, as steps, with a problem code and a message."""

    steps: tuple[PathStep, ...]
    code: str
    message: str


def body_faults(root: SchemaNode, body: JsonObject) -> list[SchemaFault]:
    """Everything in an object that its schema does not allow, in the order of the body; values are not repeated."""
    judged = [(name, value) for name, value in body.items() if name not in NOT_JUDGED]
    return [fault for name, value in judged for fault in _field_faults(root, name, value, ())]


def repeated_entries(root: SchemaNode, body: JsonObject) -> list[SchemaFault]:
    """Entries of lists with a key, or of sets, that are there twice: server-side apply refuses the object for them."""
    return list(_repeated(root, {name: value for name, value in body.items() if name not in NOT_JUDGED}, ()))


def _repeated(node: SchemaNode, value: Json, steps: tuple[PathStep, ...]) -> Iterator[SchemaFault]:
    if value.__class__ is dict:
        for name, below in value.items():
            if below.__class__ in (dict, list) and (child := node.child(name)) is not None and _has_keys(child):
                yield from _repeated(child, below, (*steps, name))
    elif value.__class__ is list and node.item is not None:
        if len(value) > 1 and (node.keys or node.is_set):
            yield from _repeats_in(node, value, steps)
        for index, item in enumerate(value if _has_keys(node.item) else ()):
            yield from _repeated(node.item, item, (*steps, index))


def _repeats_in(node: SchemaNode, items: list[Json], steps: tuple[PathStep, ...]) -> Iterator[SchemaFault]:
    names, defaults = key_names(node)
    earlier: set[tuple[Json, ...]] = set()
    for index, item in enumerate(items):
        values: tuple[Json, ...] = (item,)
        if names:
            values = tuple(map(item.get, names, defaults)) if isinstance(item, dict) else (None,)
        if not all(isinstance(value, str | int | float) for value in values):
            continue  # A key is missing, or of a wrong type.
        if values in earlier:
            named = ", ".join(f"{name} {str(value)[:80]}" for name, value in zip(names, values, strict=False))
            message = f"another entry has this {named or 'value'}; server-side apply refuses that: keep one of them"
            yield SchemaFault((*steps, index), "duplicate-entry", message)
        earlier.add(values)


@cache
def _has_keys(node: SchemaNode) -> bool:
    """Return whether a list with a key, or a set, can be at a place or below it."""
    return _is_above_keys(node, frozenset())


def _is_above_keys(node: SchemaNode, above: frozenset[int]) -> bool:
    if node.keys or node.is_set:
        return True
    if node.is_atomic or id(node) in above:
        return False
    below = chain(node.fields.values(), filter(None, (node.item,)))
    return any(_is_above_keys(child, above | {id(node)}) for child in below)


def may_not_fit(root: SchemaNode, operation: PatchOperation) -> bool:
    """Return whether a patch operation could make an object violate its schema."""
    if operation.operator is OverrideOperator.REMOVE:
        return False
    node = root
    for token in pointer_tokens(operation.path) or ():
        if node.shape in (NodeForm.ANY, NodeForm.SCALAR):
            return node.shape is NodeForm.SCALAR
        below = node.item if node.shape is NodeForm.LIST else node.child(token)
        if below is None:
            return True
        node = below
    return not _fits(node, operation.value)


def _fits(node: SchemaNode, value: Json) -> bool:
    """Return whether a value fits, without its path: this runs on everything in a store."""
    if value.__class__ in node.accepts or value is None or node.shape is NodeForm.ANY:
        return True
    if isinstance(value, dict):
        if node.shape is not NodeForm.OBJECT:
            return False
        fields, item = node.fields, node.item
        for name, below in value.items():
            child = fields.get(name, item)
            if child is None or not (below.__class__ in child.accepts or _fits(child, below)):
                return False
        return True
    if isinstance(value, list):
        item = node.item
        if node.shape is not NodeForm.LIST or item is None:
            return False
        return all(below.__class__ in item.accepts or _fits(item, below) for below in value)
    if isinstance(value, Mapping):
        return _fits(node, dict(value))
    return isinstance(value, float) and int in node.accepts and value.is_integer()


def _faults(node: SchemaNode, value: Json, steps: tuple[PathStep, ...]) -> Iterator[SchemaFault]:
    if _fits(node, value):
        return
    if isinstance(value, Mapping) and node.shape is NodeForm.OBJECT:
        for name, below in value.items():
            yield from _field_faults(node, name, below, steps)
    elif isinstance(value, list) and node.shape is NodeForm.LIST and node.item is not None:
        for index, below in enumerate(value):
            yield from _faults(node.item, below, (*steps, index))
    else:
        tip = _tip(node, value, f"{steps[-1]}:" if steps and isinstance(steps[-1], str) else "-")
        yield SchemaFault(steps, "wrong-type", f"{type_name(value)} where {_wanted(node)} is needed; {tip}")


def _field_faults(node: SchemaNode, name: str, value: Json, steps: tuple[PathStep, ...]) -> Iterator[SchemaFault]:
    child = node.child(name)
    if child is None:
        yield SchemaFault((*steps, name), "unknown-field", _unknown(node, name))
    else:
        yield from _faults(child, value, (*steps, name))


def _wanted(node: SchemaNode) -> str:
    if node.shape is not NodeForm.SCALAR:
        return {NodeForm.OBJECT: "a mapping", NodeForm.LIST: "a list"}.get(node.shape, "a value")
    names = {frozenset({bool}): "a boolean", frozenset({int}): "a whole number", frozenset({int, float}): "a number"}
    return names.get(node.accepts) or ("a string" if int not in node.accepts else "a string or a number")


def _tip(node: SchemaNode, value: Json, name: str) -> str:
    """Return the next step for a value of a wrong type, without repeating the value."""
    if node.shape is NodeForm.LIST:
        below = _tip_below(node.item)
        return f"begin each item with a dash, for example {name} [{below}]"
    if node.shape is NodeForm.OBJECT:
        return "take the dashes away" if isinstance(value, list) else f"for example {name} {_tip_below(node)}"
    if isinstance(value, str) and str not in node.accepts:
        is_quoted = value.strip().lower() in ("true", "false") if bool in node.accepts else is_number(value)
        return "take the quotes away" if is_quoted else f"for example {name} {'true' if bool in node.accepts else 3}"
    if isinstance(value, bool | int | float) and int not in node.accepts and str in node.accepts:
        return "quote it"
    return f"for example {name} {'true' if bool in node.accepts else 3 if int in node.accepts else 'web'}"


def _tip_below(node: SchemaNode | None) -> str:
    """Return a value of YAML that fits a node, as far as one field shows it."""
    if node is None or node.shape is not NodeForm.OBJECT:
        return "web" if node is None or str in node.accepts else "3"
    return "{name: …}" if "name" in node.fields else f"{{{next(iter(node.fields), 'key')}: …}}"


def _unknown(node: SchemaNode, name: str) -> str:
    by_lower = {field.lower(): field for field in node.fields}
    close = difflib.get_close_matches(name.lower(), by_lower, n=1, cutoff=0.7)
    if close:
        return f"unknown field {name}; did you mean {by_lower[close[0]]}?"
    return f"unknown field {name}; there is none of that name here: check the spelling and the indentation"


_SCALARS: Final[dict[frozenset[type], Any]] = {
    frozenset({str}): str,
    frozenset({int}): int,
    frozenset({int, float}): float,
    frozenset({bool}): bool,
}


class _Recursive(Exception):
    """A definition contains itself."""


def surely_fits(gvk: GVK, body: JsonObject) -> bool:
    """Return whether all fields and types of a body are in the bundled schema of its kind; False also without one."""
    wanted = _type_of(gvk)
    if wanted is None:
        return False
    try:
        msgspec.convert(body, wanted)
    except msgspec.ValidationError:
        return False
    return True


@cache
def _type_of(gvk: GVK) -> Any:
    """The type of a kind; None where there is no schema, or one that contains itself (a CustomResourceDefinition)."""
    schema = builtin_schema(gvk)
    if schema is None:
        return None
    fields = {name: node for name, node in schema.root.fields.items() if name not in NOT_JUDGED}
    try:
        typed = {name: _typed(node, ()) for name, node in fields.items()}
    except _Recursive:
        return None
    return _struct({**typed, **dict.fromkeys(NOT_JUDGED, Any)})


_known: dict[int, Any] = {}
"""Types of definitions by the id of their fields, which the bundled table keeps for good."""


def _typed(node: SchemaNode, above: tuple[int, ...]) -> Any:
    """Return the type of a value: null means absent everywhere."""
    if node.shape is NodeForm.ANY:
        return Any
    if node.shape is NodeForm.SCALAR:
        return _SCALARS.get(node.accepts, str | int | float) | None
    if node.shape is NodeForm.LIST:
        assert node.item is not None, "a list of the bundled table has items"
        return list[_typed(node.item, above)] | None  # type: ignore[misc]  # A type that is made while running.
    if not node.fields:
        assert node.item is not None, "a map of the bundled table has values"
        return dict[str, _typed(node.item, above)] | None  # type: ignore[misc]  # Likewise.
    key = id(node.fields)
    if key in above:
        raise _Recursive
    if key not in _known:
        _known[key] = _struct({name: _typed(child, (*above, key)) for name, child in node.fields.items()}) | None
    return _known[key]


def _struct(fields: dict[str, Any]) -> Any:
    # Names of fields need not be names in Python.
    names = {f"f{number}": name for number, name in enumerate(fields)}
    typed = [(python, fields[name], None) for python, name in names.items()]
    return prepared(msgspec.defstruct("Body", typed, rename=names, forbid_unknown_fields=True, eq=False, gc=False))
