"""Owners of fields: `metadata.managedFields` through server-side apply and ordinary updates."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from reconciler.sim.objects.fields import (
    NOTHING,
    Path,
    Paths,
    compare,
    decode,
    dotted,
    encode,
    field_set,
    merge,
    remove,
    with_named_parents,
    without_nulls,
)
from reconciler.sim.objects.shapes import Shape
from reconciler.sim.objects.status import Body, Refused

_STRIPPED_METADATA = "name namespace creationTimestamp selfLink uid generation managedFields resourceVersion"
_STRIPPED: Paths = frozenset(
    {("f:apiVersion",), ("f:kind",), ("f:metadata",)}
    | {("f:metadata", f"f:{name}") for name in _STRIPPED_METADATA.split()}
)
# The fields that a Go struct of a built-in kind always holds, so that an update never "adds" a parent of this list.
_POD_TEMPLATE: Body = {"metadata": {}, "spec": {"containers": []}}
_SKELETON: Body = {
    "metadata": {},
    "spec": {"template": _POD_TEMPLATE, "strategy": {}, "updateStrategy": {}, "scaleTargetRef": {}, "containers": [],
             "podSelector": {},
             "jobTemplate": {"metadata": {}, "spec": {"template": _POD_TEMPLATE}}, "names": {}},
    "status": {"loadBalancer": {}, "nodeInfo": {}},
}  # fmt: skip


class Manager(NamedTuple):
    """The key of one managedFields entry."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


class Entry(Struct, frozen=True):
    """The fields of one manager, and the time of its last change."""

    paths: Paths
    time: str


Managed = dict[Manager, Entry]


def read(body: Body) -> Managed:
    """The entries of an object."""
    entries: Managed = {}
    for raw in body["metadata"].get("managedFields") or ():
        if not raw:
            continue
        key = Manager(raw.get("manager", ""), raw["operation"], raw.get("apiVersion", ""), raw.get("subresource", ""))
        entries[key] = Entry(decode(raw.get("fieldsV1") or {}), raw.get("time", ""))
    return entries


def written(body: Body, managed: Managed) -> Body:
    """The object with these entries: appliers first, then by time and name."""
    entries: list[Body] = []
    for key, entry in sorted(managed.items(), key=lambda pair: (pair[0].operation, pair[1].time, *pair[0])):
        raw: Body = {"manager": key.name, "operation": key.operation, "apiVersion": key.api_version}
        if entry.time:
            raw["time"] = entry.time
        raw |= {"fieldsType": "FieldsV1", "fieldsV1": encode(entry.paths)}
        if key.subresource:
            raw["subresource"] = key.subresource
        entries.append(raw)
    metadata = {name: value for name, value in body["metadata"].items() if name != "managedFields"}
    if entries:
        metadata["managedFields"] = entries
    return {**body, "metadata": metadata}


def _without_entries(body: Body) -> Body:
    return {**body, "metadata": {k: v for k, v in body["metadata"].items() if k != "managedFields"}}


def after_update(live: Body | None, new: Body, who: Manager, shape: Shape, time: str) -> Managed:
    """Return the entries after an ordinary write: the writer owns the changed fields, others lose them.

    Entries in the body itself are taken (that is how they are rewritten); `[{}]` and `[]` clear them. An object that
    has none is not tracked until somebody applies.
    """
    entries = new["metadata"].get("managedFields")
    managed = read(live) if live is not None else {}
    if entries is not None and not any(entries):
        managed = {}
    elif entries:
        managed = read(new)
    if live is not None and not managed:
        return {}
    change = compare(_full(live, shape), _full(_without_entries(new), shape), shape)
    return _moved(managed, who, time, gained=change.modified | change.added, removed=change.removed)


def _full(body: Body | None, shape: Shape) -> Body:
    plain = {} if body is None else _without_entries(body)
    return _over(_SKELETON, plain) if shape.kind else plain


