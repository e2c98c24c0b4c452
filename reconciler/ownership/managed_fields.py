"""Owners of fields, as `metadata.managedFields` records them; shared lists, and fields that others control.

Source: Kubernetes server-side apply; FieldsV1: `f:` a field, `k:` an item of a map list by its keys, `v:` an item of a
set, `i:` a position, `.` the place itself.

Atomic lists to which others append (pull secrets of a ServiceAccount, tolerations of a Pod) keep their entries in our
requests, or each would undo the other for ever. Source: Karmada: lists of a ServiceAccount; here an entry that leaves
the store leaves. Kubernetes: admission plugins DefaultTolerationSeconds and ExtendedResourceToleration.

An autoscaler's replicas stay. Source: design#autoscaled-replicas; a field that is left out stays if another manager
owns it too, and falls back to its default if nobody else does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import orjson

from reconciler.api.content import Json, JsonObject, dig, with_value, without
from reconciler.api.plan import FieldOwner
from reconciler.api.refs import Identity
from reconciler.kinds.body_fields import REPLICAS
from reconciler.kinds.registry import Registry
from reconciler.ownership.field_path import FieldPath, FieldStep, Keyed, Member, path_text

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
    """Return the well-formed entries of metadata.managedFields."""
    entries = dig(body, "metadata", "managedFields")
    if not isinstance(entries, list):
        return ()
    return tuple([entry for entry in entries if isinstance(entry, dict) and isinstance(entry.get("fieldsV1"), dict)])


def made_by(body: JsonObject) -> str:
    """Return the field manager of the oldest entry, of an object that nobody has written since else; empty: unknown."""
    entries = sorted(entries_of(body), key=lambda entry: (bool(entry.get("subresource")), str(entry.get("time") or "")))
    return next((str(entry["manager"]) for entry in entries if entry.get("manager")), "")


def is_applied_by(entry: JsonObject, manager: str) -> bool:
    """Return whether the entry is an Apply of the manager on the object itself (not on a subresource)."""
    return entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource")


def subtree(fields: Mapping[str, Any], path: FieldPath) -> Mapping[str, Any] | None:
    """Return the FieldsV1 subtree at the path; empty: the place itself is owned, None: nothing is."""
    here = fields
    for step in path:
        if isinstance(step, str):
            below = here.get("f:" + step)
        else:
            below = next((inner for raw, inner in here.items() if raw[:2] != "f:" and step_of(raw) == step), None)
        if not isinstance(below, dict):
            return None
        here = below
    return here


def owns(fields: Mapping[str, Any], path: FieldPath) -> bool:
    """Return whether the place itself is owned, not only something below it."""
    tree = subtree(fields, path)
    return tree is not None and (not tree or "." in tree)


def owns_within(fields: Mapping[str, Any], path: FieldPath) -> bool:
    """Return whether the place itself or something below it is owned."""
    return subtree(fields, path) is not None


def paths_of(fields: Mapping[str, Any], prefix: FieldPath = ()) -> Iterator[FieldPath]:
    """Yield every owned path: leaves, and places that carry `.`."""
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
    """Return FieldsV1 trees as one. A place that only one tree owns itself keeps its `.`."""
    joined: dict[str, Any] = {}
    for tree in trees:
        for raw, inner in tree.items():
            known = joined.get(raw)
            if known is not None:
                # An empty tree owns the place itself, as a tree with children does by a dot.
                is_one_empty = bool(known) != bool(inner)
                inner = {".": {}, **known, **inner} if is_one_empty else union([known, inner])  # noqa: PLW2901
            joined[raw] = inner
    return joined


def difference(fields: Mapping[str, Any], removed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first tree without the places that the second owns; without empty rest."""
    left: dict[str, Any] = {}
    for raw, inner in fields.items():
        if raw not in removed:
            left[raw] = inner
            continue
        if not inner:
            continue
        # An empty second tree owns the place itself: only the dot goes.
        rest = difference(inner, removed[raw] or {".": {}})
        if rest:
            left[raw] = rest
    return left


