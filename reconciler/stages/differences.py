"""What differs between two mappings of which most values are the same objects."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress
from operator import is_not
from typing import Any, TypeVar

from reconciler.model.fleet import Template
from reconciler.model.refs import Identity

Key = TypeVar("Key", bound=tuple[str, ...])


def changed_keys(old: Mapping[Key, Any], new: Mapping[Key, Any]) -> set[Key]:
    """Keys that came, went or have another value."""
    if old is new:
        return set()
    changed = {key for key, value in new.items() if (known := old.get(key)) is not value and known != value}
    if len(old) != len(new) or changed:
        changed |= old.keys() - new.keys()
    return changed


def changed_templates(old: Mapping[Identity, Template], new: Mapping[Identity, Template]) -> set[Identity]:
    """Templates that came, went or changed."""
    if len(old) == len(new):
        # Nearly always the same templates in the same order, most of them the same objects.
        pairs = compress(zip(old.values(), new.values(), strict=True), map(is_not, old.values(), new.values()))
        differing = list(pairs)
        if all(one.identity == other.identity for one, other in differing):
            return {one.identity for one, other in differing if one != other}
    return changed_keys(old, new)
