"""Differences between trees: the operations of an override, and the first field that differs.

Values are compared with their types: `true` is not `1`, and `1` is not `1.0`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.api.tree import Json, JsonObject, Step, canonical_bytes
from reconciler.documents import pointer_text

Operation = dict[str, Any]
"""An entry of `plaintext`: operator, path and value."""


def operations(before: JsonObject, after: JsonObject) -> list[Operation]:
    """Return the operations of JSON Patch that turn one tree into the other, applied in order.

    Lists of equal length are compared by index, one that only grows or shrinks at its end is extended or cut, and any
    other is replaced: an insertion in the middle would shift all indexes after it.
    """
    return list(_of_maps(before, after, ()))


def _of_maps(before: JsonObject, after: JsonObject, steps: tuple[Step, ...]) -> Iterator[Operation]:
    for key in sorted(before.keys() | after.keys()):
        here = (*steps, key)
        if key not in after:
            yield {"operator": "remove", "path": _pointer(here)}
        elif key not in before:
            yield _put("add", here, after[key])
        else:
            yield from _of_values(before[key], after[key], here)


def _of_values(before: Json, after: Json, steps: tuple[Step, ...]) -> Iterator[Operation]:
    if is_same(before, after):
        return
    # An operation with null as its value is ambiguous in some dialects, so its parent is replaced.
    if isinstance(before, Mapping) and isinstance(after, Mapping) and not _has_null(before, after):
        yield from _of_maps(before, after, steps)
    elif isinstance(before, list) and isinstance(after, list) and None not in before and None not in after:
        yield from _of_lists(before, after, steps)
    else:
        yield _put("replace", steps, after)


def _of_lists(before: list[Json], after: list[Json], steps: tuple[Step, ...]) -> Iterator[Operation]:
    common = min(len(before), len(after))
    is_prefix = all(is_same(one, other) for one, other in zip(before[:common], after[:common], strict=True))
    if not after or not (is_prefix or len(before) == len(after)):
        yield _put("replace", steps, after)
        return
    for index in range(common):
        yield from _of_values(before[index], after[index], (*steps, index))
    for index in range(len(before) - 1, common - 1, -1):
        yield {"operator": "remove", "path": _pointer((*steps, index))}
    for item in after[common:]:
        yield _put("add", (*steps, "-"), item)


def _put(operator: str, steps: tuple[Step, ...], value: Json) -> Operation:
    return {"operator": operator, "path": _pointer(steps), "value": value}


def _pointer(steps: tuple[Step, ...]) -> str:
    return pointer_text(map(str, steps))


def _has_null(*maps: JsonObject) -> bool:
    return any(value is None for each in maps for value in each.values())


def is_same(one: Json, other: Json) -> bool:
    """Return whether two trees are equal, types included; the order of keys is ignored."""
    return canonical_bytes(one) == canonical_bytes(other)


def first_difference(one: Json, other: Json) -> tuple[Step, ...]:
    """The steps to the first place where two trees differ; empty when they are of different types, or equal."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        for key in sorted(one.keys() | other.keys()):
            if key not in one or key not in other:
                return (key,)
            if not is_same(one[key], other[key]):
                return (key, *first_difference(one[key], other[key]))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (left, right) in enumerate(zip(one, other, strict=True)):
            if not is_same(left, right):
                return (index, *first_difference(left, right))
    return ()


def without_nulls(tree: Json) -> Json:
    """The tree without fields that are null, which are absent fields for kubectl; items of lists stay."""
    if isinstance(tree, Mapping):
        return {key: without_nulls(value) for key, value in tree.items() if value is not None}
    return [without_nulls(item) for item in tree] if isinstance(tree, list) else tree
