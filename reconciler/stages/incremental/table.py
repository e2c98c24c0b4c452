"""Results of one pipeline step by key, so that the next round computes only possible changes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet
from itertools import chain
from typing import Any, Generic, TypeVar

from reconciler.containment import SubjectFailed, named
from reconciler.stages.incremental.changed_keys import changed_keys
from reconciler.stages.incremental.patched import differing, with_differing

Key = TypeVar("Key", bound=tuple[Any, ...] | str)
Value = TypeVar("Value")


class Table(Generic[Key, Value]):
    """The values of this round, and which of them are others than those of the round before.

    `rows`: the values in the order of keys. An update puts another mapping in its place, so that one which was handed
    out stays as it was; the table is no mapping itself, lest it be handed out instead. `changed`: keys that came, went
    or have another value since the last update. A value that equals the one before is the same object.
    """

    __slots__ = ("changed", "rows")

    def __init__(self) -> None:
        """Start with no key."""
        self.rows: Mapping[Key, Value] = {}
        self.changed: AbstractSet[Key] = frozenset()

    def update(self, dirty: Iterable[Key], value: Callable[[Key], Value | None]) -> None:
        """Compute the values of `dirty` keys again. None: the key goes.

        Raises:
            SubjectFailed: the value of a key cannot be computed.
        """
        rows = self.rows
        keys = tuple(dirty)
        try:
            # Most keys of a large store have no value in most tables.
            found = {key: found for key in keys if (found := value(key)) is not None or key in rows}
        except SubjectFailed:
            raise
        except Exception:
            # Asked again one by one: which key it was is not worth a step for each of them as long as none raises.
            found = {key: named(key, value, key) for key in keys}
        self.put(found)

    def put(self, values: Mapping[Key, Value | None]) -> None:
        """Take values that were computed in another way. None: the key goes."""
        changes = differing(self.rows, values)
        self.rows, self.changed = with_differing(self.rows, changes), changes.keys()

    def overlay(self, dirty: Iterable[Key], *layers: Mapping[Key, Value]) -> None:
        """Take the first layer's value of each `dirty` key: for a table with no other content."""
        if self.rows:
            self.put({key: next((layer[key] for layer in layers if key in layer), None) for key in dirty})
            return
        # There was nothing in any layer, so that all that is there now is dirty.
        found: dict[Key, Value | None] = {}
        for layer in reversed(layers):
            found.update(layer)
        self.put(found)

    def replace(self, rows: Mapping[Key, Value]) -> None:
        """Take all rows of an input, in its order."""
        self.changed = changed_keys(self.rows, rows) if self.rows else rows.keys()
        self.rows = rows


def union(*dirty: Iterable[Key]) -> AbstractSet[Key]:
    """Return all of these keys. Sorted ones keep their order, which spares sorting them again.

    At a start the first of them has all keys, and is returned.
    """
    first = dirty[0] if dirty else ()
    if isinstance(first, AbstractSet) and all(isinstance(keys, AbstractSet) and keys <= first for keys in dirty[1:]):
        return first
    return dict.fromkeys(chain(*dirty)).keys()


def among(dirty: Collection[Key], *mappings: Collection[Key]) -> Collection[Key]:
    """Return the `dirty` keys in one of the mappings, or all of `dirty` if that is quicker.

    For a table that depends on these mappings: a key in none of them has no value, and is skipped.
    """
    if sum(map(len, mappings)) >= len(dirty):
        return dirty
    known = dirty if isinstance(dirty, AbstractSet) else frozenset(dirty)
    return [key for key in union(*mappings) if key in known]
