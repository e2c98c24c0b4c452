"""JSON texts, and JSON or YAML kept as text inside a field."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, NoReturn

import orjson
import yaml

from reconciler.api.content import Json
from reconciler.regex import regex
from reconciler.yaml.nodes import bodies
from reconciler.yaml.scalars import as_json_number, plain_value
from reconciler.yaml.yaml_limits import MAX_DEPTH, MAX_NODES, YamlRefused, check_file, too_deep

_BLANK: Final = regex(r"[ \t\r\n]*")
_LAST_COMMA: Final = regex(r",\s*[}\]]")
_MAX_DIGITS: Final = 400
"""More digits than any float has before its point; Python refuses to convert thousands of them."""


def json_values(data: bytes) -> Iterator[tuple[int, Json]]:
    """The values of the text in order as (line, value).

    Raises YamlRefused: no JSON from here on, a duplicate key, a lone surrogate, NaN, too deep or too large.
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
        message = f"{error.msg} at column {error.colno}{_advice(text, error.pos)}"
        raise YamlRefused("json-syntax", message, error.lineno) from error
    except RecursionError as error:
        raise too_deep(line) from error
    except YamlRefused as error:
        raise YamlRefused(error.code, str(error), line) from error
    nodes = 0
    for depth, level in enumerate(_levels(value)):
        nodes += len(level)
        if nodes > MAX_NODES:
            raise YamlRefused("too-many-nodes", f"more than {MAX_NODES:,} values; split it", line)
        if depth == MAX_DEPTH and any(isinstance(item, dict | list) for item in level):
            raise too_deep(line)
    try:
        orjson.dumps(value)
    except (TypeError, RecursionError) as error:
        raise YamlRefused("lone-surrogate", "half of a surrogate pair is no character", line) from error
    return value, end


def _advice(text: str, position: int) -> str:
    rest, before = text[position : position + 2], text[:position].rstrip()
    if rest[:1] == "#" or rest in ("//", "/*"):
        return "; JSON has no comments: take it out, or let the file end with .yaml"
    if rest[:1] in ("}", "]") and before.endswith(","):
        return "; take out the comma before it"
    if _LAST_COMMA.match(text, position):  # Python 3.13 and newer point at it
        return "; take out the comma"
    return '; JSON quotes with "' if rest[:1] in ("'", "“") else ""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) == len(pairs):
        return members
    keys: set[str] = set()
    for key, _ in pairs:
        if key in keys:
            raise YamlRefused("duplicate-key", f"the key {key!r} is already in this object")
        keys.add(key)
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


class EmbeddedTextFault(ValueError):
    """The text cannot be read, or not be written so that it can; the message has the reason and the line."""


def read_embedded(text: str, syntax: str) -> Json:
    """Return the one value of a text. `syntax` is `json` or `yaml`.

    Raises Unreadable: it is malformed, unsafe, or holds several documents, all but the first of which would be lost.
    """
    try:
        data = text.encode()
        check_file(data)
        values = [read[1] for read in (json_values(data) if syntax == "json" else bodies(data))]
    except YamlRefused as error:
        raise EmbeddedTextFault(f"line {error.line}: {error}") from error
    except UnicodeEncodeError as error:
        raise EmbeddedTextFault("half of a surrogate pair is no character") from error
    if len(values) != 1:
        raise EmbeddedTextFault(f"it holds {len(values)} documents and not one")
    return values[0]


def write_embedded(value: Json, syntax: str) -> str:
    """Return the value as text that reads as the same value again.

    Raises Unreadable: it is deeper than what is read.
    """
    if next(islice(_levels(value), MAX_DEPTH + 1, None), None) is not None:
        raise EmbeddedTextFault(f"it would be deeper than {MAX_DEPTH} levels")
    if syntax == "json":
        return orjson.dumps(value).decode()
    written: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=2**31)
    return written


def _levels(value: Json) -> Iterator[list[Json]]:
    level = [value]
    while level:
        yield level
        containers = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]


class _Dumper(yaml.SafeDumper):
    """Quotes every text that kubectl would not read as that text again."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    if "\n" in text and _NEXT_LINE not in text:
        return dumper.represent_scalar(_STRING_TAG, text, style="|")
    try:
        is_bare = _NEXT_LINE not in text and plain_value(text) == text
    except YamlRefused:
        is_bare = False
    return dumper.represent_scalar(_STRING_TAG, text, style=None if is_bare else '"')


_STRING_TAG: Final = "tag:yaml.org,2002:str"
_NEXT_LINE: Final = "\x85"
"""A line break of YAML that reads as a blank again, unless it is escaped."""

_Dumper.add_representer(str, _represent_text)
