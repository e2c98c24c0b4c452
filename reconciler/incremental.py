"""Tables that recompute only the keys that changed, and the keys that depend on them."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import chain, compress, repeat
from operator import is_, is_not
from typing import Any, Final, Generic, Self, TypeVar, cast

from reconciler.containment import SubjectFailed, with_subject

Key = TypeVar("Key", bound=Hashable)


def changed_keys(old: Mapping[Key, Any], new: Mapping[Key, Any]) -> set[Key]:
    """Return the keys that came, went or have another value."""
    if old is new:
        return set()
    if len(old) == len(new) and not any(map(is_not, old, new)):
        # The usual case, and ten times as quick: the same key objects in the same order, most values the same objects.
        return {key for key in compress(new, map(is_not, old.values(), new.values())) if old[key] != new[key]}
    changed = {key for key, value in new.items() if (known := old.get(key)) is not value and known != value}
    if len(old) != len(new) or changed:
        changed |= old.keys() - new.keys()
    return changed


PatchedKey = TypeVar("PatchedKey", bound=tuple[Any, ...] | str)
Value = TypeVar("Value")


def by_key(pairs: Iterable[tuple[Key, Value]]) -> dict[Key, list[Value]]:
    """Return the values of each key, in their order."""
    values: dict[Key, list[Value]] = {}
    for key, value in pairs:
        values.setdefault(key, []).append(value)
    return values


_MAX_INSERTED: Final = 64
"""Above so many new keys, sorting all of them is quicker than finding the place of each."""


def patched(
    before: Mapping[PatchedKey, Value], changes: Mapping[PatchedKey, Value | None]
) -> Mapping[PatchedKey, Value]:
    """Return the mapping with changes (None: the key goes), in order of keys; itself if nothing changes."""
    return with_differing(before, differing(before, changes))


def differing(
    before: Mapping[PatchedKey, Value], changes: Mapping[PatchedKey, Value | None]
) -> Mapping[PatchedKey, Value | None]:
    """Return the changes that differ from the mapping."""
    if not before:
        if any(map(is_, changes.values(), repeat(None))):
            return {key: value for key, value in changes.items() if value is not None}
        return changes
    changed: dict[PatchedKey, Value | None] = {}
    # A policy is the value of all that it claims, and dear to compare when it has thousands of selectors.
    compared: dict[tuple[int, int], bool] = {}
    for key, value in changes.items():
        known = before.get(key)
        if known is value:
            continue
        pair = (id(known), id(value))
        is_same = compared.get(pair)
        if is_same is None:
            is_same = compared[pair] = known == value
        if not is_same:
            changed[key] = value
    return changed


def with_differing(
    before: Mapping[PatchedKey, Value], changes: Mapping[PatchedKey, Value | None]
) -> Mapping[PatchedKey, Value]:
    """Return the mapping with changes, each of which differs from it, in the order of its keys."""
    if not changes:
        # Copying a large mapping touches every object in it.
        return before
    if not before:
        rows = cast("Mapping[PatchedKey, Value]", changes)  # There is no key that could go.
        ordered = sorted(rows)
        # Nearly always it is in order already.
        return rows if ordered == list(rows) else {key: rows[key] for key in ordered}
    after = dict(before)
    for key, value in changes.items():
        if value is None:
            del after[key]
        else:
            after[key] = value
    added = [key for key, value in changes.items() if value is not None and key not in before]
    return _in_order(after, added) if added else after


def _in_order(mapping: dict[PatchedKey, Value], added: list[PatchedKey]) -> dict[PatchedKey, Value]:
    """Return the mapping in the order of its keys; all but those `added` at its end are in it."""
    if len(added) > _MAX_INSERTED:
        return {key: mapping[key] for key in sorted(mapping)}
    added.sort()
    keys = list(mapping)[: -len(added)]
    values = list(mapping.values())[: -len(added)]
    for key in added:
        place = bisect(keys, key)
        keys.insert(place, key)
        values.insert(place, mapping[key])
    return dict(zip(keys, values, strict=True))


Looked = TypeVar("Looked", bound=Hashable)


class Dependents(Generic[Key, Looked]):
    """The dependencies of each key, and the dependents of each dependency."""

    __slots__ = ("_keys", "_looked")

    def __init__(self) -> None:
        self._looked: dict[Key, tuple[Looked, ...]] = {}
        self._keys: dict[Looked, set[Key]] = {}

    def put(self, key: Key, on: Collection[Looked]) -> None:
        """From now on a key looks at these alone; at nothing: it is forgotten."""
        before = self._looked.pop(key, ())
        after = tuple(on) if len(on) < 2 else tuple(dict.fromkeys(on))
        if after:
            self._looked[key] = after
        if after == before:
            return
        for looked in before:
            keys = self._keys[looked]
            keys.discard(key)
            if not keys:
                del self._keys[looked]
        for looked in after:
            known = self._keys.get(looked)
            if known is None:
                self._keys[looked] = {key}
            else:
                known.add(key)

    def drop(self, key: Key) -> None:
        """Forget a key, which looks at nothing any more, if it ever did."""
        if key in self._looked:
            self.put(key, ())

    def update(self, dirty: Iterable[Key], on: Callable[[Key], Collection[Looked]]) -> None:
        """Compute the dependencies of `dirty` keys again."""
        known = self._looked
        for key in dirty:
            looked = on(key)
            if looked or key in known:
                self.put(key, looked)

    def of(self, changed: Iterable[Looked]) -> set[Key]:
        """Return the keys that look at any of these."""
        return _united(self._keys, changed)

    def on(self, keys: Iterable[Key]) -> set[Looked]:
        """Return the dependencies of these keys."""
        return _united(self._looked, keys)

    @property
    def looked_at(self) -> Collection[Looked]:
        """Return all that any key looks at."""
        return self._keys.keys()


From = TypeVar("From", bound=Hashable)
To = TypeVar("To", bound=Hashable)


def _united(mapping: dict[From, tuple[To, ...]] | dict[From, set[To]], keys: Iterable[From]) -> set[To]:
    return set().union(*(mapping[key] for key in keys if key in mapping)) if mapping else set()


TableKey = TypeVar("TableKey", bound=tuple[Any, ...] | str)


class Table(Generic[TableKey, Value]):
    """The values of this round, and which of them are others than those of the round before.

    `rows`: in the order of keys, replaced by each update and never changed. `changed`: keys that came, went or have
    another value. An equal value is the same object.
    """

    __slots__ = ("changed", "rows")

    def __init__(self) -> None:
        self.rows: Mapping[TableKey, Value] = {}
        self.changed: AbstractSet[TableKey] = frozenset()

    @classmethod
    def of(cls, rows: Mapping[TableKey, Value]) -> Self:
        """Return a table of which all is new."""
        table = cls()
        table.replace(rows)
        return table

    def derive(
        self,
        value: Callable[[TableKey], Value | None],
        *sources: Table[TableKey, Any] | Collection[TableKey],
        within: Sequence[Collection[TableKey]] = (),
    ) -> Self:
        """Compute the values of keys that changed in a source; outside of `within` none. Raises SubjectFailed."""
        dirty = union(*(source.changed if isinstance(source, Table) else source for source in sources))
        self.update(among(dirty, *within, self.rows) if within else dirty, value)
        return self

    def update(self, dirty: Iterable[TableKey], value: Callable[[TableKey], Value | None]) -> None:
        """Compute the values of `dirty` keys again; None: the key goes. Raises SubjectFailed."""
        rows = self.rows
        keys = tuple(dirty)
        try:
            # Most keys of a large store have no value in most tables.
            values = {key: row for key in keys if (row := value(key)) is not None or key in rows}
        except SubjectFailed:
            raise
        except Exception:
            # Asked again one by one: which key it was is not worth a step for each of them as long as none raises.
            values = {key: with_subject(key, value, key) for key in keys}
        self.put(values)

    def put(self, values: Mapping[TableKey, Value | None]) -> None:
        """Take values that were computed in another way. None: the key goes."""
        changes = differing(self.rows, values)
        self.rows, self.changed = with_differing(self.rows, changes), changes.keys()

    def overlay(self, *layers: Table[TableKey, Value]) -> Self:
        """Take each key's value from the first layer that has it, the same tables at each call; return the table."""
        last = layers[-1]
        if not any(layer.rows or layer.changed for layer in layers[:-1]):
            # A copy of a large mapping would touch every object in it.
            self.rows, self.changed = last.rows, last.changed
        elif self.rows:
            dirty = union(*(layer.changed for layer in layers))
            rows = [layer.rows for layer in layers]
            self.put({key: next((layer[key] for layer in rows if key in layer), None) for key in dirty})
        else:
            # There was nothing in any layer, so that all that is there now is new.
            values: dict[TableKey, Value | None] = {}
            for layer in reversed(layers):
                values.update(layer.rows)
            self.put(values)
        return self

    def replace(self, rows: Mapping[TableKey, Value]) -> None:
        """Take all rows of an input, in its order."""
        self.changed = changed_keys(self.rows, rows) if self.rows else rows.keys()
        self.rows = rows


def union(*dirty: Iterable[TableKey]) -> AbstractSet[TableKey]:
    """Return all of these keys, sorted ones in order; a first set that contains the others is returned itself."""
    first = dirty[0] if dirty else ()
    if isinstance(first, AbstractSet) and all(isinstance(keys, AbstractSet) and keys <= first for keys in dirty[1:]):
        return first
    return dict.fromkeys(chain(*dirty)).keys()


def among(dirty: Collection[TableKey], *mappings: Collection[TableKey]) -> Collection[TableKey]:
    """Return the `dirty` keys in one of the mappings, or all of `dirty` if that is quicker."""
    if sum(map(len, mappings)) >= len(dirty):
        return dirty
    known = dirty if isinstance(dirty, AbstractSet) else frozenset(dirty)
    return [key for key in union(*mappings) if key in known]