def owners_of(body: JsonObject, path: FieldPath) -> tuple[FieldOwner, ...]:
    """Return managers that own the place or something below it, the one that wrote last first."""
    owners = [
        FieldOwner(**{field: str(entry.get(field, "")) for field in ("manager", "operation", "time")})
        for entry in entries_of(body)
        if subtree(entry["fieldsV1"], path) is not None
    ]
    return tuple(sorted(owners, key=lambda owner: (owner.time, owner.manager), reverse=True))


def managers_of(body: JsonObject, path: FieldPath) -> frozenset[str]:
    """Return names of the managers that own the place or something below it, subresources included."""
    return frozenset(owner.manager for owner in owners_of(body, path))


Path = tuple[str, ...]

_SHARED: Final[Mapping[tuple[str, str], tuple[Path, Path]]] = {
    ("", "ServiceAccount"): (("imagePullSecrets",), ("name",)),
    ("", "Pod"): (("spec", "tolerations"), ("key", "operator", "value", "effect")),
}
"""(group, kind) to the path of the list and the fields that name its entries. Every other atomic value is healed as
a whole: permissions (`subjects`, `rules`) belong to the store alone."""


def shared_list(identity: Identity) -> Path:
    """Return the path of the list that others may append to; empty when the kind has none."""
    return _SHARED.get(identity[:2], ((), ()))[0]


def with_entries_of_others(
    identity: Identity, body: JsonObject, live: JsonObject, previous: JsonObject | None, manager: str
) -> JsonObject:
    """Return the body with the entries that others added to its list in `live`; itself if there are none.

    `previous`: the earlier declaration; an entry of it is ours, and goes when the body lacks it. Without a list in the
    body nothing is added, unless the live one is or was ours as a whole, and would go with all its entries.
    """
    path, key = _SHARED.get(identity[:2], ((), ()))
    current = _entries(dig(live, *path), key) if path else {}
    wanted = _entries(dig(body, *path), key) if path else {}
    before = _entries(dig(previous, *path), key) if path else {}
    if not current or not (wanted or before or owns_within(fields_of(live, manager), path)):
        return body
    ours = wanted.keys() | before.keys()
    if current.keys() <= ours:
        return body
    there = [wanted.get(name, entry) for name, entry in current.items() if name in wanted or name not in ours]
    return with_value(body, path, [*there, *(entry for name, entry in wanted.items() if name not in current)])


def _entries(items: Json, key: Path) -> dict[tuple[Json, ...], Any]:
    """Return entries by their name; none when it is no list, or one of them has no name of its own."""
    entries = [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []
    names = (tuple(item.get(field) for field in key) for item in entries)
    named = {
        name: item
        for name, item in zip(names, entries, strict=True)
        if any(name) and all(part is None or isinstance(part, str) for part in name)
    }
    return named if isinstance(items, list) and len(named) == len(items) else {}


def replicas_path(identity: Identity, interpreters: Registry) -> Path:
    """Return the path of the kind's replicas; `spec.replicas` for a kind without interpreter."""
    return interpreters.of(*identity[:2]).replicas_path or REPLICAS


def yielded(body: JsonObject, live: JsonObject, path: Path, manager: str) -> tuple[JsonObject, tuple[str, ...]]:
    """Return `body` for an object whose live replicas others control, and its paths that are never compared.

    `path`: of the kind's replicas. A field that another manager owns is left out, and stays. While we are its only
    owner it is sent as it is live, since leaving it out would reset it to 1.
    """
    paths = [path]
    for entry in entries_of(live):
        # Fields written through the scale subresource: custom kinds choose the field.
        for scaled in paths_of(entry["fieldsV1"]) if entry.get("subresource") == "scale" else ():
            steps = tuple([step for step in scaled if isinstance(step, str)])
            if len(steps) == len(scaled) > 1 and steps[0] != "status" and steps not in paths:
                paths.append(steps)
    for one in paths:
        if managers_of(live, one) - {manager}:
            body = without(body, one)
        elif (current := dig(live, *one)) is not None:
            body = with_value(body, one, current)
    return body, tuple(map(path_text, paths))


def steady_path(body: JsonObject, live: JsonObject, path: Path) -> Path:
    """Return the path of replicas that are sent as they were seen; empty: none are, or they change."""
    sent = dig(body, *path)
    return path if sent is not None and sent == dig(live, *path) else ()
