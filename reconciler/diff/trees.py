"""Bodies prepared for comparing: all places where two differ, fields that exclude each other, fields that are ours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import orjson
from msgspec import Struct

from reconciler.api.content import Json, JsonObject, Step
from reconciler.api.plan import MISSING, FieldChange
from reconciler.diff.canonical import child_of_node, equal, node_at, says_nothing, sendable
from reconciler.diff.walk import indexed
from reconciler.documents import FREE, Schema, SchemaNode, key_names, object_meta
from reconciler.ownership import FieldPath, Keyed, Member, hashed_leaves, recorded_form, value_at

DECLARED_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""The declarable part of metadata; the rest is the API server's."""

TreeChange = tuple[FieldPath, Json, Json]
"""Path, before, after; MISSING where there is nothing."""


def declared(body: JsonObject) -> dict[str, Any]:
    """Return the body without apiVersion, kind, status, and metadata that only the API server writes."""
    metadata = body.get("metadata")
    entries = metadata.items() if isinstance(metadata, (dict, Mapping)) else ()
    own = {name: value for name, value in entries if name in DECLARED_METADATA}
    rest = {name: value for name, value in body.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    return {**rest, "metadata": own}


def tree_changes(before: JsonObject, after: JsonObject, schema: Schema | None) -> tuple[TreeChange, ...]:
    """Return the differences of two objects, in path order; an added or removed value is one change as a whole."""
    if before is after:
        return ()
    root = schema.root if schema is not None else FREE
    keeps_empty = schema is None or schema.keeps_empty
    one, other = declared(before), declared(after)
    metadata = _objects(one.pop("metadata"), other.pop("metadata"), object_meta(), ("metadata",), False)
    return (*metadata, *_objects(one, other, root, (), keeps_empty))


def _objects(
    before: JsonObject, after: JsonObject, node: SchemaNode, path: FieldPath, keeps_empty: bool
) -> Iterator[TreeChange]:
    for name in sorted(before.keys() | after.keys()):
        child = child_of_node(node, name)
        one, other = before.get(name, MISSING), after.get(name, MISSING)
        yield from _values(one, other, child, (*path, name), keeps_empty)


def _values(before: Json, after: Json, node: SchemaNode, path: FieldPath, keeps_empty: bool) -> Iterator[TreeChange]:
    if before is MISSING or after is MISSING:
        if not says_nothing(after if before is MISSING else before, node, keeps_empty=keeps_empty):
            yield path, before, after
    elif isinstance(before, dict) and isinstance(after, dict) and not node.is_atomic:
        yield from _objects(before, after, node, path, keeps_empty)
    elif isinstance(before, list) and isinstance(after, list) and (node.keys or node.is_set):
        if node.is_set:
            yield from (((*path, Member(value)), value, MISSING) for value in before if value not in after)
            yield from (((*path, Member(value)), MISSING, value) for value in after if value not in before)
        else:
            yield from _map_lists(before, after, node, path, keeps_empty)
    elif not equal(before, after, node, keeps_empty=keeps_empty):
        yield path, before, after


def _map_lists(
    before: list[Json], after: list[Json], node: SchemaNode, path: FieldPath, keeps_empty: bool
) -> Iterator[TreeChange]:
    names, defaults = key_names(node)
    was, now = indexed(before, names, defaults), indexed(after, names, defaults)
    if was is None or now is None:
        if not equal(before, after, node, keeps_empty=keeps_empty):
            yield path, before, after
        return
    for key in [*was, *(key for key in now if key not in was)]:
        step = Keyed(tuple(zip(names, key, strict=True)))
        one = before[was[key]] if key in was else MISSING
        other = after[now[key]] if key in now else MISSING
        yield from _values(one, other, node.item or FREE, (*path, step), keeps_empty)
    kept_before, kept_after = [key for key in was if key in now], [key for key in now if key in was]
    if kept_before != kept_after:
        yield path, [list(key) for key in kept_before], [list(key) for key in kept_after]


_ALTERNATIVES: Final = (
    frozenset({"exec", "grpc", "httpGet", "tcpSocket"}),
    frozenset({"exec", "httpGet", "sleep", "tcpSocket"}),
    frozenset({"value", "valueFrom"}),
    frozenset({"configMapKeyRef", "fieldRef", "resourceFieldRef", "secretKeyRef"}),
    frozenset({"maxUnavailable", "minAvailable"}),
)
"""Fields of one struct that exclude each other."""

_OF_A_VOLUME: Final = frozenset(("configMap", "emptyDir", "hostPath", "persistentVolumeClaim", "secret"))
"""A struct with these is a volume, all of whose fields but the name exclude each other."""

_ONLY_WITH_TYPE: Final = {"rollingUpdate": "RollingUpdate", "localhostProfile": "Localhost"}
"""Fields that a struct may have only while its `type` is this one."""


def displaced(
    wanted: JsonObject, live: JsonObject, root: SchemaNode, changed: Iterable[FieldPath]
) -> dict[FieldPath, FieldPath]:
    """Return paths of live fields that desired ones exclude, each with the changed path that displaces it.

    Apply takes only our fields: beside our `httpGet` a foreign `tcpSocket` would stay, and be refused. Source:
    Kubernetes: validation of probes, variables, volumes, strategies, profiles and disruption budgets.
    """
    excluded: dict[FieldPath, FieldPath] = {}
    for path in changed:
        name = path[-1] if path else None
        node = node_at(root, path[:-1])
        if not isinstance(name, str) or node is None or name not in node.fields:
            continue
        want, there = value_at(wanted, path[:-1]), value_at(live, path[:-1])
        if isinstance(want, Mapping) and isinstance(there, Mapping):
            rivals: set[str] = set()
            if name == "type":
                rivals = {rival for rival, kind in _ONLY_WITH_TYPE.items() if want[name] != kind} & node.fields.keys()
            elif node.fields.keys() >= _OF_A_VOLUME:
                rivals = node.fields.keys() - {name, "name"} if name != "name" else set()
            else:
                rivals = set().union(*(g - {name} for g in _ALTERNATIVES if name in g and node.fields.keys() >= g))
            for rival in sorted(rivals):
                if rival not in want and there.get(rival) is not None:
                    excluded.setdefault((*path[:-1], rival), path)
    return excluded


class Difference(Struct, frozen=True, kw_only=True):
    """The changes of an apply, sorted by path.

    `removed_paths`: undesired fields that others' Updates (or nobody) hold now, substitutes and excluded fields: take
    them over first (`adoption.takeover_operations`). `in_the_way`: possible substitutes, gone if ours is refused.
    `unsure`: why engine S has to decide. `replace`: an immutable field.
    """

    fields: tuple[FieldChange, ...] = ()
    removed_paths: tuple[str, ...] = ()
    in_the_way: tuple[FieldChange, ...] = ()
    unsure: str | None = None
    replace: str | None = None


NO_DIFFERENCE: Final = Difference()


class Desired(NamedTuple):
    """The desired state: `body` to send, `recorded` for the journal, declarable `fields` and `metadata`."""

    body: JsonObject
    recorded: JsonObject
    fields: JsonObject
    metadata: JsonObject


def desired_of(body: JsonObject, recorded: JsonObject | None = None) -> Desired:
    """Return a body that would be sent, ready to be compared; without `recorded` the journal keeps it as it is."""
    fields = declared(body)
    metadata = fields.pop("metadata")
    return Desired(body, body if recorded is None else recorded, fields, metadata)


def applied_fields(body: JsonObject, schema: Schema | None) -> dict[str, Any]:
    """Return the fields of an applied body as FieldsV1; of an unknown kind (`schema` None) lists are owned as a whole.

    Source: Kubernetes server-side apply, field management: structs and maps are owned leaf by leaf, items of map lists
    by their keys, items of sets by their value, everything atomic as a whole.
    """
    fields = declared(body)
    metadata = _below(fields.pop("metadata"), object_meta())
    below = _below(fields, schema.root if schema is not None else FREE)
    return {**below, "f:metadata": metadata} if metadata else below


def _below(fields: Mapping[str, Json], node: SchemaNode) -> dict[str, Any]:
    return {f"f:{name}": _owned_below(value, child_of_node(node, name)) for name, value in fields.items()}


def _owned_below(value: Json, node: SchemaNode) -> dict[str, Any]:
    if node.is_atomic:
        return {}
    if isinstance(value, dict):
        return _below(value, node)
    if isinstance(value, list) and node.is_set:
        return {f"v:{orjson.dumps(item).decode()}": {} for item in value}
    if not isinstance(value, list) or not node.keys:
        return {}
    names, defaults = key_names(node)
    owned: dict[str, Any] = {}
    for key, position in (indexed(value, names, defaults) or {}).items():
        pairs = {name: value for name, value in zip(names, key, strict=True) if value is not MISSING}
        raw = f"k:{orjson.dumps(pairs, option=orjson.OPT_SORT_KEYS).decode()}"
        owned[raw] = {".": {}, **_below(value[position], node.item or FREE)}
    return owned


class Bodies:
    """The bodies of one kind (`schema` None: unknown), prepared for comparing. Its caches never change a result."""

    __slots__ = ("_ready", "_record_key", "are_shared", "differences", "schema")

    def __init__(self, schema: Schema | None, record_key: bytes = b"", *, are_shared: bool = False) -> None:
        """`record_key`: for hashes of Secrets. `are_shared`: equal live bodies are one object, compared once."""
        self.are_shared = are_shared
        self.schema = schema
        self._record_key = record_key
        # Rendering gives clusters with one outcome the same object. It is kept here, so that its id stays its own.
        self._ready: dict[int, tuple[JsonObject, Desired]] = {}
        self.differences: dict[
            tuple[int, int, int, tuple[str, ...]], tuple[tuple[JsonObject | None, ...], Difference]
        ] = {}
        """By the ids of desired, live and recorded body, which are kept with it, and the paths left to others."""

    def wanted(self, body: JsonObject, leaves: tuple[tuple[Step, ...], ...] = ()) -> Desired:
        """Return a rendered body as it is sent and compared. `leaves`: the paths of decrypted values."""
        known = self._ready.get(id(body))
        if known is None:
            sent = sendable(body, self.schema)
            known = self._ready[id(body)] = (body, desired_of(sent, self.recorded(sent, leaves)))
        return known[1]

    def recorded(self, sent: JsonObject, leaves: tuple[tuple[Step, ...], ...] = ()) -> JsonObject:
        """Return a body that is sent, as the journal may keep it."""
        return recorded_form(hashed_leaves(sent, leaves, self._record_key) if leaves else sent, self._record_key)
