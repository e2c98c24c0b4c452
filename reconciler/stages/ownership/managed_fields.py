"""Owners of fields, as `metadata.managedFields` records them.

Source: Kubernetes server-side apply, field management; FieldsV1: `f:` a field, `k:` an item of a map list by its keys,
`v:` an item of a set, `i:` a position, `.` the place itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from reconciler.model.plan import FieldOwner
from reconciler.model.tree import JsonObject, dig
from reconciler.stages.ownership.field_path import FieldPath, FieldStep, Keyed, Member

NOTHING: Final[Mapping[str, Any]] = {}


@lru_cache(maxsize=65536)
def step_of(raw: str) -> FieldStep | None:
    """Return the step of a key of FieldsV1; None for `.` and for a malformed one."""
    kind, _, rest = raw.partition(":")
    if kind == "f":
        return rest
    try:
        value = orjson.loads(rest) if kind in ("k", "v", "i") else None
    except orjson.JSONDecodeError:
        return None
    if kind == "k":
        return Keyed(tuple(sorted(value.items()))) if isinstance(value, dict) else None
    if kind == "v":
        return Member(value) if not isinstance(value, (dict, list)) else None
    return value if isinstance(value, int) else None


def entries_of(body: JsonObject) -> tuple[JsonObject, ...]:
    """The well-formed entries of metadata.managedFields."""
    entries = dig(body, "metadata", "managedFields")
    if not isinstance(entries, list):
        return ()
    return tuple([entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("fieldsV1"), dict)])


def is_applied_by(entry: JsonObject, manager: str) -> bool:
    """Return whether the entry is an Apply of the manager on the object itself (not on a subresource)."""
    return entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")


def below(fields: Mapping[str, Any], step: FieldStep) -> Mapping[str, Any] | None:
    """The FieldsV1 subtree one step down; None when the step is not in it."""
    if isinstance(step, str):
        found = fields.get("f:" + step)
        return found if isinstance(found, dict) else None
    for raw, found in fields.items():
        if raw[:2] != "f:" and step_of(raw) == step:
            return found if isinstance(found, dict) else None
    return None


def subtree(fields: Mapping[str, Any], path: FieldPath) -> Mapping[str, Any] | None:
    """The FieldsV1 subtree at the path; an empty one means that the place itself is owned, None that nothing is."""
    here: Mapping[str, Any] | None = fields
    for step in path:
        if here is None:
            return None
        here = below(here, step)
    return here


def owns(fields: Mapping[str, Any], path: FieldPath) -> bool:
    """Return whether the place itself is owned, not only something below it."""
    found = subtree(fields, path)
    return found is not None and (not found or "." in found)


def owns_within(fields: Mapping[str, Any], path: FieldPath) -> bool:
    """Return whether the place itself or something below it is owned."""
    return subtree(fields, path) is not None


def paths_of(fields: Mapping[str, Any], prefix: FieldPath = ()) -> Iterator[FieldPath]:
    """Every owned path: leaves, and places that carry `.`."""
    if prefix and (not fields or "." in fields):
        yield prefix
    for raw, inner in fields.items():
        step = step_of(raw) if raw != "." else None
        if step is not None and isinstance(inner, dict):
            yield from paths_of(inner, (*prefix, step))


def fields_of(body: JsonObject, manager: str) -> Mapping[str, Any]:
    """Return the fields that the manager owns by Apply, as one FieldsV1 tree; empty if none."""
    trees = [entry["fieldsV1"] for entry in entries_of(body) if is_applied_by(entry, manager)]
    return trees[0] if len(trees) == 1 else union(trees)


def union(trees: list[Mapping[str, Any]]) -> Mapping[str, Any]:
    """FieldsV1 trees as one. A place that only one tree owns itself keeps its `.`."""
    joined: dict[str, Any] = {}
    for tree in trees:
        for raw, inner in tree.items():
            known = joined.get(raw)
            joined[raw] = inner if known is None else _joined(known, inner)
    return joined


def _joined(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    # An empty tree owns the place itself, as a tree with children does by a dot.
    if bool(one) != bool(other):
        return {".": {}, **one, **other}
    return union([one, other])


def difference(fields: Mapping[str, Any], taken: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first tree without the places that the second owns; without empty rest."""
    left: dict[str, Any] = {}
    for raw, inner in fields.items():
        if raw not in taken:
            left[raw] = inner
            continue
        if not inner:
            continue
        # An empty second tree owns the place itself: only the dot goes.
        rest = difference(inner, taken[raw] or {".": {}})
        if rest:
            left[raw] = rest
    return left


def owners_of(body: JsonObject, path: FieldPath) -> tuple[FieldOwner, ...]:
    """Managers that own the place or something below it, the one that wrote last first."""
    found = [owner_of(entry) for entry in entries_of(body) if subtree(entry["fieldsV1"], path) is not None]
    return tuple(sorted(found, key=lambda owner: (owner.time, owner.manager), reverse=True))


def owner_of(entry: JsonObject) -> FieldOwner:
    """The manager of an entry."""
    return FieldOwner(
        manager=str(entry.get("manager", "")),
        operation=str(entry.get("operation", "")),
        time=str(entry.get("time", "")),
    )


def managers_of(body: JsonObject, path: FieldPath) -> frozenset[str]:
    """Names of the managers that own the place or something below it, subresources included."""
    return frozenset(owner.manager for owner in owners_of(body, path))
