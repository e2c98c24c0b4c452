"""JSON texts, typed as kubectl types them: a stream of values, each a document."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final, NoReturn

import orjson

from reconciler.model.tree import Json
from reconciler.regex import regex
from reconciler.stages.yaml.limits import MAX_DEPTH, MAX_NODES, YamlRefused, too_deep
from reconciler.stages.yaml.scalars import as_json_number

_BLANK: Final = regex(r"[ \t\r\n]*")
_MAX_DIGITS: Final = 400
"""More digits than any float has before its point; Python refuses to convert thousands of them."""


def json_values(data: bytes) -> Iterator[tuple[int, Json]]:
    """The values of the text in order as (line, value).

    Raises:
        YamlRefused: no JSON from here on, a duplicate key, a lone surrogate, NaN, too deep or too large.
    """
    text = data.decode("utf-8").removeprefix("\ufeff")
    position = _skip_blanks(text, 0)
    line, counted = 1, 0
    while position < len(text):
        line += text.count("\n", counted, position)
        counted = position
        value, position = _value(text, position, line)
        yield line, value
        position = _skip_blanks(text, position)


def _skip_blanks(text: str, position: int) -> int:
    match = _BLANK.match(text, position)
    return match.end() if match else position


def _value(text: str, position: int, line: int) -> tuple[Json, int]:
    try:
        value, end = _DECODER.raw_decode(text, position)
    except json.JSONDecodeError as error:
        raise YamlRefused("json-syntax", error.msg, error.lineno) from error
    except RecursionError as error:
        raise too_deep(line) from error
    except YamlRefused as error:
        raise YamlRefused(error.code, str(error), line) from error
    _check(value, line)
    try:
        orjson.dumps(value)
    except (TypeError, RecursionError) as error:
        raise YamlRefused("lone-surrogate", "half of a surrogate pair is no character", line) from error
    return value, end


def _check(value: Json, line: int) -> None:
    """Depth and size, level by level."""
    level, nodes = [value], 0
    for _ in range(MAX_DEPTH + 1):
        nodes += len(level)
        if nodes > MAX_NODES:
            raise YamlRefused("too-many-nodes", f"more than {MAX_NODES:,} values; split it", line)
        containers = [item for item in level if isinstance(item, dict | list)]
        if not containers:
            return
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
    raise too_deep(line)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    seen: set[str] = set()
    for key, _ in pairs:
        if key in seen:
            raise YamlRefused("duplicate-key", f"the key {key!r} is already in this object")
        seen.add(key)
    return members


def _integer(digits: str) -> int | float:
    if len(digits) > _MAX_DIGITS:
        raise YamlRefused("number-too-large", "a number has more digits than a float can hold")
    return as_json_number(int(digits))


def _float(digits: str) -> int | float:
    number = float(digits)
    if number in (float("inf"), float("-inf")):
        raise YamlRefused("number-too-large", "a number is too large for a float")
    return as_json_number(number)


def _constant(name: str) -> NoReturn:
    raise YamlRefused("yaml-not-finite", f"{name} is no JSON value")


_DECODER: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
)
