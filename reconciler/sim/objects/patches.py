"""JSON patch, merge patch and strategic merge patch."""

from __future__ import annotations

from typing import Any

import jsonpatch

from reconciler.sim.objects.shapes import Shape
from reconciler.sim.objects.status import Body, Json, Refused


def json_patch(body: Body, operations: list[Body]) -> Body:
    """RFC 6902. Raises Refused (422) when a path is missing or a test fails."""
    try:
        tree: Json = jsonpatch.apply_patch(body, operations)
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException):
        tree = None
    if not isinstance(tree, dict):
        raise Refused(422, "Invalid", "the server rejected our request due to an error in our request", {})
    return tree


def merge_patch(value: Json, patch: Json) -> Json:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    merged: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
    for name, below in patch.items():
        if below is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), below)
    return merged


def strategic_patch(value: Json, patch: Json, shape: Shape) -> Json:
    """Kubernetes' strategic merge: lists with a merge key merge by it; `$patch` and `$deleteFromPrimitiveList` work."""
    if not isinstance(patch, dict):
        return patch
    if patch.get("$patch") == "replace":
        return {name: below for name, below in patch.items() if name != "$patch"}
    merged: dict[str, Any] = dict(value) if isinstance(value, dict) else {}
    if "$retainKeys" in patch:
        merged = {name: below for name, below in merged.items() if name in patch["$retainKeys"]}
    for name, below in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            merged[field] = [item for item in merged.get(field) or () if item not in below]
        elif name.startswith("$"):
            continue
        elif below is None:
            merged.pop(name, None)
        elif isinstance(below, list):
            order = patch.get(f"$setElementOrder/{name}", below)
            merged[name] = _strategic_list(merged.get(name), below, order, shape.field(name))
        else:
            merged[name] = strategic_patch(merged.get(name), below, shape.field(name))
    return merged


def _strategic_list(live: list[Json] | None, patch: list[Json], order: list[Json], shape: Shape) -> list[Json]:
    if shape.is_set:
        return [*(live or ()), *(item for item in patch if item not in (live or ()))]
    if not shape.list_keys:
        return patch
    key = shape.list_keys[0]
    plain = [item for item in patch if "$patch" not in item]
    if live is None or any(item.get("$patch") == "replace" for item in patch):
        return plain
    deleted = {item[key] for item in patch if item.get("$patch") == "delete"}
    # Only the first of a key is its own: the merge key of ports leaves the protocol out.
    items = [item for item in live if item.get(key) not in deleted]
    for item in plain:
        index = next((at for at, other in enumerate(items) if other.get(key) == item.get(key)), None)
        if index is None:
            items.append(item)
        else:
            items[index] = strategic_patch(items[index], item, shape.item())
    return _interleaved(items, [item.get(key) for item in order], [item.get(key) for item in live], key)


def _interleaved(items: list[Json], order: list[Json], live: list[Json], key: str) -> list[Json]:
    """Items of the patch in its order; the others keep their place before those that followed them."""
    ours = sorted((item for item in items if item[key] in order), key=lambda item: order.index(item[key]))
    rest = [item for item in items if item[key] not in order]
    merged: list[Json] = []
    while ours and rest:
        left, right = rest[0][key], ours[0][key]
        comes_first = left in live and right in live and live.index(left) < live.index(right)
        merged.append(rest.pop(0) if comes_first else ours.pop(0))
    return merged + rest + ours
