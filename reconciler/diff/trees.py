"""Every place where two trees differ, lists matched by their keys, and fields that exclude each other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from reconciler.api.content import Json, JsonObject
from reconciler.api.plan import MISSING
from reconciler.diff.canonical import child_of_node, equal, says_nothing
from reconciler.diff.walk import indexed
from reconciler.documents import FREE, NodeForm, Schema, SchemaNode, key_names, object_meta
from reconciler.ownership import FieldPath, Keyed, Member, value_at

DECLARED_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
"""The declarable part of metadata; the rest is the API server's."""

TreeChange = tuple[FieldPath, Json, Json]
"""Path, before, after; MISSING where there is nothing."""


def declared(body: JsonObject) -> dict[str, Any]:
    """The body without apiVersion, kind, status, and metadata that only the API server writes."""
    metadata = body.get("metadata")
    entries = metadata.items() if isinstance(metadata, (dict, Mapping)) else ()
    kept = {name: value for name, value in entries if name in DECLARED_METADATA}
    rest = {name: value for name, value in body.items() if name not in ("apiVersion", "kind", "metadata", "status")}
    return {**rest, "metadata": kept}


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
        items = _sets if node.is_set else _map_lists
        yield from items(before, after, node, path, keeps_empty)
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


def _sets(
    before: list[Json], after: list[Json], node: SchemaNode, path: FieldPath, keeps_empty: bool
) -> Iterator[TreeChange]:
    assert node.shape is NodeForm.LIST, node.shape
    yield from (((*path, Member(value)), value, MISSING) for value in before if value not in after)
    yield from (((*path, Member(value)), MISSING, value) for value in after if value not in before)


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

    Server-side apply takes away only our fields: next to our `httpGet` it would leave the `tcpSocket` that somebody put
    in its place, and the API server refuses the two together. Source: Kubernetes: validation of probes, environment
    variables, volumes, update strategies, profiles and disruption budgets; client-side apply has `retainKeys` for it.
    """
    found: dict[FieldPath, FieldPath] = {}
    for path in changed:
        name = path[-1] if path else None
        node = _node_at(root, path[:-1])
        if not isinstance(name, str) or node is None or name not in node.fields:
            continue
        want, there = value_at(wanted, path[:-1]), value_at(live, path[:-1])
        if isinstance(want, Mapping) and isinstance(there, Mapping):
            for rival in _rivals(name, want, node):
                if rival not in want and there.get(rival) is not None:
                    found.setdefault((*path[:-1], rival), path)
    return found


def _rivals(name: str, want: Mapping[str, Any], node: SchemaNode) -> Iterator[str]:
    """Fields that the wanted value of a field excludes."""
    if name == "type":
        yield from (rival for rival, kind in _ONLY_WITH_TYPE.items() if rival in node.fields and want[name] != kind)
    elif node.fields.keys() >= _OF_A_VOLUME:
        yield from sorted(node.fields.keys() - {name, "name"} if name != "name" else ())
    else:
        for group in _ALTERNATIVES:
            if name in group and node.fields.keys() >= group:
                yield from sorted(group - {name})


def _node_at(root: SchemaNode, path: FieldPath) -> SchemaNode | None:
    node: SchemaNode | None = root
    for step in path:
        if node is None:
            return None
        node = node.child(step) if isinstance(step, str) else node.item
    return node
