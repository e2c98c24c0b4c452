"""Mappings of one round made from those of the round before."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Mapping
from itertools import repeat
from operator import is_
from typing import Any, Final, TypeVar, cast

Key = TypeVar("Key", bound=tuple[Any, ...] | str)
Value = TypeVar("Value")

_MAX_INSERTED: Final = 64
"""Above so many new keys, sorting all of them is quicker than finding the place of each."""


def patched(before: Mapping[Key, Value], changes: Mapping[Key, Value | None]) -> Mapping[Key, Value]:
    """The mapping with the changes (None: the key goes), in the order of its keys; itself when nothing changes."""
    return with_differing(before, differing(before, changes))


def differing(before: Mapping[Key, Value], changes: Mapping[Key, Value | None]) -> Mapping[Key, Value | None]:
    """Return the changes that differ from the mapping."""
    if not before:
        if any(map(is_, changes.values(), repeat(None))):
            return {key: value for key, value in changes.items() if value is not None}
        return changes
    found: dict[Key, Value | None] = {}
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
            found[key] = value
    return found


def with_differing(before: Mapping[Key, Value], changes: Mapping[Key, Value | None]) -> Mapping[Key, Value]:
    """Return the mapping with changes, each of which differs from it, in the order of its keys."""
    if not changes:
        # Copying a large mapping touches every object in it.
        return before
    if not before:
        said = cast("Mapping[Key, Value]", changes)  # There is no key that could go.
        ordered = sorted(said)
        # Nearly always it is in order already.
        return said if ordered == list(said) else {key: said[key] for key in ordered}
    after = dict(before)
    for key, value in changes.items():
        if value is None:
            del after[key]
        else:
            after[key] = value
    added = [key for key, value in changes.items() if value is not None and key not in before]
    return _in_order(after, added) if added else after


def _in_order(mapping: dict[Key, Value], added: list[Key]) -> dict[Key, Value]:
    """The mapping in the order of its keys; all but those `added` at its end are in it."""
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
