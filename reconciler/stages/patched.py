"""Mappings of one round made from those of the round before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

Key = TypeVar("Key", bound=tuple[Any, ...])
Value = TypeVar("Value")


def patched(before: Mapping[Key, Value], changes: Mapping[Key, Value | None]) -> Mapping[Key, Value]:
    """The mapping with the changes (None: the key goes), in the order of its keys; itself when nothing changes."""
    if not changes:
        return before
    after = dict(before)
    for key, value in changes.items():
        if value is None:
            after.pop(key, None)
        else:
            after[key] = value
    is_sorted = len(after) <= len(before) and all(key in before for key, value in changes.items() if value is not None)
    return after if is_sorted else dict(sorted(after.items(), key=_key))


def _key(item: tuple[Key, Value]) -> Key:
    return item[0]