def _over(skeleton: Body, body: Body) -> Body:
    merged = {**skeleton, **body}
    for name, below in skeleton.items():
        if isinstance(body.get(name), dict):
            merged[name] = _over(below, body[name])
    return merged


def _moved(managed: Managed, who: Manager, time: str, *, gained: Paths, removed: Paths) -> Managed:
    gained, removed = gained - _STRIPPED, removed - _STRIPPED
    moved: Managed = {}
    for key, entry in managed.items():
        paths = entry.paths - removed if key == who else entry.paths - gained - removed
        if paths:
            moved[key] = Entry(paths, entry.time)
    if gained or (who in managed and managed[who].paths & removed):
        mine = (moved[who].paths if who in moved else NOTHING) | gained
        if mine:
            moved[who] = Entry(mine, time)
    return moved


class Applied(Struct, frozen=True, kw_only=True):
    """The outcome of a server-side apply, before defaulting."""

    body: Body
    managed: Managed


def applied(live: Body, config: Body, who: Manager, shape: Shape, *, force: bool, time: str) -> Applied:
    """Merge a configuration into an object; fields that the applier dropped and nobody else owns are removed.

    Raises Refused (409, one cause a field) when it would change what another manager owns, unless forced.
    """
    managed = read(live)
    base = _without_entries(live)
    if not managed and live["metadata"].get("uid"):
        managed = after_update(None, base, Manager("before-first-apply", "Update", who.api_version), shape, time)
    previous = managed[who].paths if who in managed else NOTHING
    configured = field_set(config, shape)
    mine = configured - _STRIPPED
    new = merge(base, config, shape)
    others = frozenset[Path]().union(*(entry.paths for key, entry in managed.items() if key != who))
    if previous:
        new = _pruned(new, previous, configured | others, shape)
    change = compare(base, new, shape)
    changed = (change.modified | change.added) - _STRIPPED
    if not force:
        _refuse_conflicts(managed, who, changed)
    entries = {
        key: Entry(paths, entry.time)
        for key, entry in managed.items()
        if key != who and (paths := entry.paths - changed - change.removed)
    }
    same = who in managed and managed[who].paths == mine
    if mine:
        entries[who] = Entry(mine, managed[who].time if same and change.is_same else time)
    return Applied(body=without_nulls(new), managed=entries)


def _pruned(merged: Body, previous: Paths, owned: Paths, shape: Shape) -> Body:
    """Take away the applier's former fields, then restore owned ones and those it never owned."""
    everything = with_named_parents(field_set(merged, shape))
    pruned = remove(merged, with_named_parents(previous), shape) or {}
    gone = everything - with_named_parents(field_set(pruned, shape))
    gone -= with_named_parents(owned)
    gone &= with_named_parents(previous)
    result: Body = remove(merged, gone, shape) or {}
    return result


def _refuse_conflicts(managed: Managed, who: Manager, changed: Paths) -> None:
    causes = [
        (_said(key), field)
        for key in sorted(managed)
        if key != who
        for field in sorted(dotted(path) for path in managed[key].paths & changed)
    ]
    if not causes:
        return
    names = {manager for manager, _ in causes}
    if len(causes) == 1:
        text = f"conflict with {causes[0][0]}: {causes[0][1]}"
    else:
        text = "\n".join(
            f"conflicts with {manager}:\n" + "\n".join(f"- {field}" for s, field in causes if s == manager)
            for manager in sorted(names)
        )
    plural = "s" if len(causes) > 1 else ""
    details = {
        "causes": [
            {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
            for manager, field in causes
        ]
    }
    raise Refused(409, "Conflict", f"Apply failed with {len(causes)} conflict{plural}: {text}", details)


def _said(key: Manager) -> str:
    if key.operation == "Apply":
        return f'"{key.name}"'
    subresource = f' with subresource "{key.subresource}"' if key.subresource else ""
    return f'"{key.name}"{subresource} using {key.api_version}'
