"""One walk over desired, live and owned fields at once.

An equal value costs a comparison and nothing else: paths are built only for differences, since a fleet has a hundred
thousand pairs and nearly all of them are equal.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, TypeAlias

from reconciler.api.content import Json, JsonObject
from reconciler.api.plan import MISSING
from reconciler.diff.canonical import ALLOCATED, ValueComparison, covered, same_scalar, says_nothing, stored_null
from reconciler.diff.foreign import SharedList
from reconciler.documents import FREE, NodeForm, Schema, SchemaNode, key_names
from reconciler.ownership import (
    NOTHING,
    FieldPath,
    FieldStep,
    Keyed,
    Member,
    owns,
    owns_within,
    path_text,
    step_of,
    value_at,
)

Trail: TypeAlias = tuple[Any, ...]
"""A path as nested pairs (rest, last step), () at the top: cheap to extend, turned into a path only when needed."""

Owned: TypeAlias = Mapping[str, Any]


def path_of(trail: Trail) -> FieldPath:
    """Return the path of a trail."""
    steps: list[FieldStep] = []
    while trail:
        trail, step = trail
        steps.append(step)
    return tuple(reversed(steps))


class Walk:
    """Collects differences: `changed` (path, before, after), `doubts` of engine T, `shared` lists with other items."""

    def __init__(
        self, *, live: JsonObject, previous: JsonObject | None, schema: Schema | None, others: tuple[Owned, ...]
    ) -> None:
        """`others` are the FieldsV1 trees of every other manager of the live object."""
        self.live = live
        self.previous = previous
        self.keeps_empty = schema is None or schema.keeps_empty
        self.others = others
        self.changed: list[tuple[FieldPath, Json, Json]] = []
        self.removed: list[FieldPath] = []
        self.doubts: list[str] = []
        self.shared: list[SharedList] = []

    def objects(self, desired: JsonObject, live: JsonObject, owned: Owned, node: SchemaNode, trail: Trail) -> None:
        """Compare two mappings, then our fields below them that are no longer desired."""
        fields, item = node.fields, node.item
        count = 0
        for name, want in desired.items():
            child = fields.get(name) or item or self._unknown(node, trail, name)
            ours = owned.get("f:" + name) if owned else None
            value = live.get(name, MISSING)
            kind = want.__class__
            if kind is dict or kind is list:
                self._container(want, value, ours, child, (trail, name))
            elif want is None:
                if self._null(value, child, (trail, name), is_entry=name not in fields):
                    continue
            elif value.__class__ is kind and want == value:
                pass
            else:
                self._scalar(want, value, ours is not None, child, (trail, name))
            if ours is not None:
                count += 1
        if len(owned) - ("." in owned) > count:
            self._emptied(desired, trail)
            for raw, inner in owned.items():
                name = raw[2:]
                is_null = desired.get(name, MISSING) is None and name in fields and not fields[name].is_nullable
                if raw != "." and (name not in desired or is_null):
                    self.gone(inner, node.child(name) or FREE, (trail, name), is_struct_field=name in fields)

    def _emptied(self, want: Json, trail: Trail) -> None:
        # Pruning leaves null behind then, which the schema of a custom resource may refuse.
        if not want and self.keeps_empty and trail:
            self.doubts.append(f"{path_text(path_of(trail))} loses its last entry, which the API server may refuse")

    def _unknown(self, node: SchemaNode, trail: Trail, name: str) -> SchemaNode:
        if node.shape is not NodeForm.ANY:
            where = ".".join(map(str, path_of(trail))) or "the object"
            self.doubts.append(f"the schema has no field {name} in {where}")
        return FREE

    def _null(self, live: Json, node: SchemaNode, trail: Trail, *, is_entry: bool) -> bool:
        """Compare a wanted null; return True if it asks for nothing, so that the field counts as left out."""
        if node.is_nullable or node.shape is NodeForm.ANY:
            if live is not None and (live is not MISSING or node.is_nullable):
                self.changed.append((path_of(trail), live, None))
            return False
        if is_entry:
            if not same_scalar(stored_null(node), live, node.format):
                self.changed.append((path_of(trail), live, stored_null(node)))
            return False
        return True

    def _scalar(self, want: Json, live: Json, is_ours: bool, node: SchemaNode, trail: Trail) -> None:
        if live is MISSING:
            if node.drops_zero and not want:
                return
        elif same_scalar(want, live, node.format):
            return
        elif (
            node.drops_zero
            and not want
            and (trail[1] in ALLOCATED or (is_ours and value_at(self.previous, path_of(trail)) == want))
        ):
            # Empty means any value; or it was sent before, and the live value is its default.
            return
        self.changed.append((path_of(trail), live, want))

    def _container(self, want: Json, live: Json, ours: Owned | None, node: SchemaNode, trail: Trail) -> None:
        if not self.keeps_empty and want == live:
            # Then nothing of ours is there that is not wanted. Free-form values are walked, since true equals 1 here.
            return
        if live.__class__ is not want.__class__:
            # An empty map of ours that is not there: pruning its last entry took the map away with it.
            is_pruned = not want and ours is not None
            if live in (MISSING, None) and (is_pruned or says_nothing(want, node, keeps_empty=self.keeps_empty)):
                return
            self.changed.append((path_of(trail), live, want))
            return
        if node.shape is NodeForm.ANY and want.__class__ is list:
            node = _deduced(ours)
        if node.is_atomic or (want.__class__ is list and not node.keys and not node.is_set):
            self._atomic(want, live, ours is not None, node, trail)
        elif want.__class__ is dict:
            self.objects(want, live, ours or NOTHING, node, trail)
        elif node.keys:
            self._map_list(want, live, ours or NOTHING, node, trail)
        else:
            self._set(want, live, ours or NOTHING, node, trail)

    def _atomic(self, want: Json, live: Json, is_ours: bool, node: SchemaNode, trail: Trail) -> None:
        if covered(want, live, MISSING, node, keeps_empty=self.keeps_empty) is ValueComparison.EQUAL:
            return
        path = path_of(trail)
        # Fields of the stored value alone are its defaults as long as nobody else wrote it since.
        before = value_at(self.previous, path) if is_ours and self.previous is not None else MISSING
        verdict = covered(want, live, before, node, keeps_empty=self.keeps_empty)
        if verdict is ValueComparison.EQUAL:
            return
        if verdict is ValueComparison.DOUBTFUL:
            self.doubts.append("a list or map that is replaced as a whole has fields that may be defaults")
        self.changed.append((path, live, want))

    def _map_list(self, want: list[Json], live: list[Json], owned: Owned, node: SchemaNode, trail: Trail) -> None:
        assert node.item is not None, "a map list has items"
        names, defaults = key_names(node)
        places = indexed(live, names, defaults)
        wanted = indexed(want, names, defaults)
        if places is None or wanted is None:
            self.doubts.append("items of a map list lack a key or have the same one twice")
            self._atomic(want, live, bool(owned), node, trail)
            return
        ours = {_key_values(raw): inner for raw, inner in owned.items() if raw[:2] == "k:"}
        last, in_order = -1, True
        for key, index in wanted.items():
            place, there = places.get(key), (trail, Keyed(tuple(zip(names, key, strict=True))))
            if place is None:
                self.changed.append((path_of(there), MISSING, want[index]))
                continue
            in_order, last = in_order and place > last, place
            self.objects(want[index], live[place], ours.get(key, NOTHING), node.item, there)
        if not in_order:
            shared = [key for key in places if key in wanted]
            self.changed.append((path_of(trail), [list(k) for k in shared], [list(k) for k in wanted if k in places]))
        if ours:
            self._emptied(want, trail)
        for key, inner in ours.items():
            if key not in wanted and key in places:
                step = Keyed(tuple(zip(names, key, strict=True)))
                self.gone(inner, node.item, (trail, step), is_struct_field=False)
        strangers = tuple([key for key in places if key not in wanted and key not in ours])
        if strangers:
            path = path_of(trail)
            sent = value_at(self.previous, path)
            sent_places = indexed(sent, names, defaults) if isinstance(sent, list) else None
            record = SharedList(
                path,
                names,
                want={key: want[index] for key, index in wanted.items()},
                live={key: live[index] for key, index in places.items()},
                sent={key: sent[index] for key, index in (sent_places or {}).items()},
                strangers=strangers,
            )
            self.shared.append(record)

    def _set(self, want: list[Json], live: list[Json], owned: Owned, node: SchemaNode, trail: Trail) -> None:
        if any(value.__class__ in (dict, list) for value in (*want, *live)):
            self.doubts.append("items of a set are no scalars")
            self._atomic(want, live, bool(owned), node, trail)
            return
        if len(set(want)) != len(want):
            self.doubts.append("a set has the same item twice")
        for value in want:
            if value not in live:
                self.changed.append((path_of((trail, Member(value))), MISSING, value))
        if owned:
            self._emptied(want, trail)
        for raw in owned:
            step = step_of(raw) if raw[:2] == "v:" else None
            if isinstance(step, Member) and step.value not in want:
                self.gone(NOTHING, FREE, (trail, step), is_struct_field=False)

    def gone(self, owned: Owned, node: SchemaNode, trail: Trail, *, is_struct_field: bool) -> None:
        """Handle an undesired place with owned fields at or below it, as server-side apply prunes.

        A struct's field goes unless others own something at or below it, an item unless others own it itself. What
        remains loses only our own fields; without any it is a hand-over, no change.
        """
        path = path_of(trail)
        before = value_at(self.live, path)
        if before is MISSING or (node.is_inline and not before) or (before is None and not node.is_nullable):
            return
        is_owned = not owned or "." in owned
        if node.is_inline and not owned and not node.is_atomic:
            # It was sent as {}: all live fields are defaults or from others. An atomic one is ours as a whole.
            return
        held = owns_within if is_struct_field else owns
        if (is_owned or is_struct_field) and not any(held(tree, path) for tree in self.others):
            # A map goes entry by entry, which reads better than the map as a whole.
            is_map = node.item is not None and not node.fields and isinstance(before, dict)
            self.removed += [(*path, name) for name in before] if is_map and owned else [path]
            return
        if owned and is_struct_field and not node.is_inline:
            self.doubts.append(f"others hold fields below {path_text(path)}, which may not be enough without ours")
        for raw, inner in owned.items():
            step = step_of(raw) if raw != "." else None
            if step is None:
                continue
            child = (node.child(step) if isinstance(step, str) else node.item) or FREE
            self.gone(inner, child, (trail, step), is_struct_field=isinstance(step, str) and step in node.fields)


def _deduced(owned: Owned | None) -> SchemaNode:
    """Return the kind of a list that no schema describes, from the way its ownership is recorded."""
    for raw in owned or ():
        step = step_of(raw)
        if isinstance(step, Keyed):
            return SchemaNode(shape=NodeForm.LIST, item=FREE, keys=tuple(name for name, _ in step.pairs))
        if isinstance(step, Member):
            return SchemaNode(shape=NodeForm.LIST, item=FREE, is_set=True)
    return FREE


@lru_cache(maxsize=65536)
def _key_values(raw: str) -> tuple[Json, ...]:
    step = step_of(raw)
    return tuple(value for _, value in step.pairs) if isinstance(step, Keyed) else ()


def indexed(
    items: list[Json], names: tuple[str, ...], defaults: tuple[Json, ...]
) -> dict[tuple[Json, ...], int] | None:
    """Return positions by key; None when an item is no mapping, lacks a key, or repeats one."""
    places: dict[tuple[Json, ...], int] = {}
    for index, item in enumerate(items):
        if item.__class__ is not dict:
            return None
        if len(names) == 1:
            key: tuple[Json, ...] = (item.get(names[0], defaults[0]),)
        else:
            key = tuple([item.get(name, default) for name, default in zip(names, defaults, strict=True)])
        for value in key:
            if value is MISSING or value.__class__ is dict or value.__class__ is list:
                return None
        places[key] = index
    return places if len(places) == len(items) else None
