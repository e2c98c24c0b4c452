"""Which fields an apply of a body makes ours: the FieldsV1 tree that an API server would write down.

Source: Kubernetes server-side apply, field management: structs and maps are owned leaf by leaf, items of map lists by
their keys, items of sets by their value, everything atomic as a whole.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from reconciler.model.plan import MISSING
from reconciler.model.tree import Json, JsonObject
from reconciler.stages.diff.canonical import child_of_node
from reconciler.stages.diff.trees import declared
from reconciler.stages.diff.walk import indexed, key_names
from reconciler.stages.schemas import FREE, Node, Schema, object_meta


def applied_fields(body: JsonObject, schema: Schema | None) -> dict[str, Any]:
    """The fields of an applied body as FieldsV1; of an unknown kind (`schema` None) lists are owned as a whole."""
    fields = declared(body)
    metadata = _below(fields.pop("metadata"), object_meta())
    found = _below(fields, schema.root if schema is not None else FREE)
    return {**found, "f:metadata": metadata} if metadata else found


def _below(fields: Mapping[str, Json], node: Node) -> dict[str, Any]:
    return {f"f:{name}": _owned(value, child_of_node(node, name)) for name, value in fields.items()}


def _owned(value: Json, node: Node) -> dict[str, Any]:
    if node.is_atomic:
        return {}
    if isinstance(value, dict):
        return _below(value, node)
    if isinstance(value, list) and node.is_set:
        return {f"v:{orjson.dumps(item).decode()}": {} for item in value}
    if isinstance(value, list) and node.keys:
        return _items(value, node)
    return {}


def _items(items: list[Json], node: Node) -> dict[str, Any]:
    names, defaults = key_names(node)
    found = indexed(items, names, defaults)
    if found is None:
        return {}
    owned: dict[str, Any] = {}
    for key, position in found.items():
        pairs = {name: value for name, value in zip(names, key, strict=True) if value is not MISSING}
        raw = f"k:{orjson.dumps(pairs, option=orjson.OPT_SORT_KEYS).decode()}"
        owned[raw] = {".": {}, **_below(items[position], node.item or FREE)}
    return owned
