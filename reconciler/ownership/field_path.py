"""Paths of fields in readable form: `spec.template.spec.containers[name=nginx].image`.

A map key that is no plain word is in single quotes (`metadata.annotations['example.com/team']`), an item of a map list
has its keys (`ports[port=80,protocol=TCP]`), an item of a set its JSON value (`finalizers["x"]`, `ports[=80]`), an item
of any other list its number. `*` is any item or key in rules that match paths.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import orjson

from reconciler.api.content import Json
from reconciler.api.plan import MISSING
from reconciler.regex import regex

_WORD: Final = regex(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_BARE: Final = regex(r"[^\s,=\[\]'\"]+")
_STEP: Final = regex(
    r"""\.?(?P<word>[A-Za-z_$][A-Za-z0-9_$-]*|\*)|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]"""
    r"""|\[(?P<inner>\*|\d+|"(?:[^"\\]|\\.)*"|(?:[^"\]\[]|"(?:[^"\\]|\\.)*")+)\]"""
)
_PAIR: Final = regex(r"""(?P<name>[^=,]+)=(?P<value>"(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)""")


class Keyed(NamedTuple):
    """An item of a map list, by its key fields in name order."""

    pairs: tuple[tuple[str, Any], ...]


class Member(NamedTuple):
    """An item of a set list, by its value."""

    value: Any


class Wildcard(NamedTuple):
    """Any one step; in rules only."""


FieldStep: TypeAlias = str | int | Keyed | Member | Wildcard
FieldPath: TypeAlias = tuple[FieldStep, ...]


def path_text(path: FieldPath) -> str:
    """Return the path as people write it.

    >>> path_text(("spec", "ports", Keyed((("port", 80), ("protocol", "TCP"))), "nodePort"))
    'spec.ports[port=80,protocol=TCP].nodePort'
    """
    return "".join(_step_text(step) for step in path).removeprefix(".")


def _step_text(step: FieldStep) -> str:
    match step:
        case str():
            if _WORD.fullmatch(step):
                return f".{step}"
            return "['" + step.replace("\\", "\\\\").replace("'", "\\'") + "']"
        case int():
            return f"[{step}]"
        case Keyed(pairs):
            return "[" + ",".join(f"{name}={_bare_text(value)}" for name, value in pairs) + "]"
        case Member(value):
            # A bare number would be a position.
            return f"[{'' if isinstance(value, str) else '='}{_json_text(value)}]"
        case _:
            return "[*]"


def _bare_text(value: Json) -> str:
    is_bare = isinstance(value, str) and _BARE.fullmatch(value) is not None and _value_of(value) is value
    return value if is_bare else _json_text(value)


def _json_text(value: Json) -> str:
    # A hostile manifest may hold an integer beyond 64 bits, which has to be shown, not to end the comparison.
    return str(value) if type(value) is int else orjson.dumps(value).decode()


def _value_of(text: str) -> Json:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return text


@lru_cache(maxsize=4096)
def parse_path(text: str) -> FieldPath | None:
    r"""Return the path that `path_text` writes as this text, wildcards allowed; None when it is malformed.

    >>> parse_path('metadata.finalizers["x"]')
    ('metadata', 'finalizers', Member(value='x'))
    """
    steps: list[FieldStep] = []
    position = 0
    while position < len(text):
        match = _STEP.match(text, position)
        if match is None or (match["word"] and position and text[position] != "."):
            return None
        step = _parsed_step(match)
        if step is None:
            return None
        steps.append(step)
        position = match.end()
    return tuple(steps) if steps else None


def _parsed_step(match: re.Match[str]) -> FieldStep | None:
    if match["word"] is not None:
        return Wildcard() if match["word"] == "*" else match["word"]
    if match["quoted"] is not None:
        return re.sub(r"\\(.)", r"\1", match["quoted"])
    inner = match["inner"]
    if inner == "*":
        return Wildcard()
    if inner.isdigit():
        return int(inner)
    if inner.startswith('"'):
        return Member(_value_of(inner))
    if inner.startswith("="):
        return Member(_value_of(inner[1:]))
    pairs = []
    position = 0
    while position < len(inner):
        pair = _PAIR.match(inner, position)
        if pair is None or pair.end() == position:
            return None
        pairs.append((pair["name"], _value_of(pair["value"])))
        position = pair.end()
    return Keyed(tuple(sorted(pairs)))


def matches(pattern: FieldPath, path: FieldPath) -> bool:
    """Return whether a path is that of the pattern or below it. A pattern may name some keys of an item only."""
    return len(pattern) <= len(path) and all(map(_step_matches, pattern, path))


def _step_matches(pattern: FieldStep, step: FieldStep) -> bool:
    match pattern, step:
        case Wildcard(), _:
            return True
        case Keyed(wanted), Keyed(pairs):
            return all(pair in pairs for pair in wanted)
        case (str(text), Member(value)) | (Member(value), str(text)):
            return bool(value == text)
        case _:
            return pattern == step


def value_at(tree: Json, path: FieldPath) -> Json:
    """Return the value at the path, MISSING when it is not there."""
    for step in path:
        tree = child_of(tree, step)
        if tree is MISSING:
            return MISSING
    return tree


def child_of(tree: Json, step: FieldStep) -> Json:
    """Return one step down, MISSING when there is nothing."""
    match step:
        case str():
            return tree.get(step, MISSING) if isinstance(tree, Mapping) else MISSING
        case _ if not isinstance(tree, list):
            return MISSING
        case int():
            return tree[step] if step < len(tree) else MISSING
        case Member(value):
            return value if value in tree else MISSING
        case Keyed(pairs):
            index = index_of(tree, pairs)
            return MISSING if index is None else tree[index]
        case _:
            return MISSING


def index_of(items: list[Json], pairs: tuple[tuple[str, Any], ...]) -> int | None:
    """Return the position of the map list item with these key values."""
    for index, item in enumerate(items):
        if isinstance(item, Mapping) and all(
            (item.get(name, "TCP") if name == "protocol" else item.get(name)) == value for name, value in pairs
        ):
            return index
    return None
