"""Equality of values in different notation, and fields that an API server drops when it stores an object.

Source: design#same-value; Kubernetes API conventions (quantities, defaulting, optional fields) and the observed storage
of a kube-apiserver 1.36 (tests/apiserver/test_engine_t.py).
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from datetime import datetime
from enum import IntEnum
from typing import Any, Final

import orjson

from reconciler.api.content import Json, JsonObject
from reconciler.api.demand import exact
from reconciler.api.plan import MISSING
from reconciler.documents import FREE, Format, NodeForm, Schema, SchemaNode
from reconciler.ownership import FieldPath

ALLOCATED: Final = frozenset({"clusterIP", "nodePort", "healthCheckNodePort", "nodeName", "volumeName"})
"""Fields of built-in kinds that the cluster fills in when they are empty."""

_ALLOCATED_KEYS: Final = tuple(f'"{name}":'.encode() for name in sorted(ALLOCATED))


class ValueComparison(IntEnum):
    """The comparison with an atomic value that may carry defaults; the larger one decides."""

    EQUAL = 0
    DOUBTFUL = 1
    """Everything wanted is there, and more that could be a default or a field that is to go."""
    DIFFERENT = 2


def same_scalar(one: Json, other: Json, format_: Format = Format.PLAIN) -> bool:
    """Return whether two scalars are one value: `1000m` and `1`, one instant in two notations; True is not 1."""
    if one == other:
        return isinstance(one, bool) == isinstance(other, bool)
    match format_:
        case Format.QUANTITY:
            amount = exact(one)
            return amount is not None and amount == exact(other)
        case Format.BYTES:
            return bool(_decoded(one) == _decoded(other))
        case Format.TIME:
            return bool(_instant(one) == _instant(other))
        case _:
            return False


def _decoded(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        return base64.b64decode("".join(value.split()), validate=True)
    except (binascii.Error, ValueError):
        return value


def _instant(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return value


def says_nothing(value: Json, node: SchemaNode, *, keeps_empty: bool) -> bool:
    """Return whether a desired value equals leaving it out where nothing is: null, unstored zeros, empty ones."""
    if value is None:
        return not node.is_nullable
    if isinstance(value, (dict, list)):
        if value or node.keys or node.is_set:
            # Of an empty list with keys server-side apply merges nothing, so that it makes not even the list.
            return not value
        return not keeps_empty and (node.is_inline or node.shape is NodeForm.LIST or node.item is not None)
    return node.drops_zero and not value


def stored_null(node: SchemaNode) -> str:
    """Return the stored form of a null among the values of a typed map, or the items of a list."""
    return "0" if node.format is Format.QUANTITY else ""


def child_of_node(node: SchemaNode, name: str) -> SchemaNode:
    """Return the node of a field; a field that the schema lacks is free-form."""
    return node.child(name) or FREE


def node_at(root: SchemaNode, path: FieldPath) -> SchemaNode | None:
    """Return the node of a place; None if the schema has none."""
    node: SchemaNode | None = root
    for step in path:
        if node is None:
            return None
        node = node.child(step) if isinstance(step, str) else node.item
    return node


def covered(wanted: Json, stored: Json, before: Json, node: SchemaNode, *, keeps_empty: bool) -> ValueComparison:
    """Return whether a live atomic value is the stored form of the desired one. `before`: the one desired then."""
    if not keeps_empty and wanted == stored:
        return ValueComparison.EQUAL
    if isinstance(wanted, dict) and isinstance(stored, dict):
        return _covered_object(wanted, stored, before, node, keeps_empty=keeps_empty)
    if isinstance(wanted, list) and isinstance(stored, list):
        if len(wanted) != len(stored):
            return ValueComparison.DIFFERENT
        item = node.item or FREE
        if not keeps_empty and item.shape is NodeForm.SCALAR:
            wanted = [stored_null(item) if entry is None else entry for entry in wanted]
        known = before if isinstance(before, list) and len(before) == len(stored) else [MISSING] * len(stored)
        verdicts = (
            covered(w, f, b, item, keeps_empty=keeps_empty) for w, f, b in zip(wanted, stored, known, strict=True)
        )
        return max(verdicts, default=ValueComparison.EQUAL)
    return ValueComparison.EQUAL if same_scalar(wanted, stored, node.format) else ValueComparison.DIFFERENT


def _covered_object(
    wanted: JsonObject, stored: JsonObject, before: Json, node: SchemaNode, *, keeps_empty: bool
) -> ValueComparison:
    verdict = ValueComparison.EQUAL
    for name, value in wanted.items():
        child = child_of_node(node, name)
        if name in stored:
            then = before.get(name, MISSING) if isinstance(before, Mapping) else MISSING
            if value is None and not child.is_nullable:
                # A null is the same as leaving the field out: a live value can only be a default.
                one = _extra(stored[name], name, before, child, keeps_empty=keeps_empty)
            else:
                one = covered(value, stored[name], then, child, keeps_empty=keeps_empty)
        elif says_nothing(value, child, keeps_empty=keeps_empty):
            one = ValueComparison.EQUAL
        else:
            one = ValueComparison.DIFFERENT
        if one is ValueComparison.DIFFERENT:
            return one
        verdict = max(verdict, one)
    for name, value in stored.items():
        if name not in wanted:
            one = _extra(value, name, before, child_of_node(node, name), keeps_empty=keeps_empty)
            if one is ValueComparison.DIFFERENT:
                return one
            verdict = max(verdict, one)
    return verdict


def _extra(value: Json, name: str, before: Json, node: SchemaNode, *, keeps_empty: bool) -> ValueComparison:
    """Return the comparison for a field that only the stored value has."""
    if says_nothing(value, node, keeps_empty=keeps_empty) or value in ({}, []):
        return ValueComparison.EQUAL
    if node.default is not MISSING and same_scalar(value, node.default, node.format):
        return ValueComparison.EQUAL
    if isinstance(before, Mapping):
        return ValueComparison.DIFFERENT if before.get(name) is not None else ValueComparison.EQUAL
    if isinstance(value, dict) and node.fields and all(
        _extra(inner, key, MISSING, child_of_node(node, key), keeps_empty=keeps_empty) is ValueComparison.EQUAL
        for key, inner in value.items()
    ):  # fmt: skip
        return ValueComparison.EQUAL
    return ValueComparison.DOUBTFUL


def equal(one: Json, other: Json, node: SchemaNode, *, keeps_empty: bool) -> bool:
    """Return whether two desired values are stored as the same; sets have no order, MISSING equals a value of none."""
    if one is MISSING or other is MISSING:
        return says_nothing(one if other is MISSING else other, node, keeps_empty=keeps_empty)
    if isinstance(one, dict) and isinstance(other, dict):
        pairs = ((name, one.get(name, MISSING), other.get(name, MISSING)) for name in one.keys() | other.keys())
        return all(equal(a, b, child_of_node(node, name), keeps_empty=keeps_empty) for name, a, b in pairs)
    if isinstance(one, list) and isinstance(other, list):
        if len(one) != len(other):
            return False
        if node.is_set:
            return sorted(map(repr, one)) == sorted(map(repr, other))
        item = node.item or FREE
        return all(equal(a, b, item, keeps_empty=keeps_empty) for a, b in zip(one, other, strict=True))
    return same_scalar(one, other, node.format)


def sendable(body: JsonObject, schema: Schema | None) -> JsonObject:
    """Return the body to apply and compare: without nulls and zeros that mean "not set".

    Apply would own and reset them each time (measured). Null stays where it is a value: in maps, under nullable fields,
    and wherever the schema is unknown.
    """
    return body if schema is None or not _may_hold_unsaid(body) else _strip_object(body, schema.root)


def _may_hold_unsaid(body: JsonObject) -> bool:
    """Return whether there could be anything to strip: a look at the bytes is thirty times as quick as a walk."""
    try:
        data = orjson.dumps(body)
    except orjson.JSONEncodeError:
        return True
    # A quote behind one backslash is inside a text, such as that of our own mark; behind two it ends a key again.
    if b'":null' in data and (data.count(b'":null') > data.count(b'\\":null') or b'\\\\":null' in data):
        return True
    for key in _ALLOCATED_KEYS:  # noqa: SIM110  # A generator costs more than the search.
        if key in data:
            return True
    return False


def _strip_object(body: Mapping[str, Any], node: SchemaNode) -> Mapping[str, Any]:
    changed: dict[str, Any] = {}
    dropped = set()
    for name, value in body.items():
        child = node.fields.get(name)
        if child is not None and (
            not child.is_nullable if value is None else name in ALLOCATED and child.drops_zero and not value
        ):
            dropped.add(name)
        elif value.__class__ is dict or value.__class__ is list:
            stripped = _strip(value, child or node.item or FREE)
            if stripped is not value:
                changed[name] = stripped
    if not changed and not dropped:
        return body
    return {name: changed.get(name, value) for name, value in body.items() if name not in dropped}


def _strip(value: Json, node: SchemaNode) -> Json:
    if isinstance(value, dict):
        return _strip_object(value, node)
    if isinstance(value, list):
        item = node.item or FREE
        stripped = [_strip(entry, item) for entry in value]
        return value if all(a is b for a, b in zip(stripped, value, strict=True)) else stripped
    return value
