"""Seeded mutations of JSON trees that know their structure: what a broken or lying server may answer instead."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from typing import Any

Place = tuple[Any, Any]
"""A container, and the key or index of one value in it."""

_KEPT = 24
"""Above so many values in one container, only some of them are candidates: else all mutations would hit its last."""


def nested(depth: int) -> Any:
    """A value that is nested as deep as told."""
    tree: Any = "x"
    for number in range(depth):
        tree = {"a": tree} if number % 2 else [tree]
    return tree


RUBBISH: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 3, 2**31, 2**63, -(2**63), 1.5, 1e308,
    "", "x", "3", "True", "a/b", "../..", "\x1b[31m\n", "x" * 5000, "99999999999999999999999999E", "1e999999999", "-5",
    "2026-13-45T99:99:99Z", "{", '{"a":',
    [], {}, [None], [[]], [{}], [""], [1], {"": None}, {"a": None}, {"name": {}}, {"name": []}, {"a": {"b": []}},
    [{"name": None}], [{"type": {}, "status": []}],
    {"f:spec": None}, {"k:{": {}}, {'k:{"name":{}}': {}}, {"v:[]": {}}, {"i:x": {}},
)  # fmt: skip


def mutated(tree: Any, rng: random.Random) -> Any:
    """A copy of the tree, changed in one to three places."""
    copy = [json.loads(json.dumps(tree))]
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        places = [*_places(copy)]
        container, key = rng.choice(places)
        rng.choice(_WAYS)(container, key, rng)
    return copy[0] if copy else None


def _places(tree: Any) -> Iterator[Place]:
    """Every place of the tree, those of large containers thinned out."""
    stack = [tree]
    while stack:
        container = stack.pop()
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        step = max(1, len(keys) // _KEPT)
        for key in keys[::step]:
            yield container, key
            if isinstance(container[key], dict | list):
                stack.append(container[key])


def _replace(container: Any, key: Any, rng: random.Random) -> None:
    value = rng.choice(RUBBISH)
    container[key] = json.loads(json.dumps(value)) if isinstance(value, dict | list) else value


def _retype(container: Any, key: Any, rng: random.Random) -> None:
    """The same value in another type, as a careless proxy or conversion webhook may make of it."""
    value = container[key]
    choices: list[Callable[[], Any]] = [lambda: [value], lambda: {"value": value}, lambda: str(value), lambda: None]
    if isinstance(value, list):
        choices += [lambda: dict(enumerate_text(value)), lambda: value[0] if value else {}]
    if isinstance(value, dict):
        choices += [lambda: list(value.values()), lambda: list(value)]
    container[key] = rng.choice(choices)()


def enumerate_text(values: list[Any]) -> list[tuple[str, Any]]:
    """Values by their numbers as keys of JSON."""
    return [(str(number), value) for number, value in enumerate(values)]


def _remove(container: Any, key: Any, rng: random.Random) -> None:
    if isinstance(container, dict) or len(container) > 1:
        del container[key]
    else:
        container[key] = None


def _repeat(container: Any, key: Any, rng: random.Random) -> None:
    if isinstance(container, list):
        container[key:key] = [container[key]] * rng.choice((1, 1, 40))
    else:
        container[f"{key}x"] = container[key]


def _deepen(container: Any, key: Any, rng: random.Random) -> None:
    container[key] = nested(rng.choice((5, 90, 240, 400)))


_WAYS = (_replace, _replace, _replace, _replace, _retype, _retype, _remove, _remove, _repeat, _deepen)
