"""Field sets and merging, as structured-merge-diff defines them for server-side apply.

A path is a tuple of fieldsV1 elements: `f:spec`, `k:{"name":"web"}`, `v:"x"`. A set of paths is a manager's ownership.
Absent and null are the same.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from msgspec import Struct

from reconciler.sim.objects.shapes import Shape
from reconciler.sim.objects.status import Body, Json, internal

Path = tuple[str, ...]
Paths = frozenset[Path]
NOTHING: Paths = frozenset()


class Comparison(Struct, frozen=True, kw_only=True):
    """The changes from one tree to another."""

    added: Paths
    modified: Paths
    removed: Paths

    @property
    def is_same(self) -> bool:
        """Return whether nothing changed."""
        return not (self.added or self.modified or self.removed)


def encode(paths: Iterable[Path]) -> Body:
    """`fieldsV1` of a set."""
    return _without_lone_dots(_trie(paths))


def _trie(paths: Iterable[Path]) -> Body:
    root: Body = {}
    for path in paths:
        node = root
        for element in path:
            node = node.setdefault(element, {})
        node["."] = {}
    return root


def _without_lone_dots(node: Body) -> Body:
    if list(node) == ["."]:
        return {}
    return {key: {} if key == "." else _without_lone_dots(node[key]) for key in sorted(node)}


def decode(fields: Body, prefix: Path = ()) -> Paths:
    """The set that `fieldsV1` describes."""
    paths: set[Path] = set()
    for element, below in fields.items():
        if element == ".":
            paths.add(prefix)
        elif below:
            paths |= decode(below, (*prefix, element))
        else:
            paths.add((*prefix, element))
    return frozenset(paths)


def element_of(item: Json, shape: Shape, where: Path) -> str:
    """The path element of a list item in a keyed list or a set."""
    if shape.is_set:
        return f"v:{_compact(item)}"
    keys: Body = {}
    for key in shape.list_keys:
        value = item.get(key) if isinstance(item, dict) else None
        if value is None:
            value = shape.key_default(key)
        if value is not None:
            keys[key] = value
    if not keys:
        wanted = ", ".join(shape.list_keys)
        raise internal(f"failed to create typed patch object: {dotted(where)}: element 0: missing key {wanted}")
    return f"k:{_compact(keys)}"


def _compact(value: Json) -> str:
    return json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)


def is_atomic_list(shape: Shape) -> bool:
    """Return whether the list here is owned as a whole."""
    return not shape.is_set and not shape.list_keys


def by_element(items: list[Json], shape: Shape, where: Path) -> dict[str, Json]:
    """List items by path element, in order. A repeated key refuses the object."""
    by_name: dict[str, Json] = {}
    for item in items:
        element = element_of(item, shape, where)
        if element in by_name:
            key = ",".join(f'{k}="{v}"' for k, v in json.loads(element[2:]).items()) if element[0] == "k" else element
            raise internal(f"failed to create typed patch object: {dotted(where)}: duplicate entries for key [{key}]")
        by_name[element] = item
    return by_name


def field_set(value: Json, shape: Shape, where: Path = ()) -> Paths:
    """Return the fields that an applier of this tree owns: leaves, items of keyed lists, and empty maps."""
    paths: set[Path] = set()
    _collect(value, shape, where, paths)
    return frozenset(paths)


def _collect(value: Json, shape: Shape, where: Path, paths: set[Path]) -> None:
    if value is None:
        return
    if isinstance(value, dict) and not shape.is_atomic_map:
        for name, below in value.items():
            path = (*where, f"f:{name}")
            if below is None or below == {}:
                paths.add(path)
            else:
                _collect(below, shape.field(name), path, paths)
    elif isinstance(value, list) and not is_atomic_list(shape):
        for element, item in by_element(value, shape, where).items():
            path = (*where, element)
            _collect(item, shape.item(), path, paths)
            paths.add(path)
    else:
        paths.add(where)


def compare(old: Json, new: Json, shape: Shape) -> Comparison:
    """Return the additions, changes and removals from `old` to `new`. A new branch counts with each node on it."""
    sets: tuple[set[Path], set[Path], set[Path]] = (set(), set(), set())
    _compare(old, new, shape, (), sets)
    added, modified, removed = sets
    return Comparison(added=frozenset(added), modified=frozenset(modified), removed=frozenset(removed))


_ABSENT = object()
"""In a new map: not there at all. A null is a map or list that lost its last entry and still counts as there."""


def _compare(old: Json, new: Json, shape: Shape, where: Path, sets: tuple[set[Path], set[Path], set[Path]]) -> None:
    is_gone, new = new is _ABSENT, None if new is _ABSENT else new
    if old is None and new is None:
        return
    added, modified, removed = sets
    children = _children(old, new, shape, where)
    if children is None:
        if old is not None and new is not None:
            if old != new:
                modified.add(where)
            return
    else:
        for element, before, after, below in children:
            _compare(before, after, below, (*where, element), sets)
    if where and old is None:
        added.add(where)
    elif where and is_gone:
        removed.add(where)


def _children(old: Json, new: Json, shape: Shape, where: Path) -> list[tuple[str, Json, Json, Shape]] | None:
    """Pairs to compare below two values, or None when they are a leaf."""
    if not (old or new):
        return None
    if _both(dict, old, new) and not shape.is_atomic_map:
        before, after = old or {}, new or {}
        return [(f"f:{n}", before.get(n), after.get(n, _ABSENT), shape.field(n)) for n in {**before, **after}]
    if _both(list, old, new) and not is_atomic_list(shape):
        mine, other = by_element(old or [], shape, where), by_element(new or [], shape, where)
        return [(e, mine.get(e), other.get(e, _ABSENT), shape.item()) for e in {**mine, **other}]
    return None


def _both(kind: type, old: Json, new: Json) -> bool:
    return isinstance(old, kind | None) and isinstance(new, kind | None)


def merge(live: Json, config: Json, shape: Shape, where: Path = ()) -> Json:
    """Return `live` with the content of `config`; items of keyed lists merge, atomic values are replaced."""
    if isinstance(live, dict) and isinstance(config, dict) and not shape.is_atomic_map:
        merged = dict(live)
        for name, value in config.items():
            merged[name] = merge(live.get(name), value, shape.field(name), (*where, f"f:{name}"))
        return merged
    if isinstance(live, list) and isinstance(config, list) and not is_atomic_list(shape):
        return _merge_lists(live, config, shape, where)
    return config


def _merge_lists(live: list[Json], config: list[Json], shape: Shape, where: Path) -> list[Json]:
    """Return shared items in the order of `config`; items of only `live` stay before their successors."""
    mine, theirs = by_element(live, shape, where), by_element(config, shape, where)
    order, at = list(mine), 0
    shared = [element for element in theirs if element in mine]
    merged: list[Json] = []
    for element, item in theirs.items():
        while at < len(order) and order[at] != element:
            if order[at] not in theirs:
                merged.append(mine[order[at]])
            elif not shared or order[at] == shared[0]:
                break
            at += 1
        if at < len(order) and order[at] == element:
            at += 1
        if shared and shared[0] == element:
            shared.pop(0)
        merged.append(merge(mine.get(element), item, shape.item(), (*where, element)))
    return merged + [mine[element] for element in order[at:] if element not in theirs]


def remove(value: Json, doomed: Paths, shape: Shape) -> Json:
    """The tree without the values at the doomed paths; a map or list that loses all it had becomes null."""
    return _remove(value, _trie(doomed), shape, ())


def _remove(value: Json, trie: Body, shape: Shape, where: Path) -> Json:
    if isinstance(value, dict):
        left: Body = {}
        for name, below in value.items():
            node = trie.get(f"f:{name}")
            if node is None:
                left[name] = below
            elif "." not in node:
                left[name] = _remove(below, node, shape.field(name), (*where, f"f:{name}"))
        return left or None
    if isinstance(value, list) and not is_atomic_list(shape):
        items: list[Json] = []
        for element, item in by_element(value, shape, where).items():
            node = trie.get(element)
            if node is None:
                items.append(item)
            elif "." not in node:
                items.append(_remove(item, node, shape.item(), (*where, element)))
        return items or None
    return value


def without_nulls(value: Json) -> Json:
    """The tree without fields that are null."""
    if isinstance(value, dict):
        return {name: without_nulls(below) for name, below in value.items() if below is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def with_named_parents(paths: Paths) -> Paths:
    """The set with every map field on the way to a member, so that emptied maps go with their last field."""
    return paths | {path[:depth] for path in paths for depth in range(1, len(path)) if path[depth - 1][0] == "f"}


def dotted(path: Path) -> str:
    """A path as messages print it: `.spec.template.spec.containers[name="web"].image`."""
    text = ""
    for element in path:
        kind, _, rest = element.partition(":")
        if kind == "f":
            text += f".{rest}"
        elif kind == "k":
            text += "[" + ",".join(f"{k}={json.dumps(v)}" for k, v in json.loads(rest).items()) + "]"
        else:
            text += f"[={rest}]"
    return text
