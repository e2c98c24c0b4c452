"""Fields that an apply of a body makes ours, and the bodies of one template, prepared for comparing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from reconciler.api.content import Json, JsonObject, Step
from reconciler.api.plan import MISSING
from reconciler.diff.canonical import child_of_node, sendable
from reconciler.diff.three_way import Desired, Difference, desired_of
from reconciler.diff.trees import declared
from reconciler.diff.walk import indexed
from reconciler.documents import FREE, Schema, SchemaNode, key_names, object_meta
from reconciler.ownership import hashed_leaves, recorded_form


def applied_fields(body: JsonObject, schema: Schema | None) -> dict[str, Any]:
    """The fields of an applied body as FieldsV1; of an unknown kind (`schema` None) lists are owned as a whole.

    Source: Kubernetes server-side apply, field management: structs and maps are owned leaf by leaf, items of map lists
    by their keys, items of sets by their value, everything atomic as a whole.
    """
    fields = declared(body)
    metadata = _below(fields.pop("metadata"), object_meta())
    found = _below(fields, schema.root if schema is not None else FREE)
    return {**found, "f:metadata": metadata} if metadata else found


def _below(fields: Mapping[str, Json], node: SchemaNode) -> dict[str, Any]:
    return {f"f:{name}": _owned(value, child_of_node(node, name)) for name, value in fields.items()}


def _owned(value: Json, node: SchemaNode) -> dict[str, Any]:
    if node.is_atomic:
        return {}
    if isinstance(value, dict):
        return _below(value, node)
    if isinstance(value, list) and node.is_set:
        return {f"v:{orjson.dumps(item).decode()}": {} for item in value}
    if isinstance(value, list) and node.keys:
        return _items(value, node)
    return {}


def _items(items: list[Json], node: SchemaNode) -> dict[str, Any]:
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


class Bodies:
    """The bodies of one kind, prepared for comparing. Its caches never change a result.

    `schema` None: the kind is unknown.
    """

    __slots__ = ("_differences", "_ready", "_record_key", "are_shared", "schema")

    def __init__(self, schema: Schema | None, record_key: bytes = b"", *, are_shared: bool = False) -> None:
        """Start with no body.

        `record_key`: the journal's key for hashes of Secret values. `are_shared`: members with equal live bodies share
        one object, so that a difference found in one of them is that of all.
        """
        self.are_shared = are_shared
        self.schema = schema
        self._record_key = record_key
        # Rendering gives clusters with one outcome the same object. It is kept here, so that its id stays its own.
        self._ready: dict[int, tuple[JsonObject, Desired]] = {}
        self._differences: dict[
            tuple[int, int, int, tuple[str, ...]], tuple[tuple[JsonObject | None, ...], Difference]
        ] = {}

    def wanted(self, body: JsonObject, leaves: tuple[tuple[Step, ...], ...] = ()) -> Desired:
        """Return a rendered body as it is sent and compared. `leaves`: the paths of decrypted values."""
        known = self._ready.get(id(body))
        if known is None:
            sent = sendable(body, self.schema)
            known = self._ready[id(body)] = (body, desired_of(sent, self.recorded(sent, leaves)))
        return known[1]

    def recorded(self, sent: JsonObject, leaves: tuple[tuple[Step, ...], ...] = ()) -> JsonObject:
        """A body that is sent, as the journal may keep it."""
        hidden = hashed_leaves(sent, leaves, self._record_key) if leaves else sent
        return recorded_form(hidden, self._record_key)

    def known_difference(
        self, wanted: Desired, live: JsonObject, recorded: JsonObject | None, left: tuple[str, ...]
    ) -> Difference | None:
        """Return the difference of these objects, if it was kept. `left`: paths that are left to others."""
        known = self._differences.get((id(wanted.body), id(live), id(recorded), left))
        return known[1] if known is not None else None

    def keep_difference(
        self,
        wanted: Desired,
        live: JsonObject,
        recorded: JsonObject | None,
        left: tuple[str, ...],
        found: Difference,
    ) -> None:
        """Keep the difference of these objects, for other clusters that hold the same ones."""
        # They are kept with it, so that their ids stay their own.
        self._differences[id(wanted.body), id(live), id(recorded), left] = ((wanted.body, live, recorded), found)
