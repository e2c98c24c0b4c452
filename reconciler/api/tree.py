"""JSON trees: the bodies of Kubernetes objects. Immutable by convention after parsing; changes copy along the path.

The annotation `JsonObject` is a read-only mapping so that the type checker finds a write into a shared tree.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import orjson

Json: TypeAlias = Any
"""None, bool, int, float, str, list or dict with string keys, all the way down."""

JsonObject: TypeAlias = Mapping[str, Any]
"""A JSON object, never written into."""

Step: TypeAlias = str | int
"""One step into a tree: a key of a mapping or an index of a list."""


def dig(tree: Json, *steps: Step) -> Json:
    """The subtree at the steps, or None where a step is missing or meets another type.

    >>> dig({"spec": {"replicas": 2}}, "spec", "replicas")
    2
    """
    for step in steps:
        # By class first: instance checks, those against abstract classes above all, cost more than the rest.
        if tree.__class__ is dict:
            tree = tree.get(step)
        elif isinstance(step, str):
            if not isinstance(tree, Mapping):
                return None
            tree = tree.get(step)
        else:
            if not isinstance(tree, (list, Sequence)) or isinstance(tree, str) or not -len(tree) <= step < len(tree):
                return None
            tree = tree[step]
    return tree


def with_value(tree: JsonObject, steps: tuple[str, ...], value: Json) -> dict[str, Any]:
    """A tree with `value` at the mapping steps; every other subtree is shared with the original.

    A missing or non-mapping parent becomes a mapping.
    """
    assert steps, "with_value needs at least one step"
    top = here = {**tree}
    for step in steps[:-1]:
        below = here.get(step)
        below = here[step] = {**below} if isinstance(below, (dict, Mapping)) else {}
        here = below
    here[steps[-1]] = value
    return top


def without(tree: JsonObject, steps: tuple[str, ...]) -> JsonObject:
    """A tree without the key at the mapping steps; the tree itself when there is no such key."""
    assert steps, "without needs at least one step"
    head, rest = steps[0], steps[1:]
    if head not in tree:
        return tree
    if not rest:
        return {key: value for key, value in tree.items() if key != head}
    below = tree[head]
    if not isinstance(below, (dict, Mapping)):
        return tree
    pruned = without(below, rest)
    return tree if pruned is below else {**tree, head: pruned}


def with_leaf(tree: Json, steps: tuple[Step, ...], change: Callable[[Json], Json]) -> Json:
    """The tree with one value changed; the tree itself where no such value is."""
    if not steps:
        return tree if isinstance(tree, (Mapping, list)) else change(tree)
    head, rest = steps[0], steps[1:]
    if isinstance(tree, Mapping) and head in tree:
        return {**tree, head: with_leaf(tree[head], rest, change)}
    if isinstance(tree, list) and isinstance(head, int) and head < len(tree):
        return [with_leaf(below, rest, change) if index == head else below for index, below in enumerate(tree)]
    return tree


def canonical_bytes(tree: Json) -> bytes:
    """The tree as JSON with sorted keys: equal trees give equal bytes."""
    try:
        return orjson.dumps(tree, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        # An integer beyond 64 bits or half a surrogate pair; the standard library writes both.
        return json.dumps(tree, sort_keys=True, separators=(",", ":")).encode()


def digest_of(tree: Json) -> str:
    """A 128-bit digest of the tree as 32 hex characters, independent of key order."""
    return digest_of_bytes(canonical_bytes(tree))


def digest_of_bytes(data: bytes) -> str:
    """A 128-bit digest of bytes as 32 hex characters."""
    return hashlib.blake2b(data, digest_size=16).hexdigest()
