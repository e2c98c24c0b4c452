"""A plan as JSON patches (RFC 6902), version 1: one a change, from the present object, each applied while written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import jsonpatch
from jsonpatch import JsonPointer

from reconciler.api.content import Json, JsonObject, Step, dig
from reconciler.api.plan import MISSING, Action, Cause, Change, FieldChange, Plan
from reconciler.ownership import (
    FLEET_LABEL,
    OWNER_ANNOTATION,
    FieldPath,
    FieldStep,
    Keyed,
    Member,
    child_of,
    index_of,
    parse_path,
    value_at,
)
from reconciler.report.json_parts import problems_part, resource_part
from reconciler.report.mask import Masker

Operation = dict[str, Json]


def plan_patches(plan: Plan) -> dict[str, Json]:
    """Return the plan as a JSON document, redacted, in an order that depends on its content alone."""
    masker = Masker()
    masked = masker.plan(plan)  # Everything first, so that what one Secret holds is hidden in all bodies.
    pairs = sorted(
        zip(plan.changes, masked.changes, strict=True),
        key=lambda pair: (pair[0].cluster, *pair[0].identity, str(pair[0].action), str(pair[0].held is not None)),
    )
    return {
        "version": 1,
        "base": plan.base,
        "head": plan.head,
        "complete": plan.is_complete,
        "patches": [_part(raw, hidden, masker) for raw, hidden in pairs],
        "problems": problems_part(plan.problems),
    }


def _part(raw: Change, hidden: Change, masker: Masker) -> dict[str, Json]:
    before = masker.manifest(raw.before) if raw.before is not None else None
    manifest = masker.manifest(raw.manifest) if raw.manifest is not None else {}
    return {
        "action": str(hidden.action),
        "cluster": hidden.cluster,
        "resource": resource_part(hidden.gvk, hidden.identity),
        "held": hidden.held,
        "patch": _patch(hidden, before, manifest),
    }


def _patch(change: Change, before: JsonObject | None, manifest: JsonObject) -> list[Operation]:
    match change.action:
        case Action.CREATE:
            return [{"op": "add", "path": "", "value": manifest}]
        case Action.REPLACE:
            return [{"op": "replace", "path": "", "value": manifest}]
        case Action.DELETE:
            return [{"op": "remove", "path": ""}]
        case Action.RELEASE:
            places = (("metadata", "labels", FLEET_LABEL), ("metadata", "annotations", OWNER_ANNOTATION))
            there = [place for place in places if before is None or dig(before, *place) is not None]
            return [{"op": "remove", "path": JsonPointer.from_parts(place).path} for place in there]
        case _:
            ours = [field for field in change.fields if field.cause is not Cause.SIDE_EFFECT]
            # Without the present object, rebuild it: put the fields' old values into the new object.
            if before is None:
                undone = _operations(manifest, ((field, field.before) for field in reversed(ours)))
                before = jsonpatch.JsonPatch(list(undone)).apply(manifest)
            # Removals last and in reverse, so that none shifts the items of a list which another one counts.
            ordered = [field for field in ours if field.after is not MISSING]
            ordered += [field for field in reversed(ours) if field.after is MISSING]
            return list(_operations(before, ((field, _after(field, manifest)) for field in ordered)))


def _after(field: FieldChange, manifest: JsonObject) -> Json:
    """Return the new value of a field as it is sent, not as it is normalised for comparison."""
    if field.after is MISSING:
        return MISSING
    path = parse_path(field.path)
    sent = value_at(manifest, path) if path is not None else MISSING
    return field.after if sent is MISSING else sent


def _operations(before: JsonObject, wanted: Iterable[tuple[FieldChange, Json]]) -> Iterator[Operation]:
    tree: Any = before
    for field, value in wanted:
        for operation in _steps_to(tree, parse_path(field.path) or (), value):
            tree = jsonpatch.JsonPatch([operation]).apply(tree)
            yield operation


def _steps_to(tree: Json, path: FieldPath, value: Json) -> Iterator[Operation]:
    """The operation that gives a field its value, MISSING: takes it away; none where that is so already."""
    parts: list[Step] = []
    for depth, step in enumerate(path):
        below = child_of(tree, step)
        if below is MISSING:
            if value is not MISSING:
                at = JsonPointer.from_parts([*parts, step if isinstance(step, str) else "-"]).path
                yield {"op": "add", "path": at, "value": _nested(step, path[depth + 1 :], value)}
            return
        parts.append(_position(tree, step))
        tree = below
    if not path:
        return  # Nothing that is written of a field is about the whole object.
    if value is MISSING:
        yield {"op": "remove", "path": JsonPointer.from_parts(parts).path}
    elif tree != value:
        yield {"op": "replace", "path": JsonPointer.from_parts(parts).path, "value": value}


def _position(tree: Json, step: FieldStep) -> Step:
    match step:
        case Keyed(pairs):
            index = index_of(tree, pairs)
            assert index is not None, "the item is there"
            return index
        case Member(value):
            return int(tree.index(value))
        case str() | int():
            return step
        case _:
            raise AssertionError("a change has no wildcard")


def _nested(step: FieldStep, rest: FieldPath, value: Json) -> Json:
    """Return the value to set at a missing step, so that the rest of the path leads to the given value."""
    if not rest:
        return value
    below = _nested(rest[0], rest[1:], value)
    inner: Json = {rest[0]: below} if isinstance(rest[0], str) else [below]
    return {**dict(step.pairs), **inner} if isinstance(step, Keyed) and isinstance(inner, dict) else inner
