"""JSON or YAML that is kept as text inside a field, such as a configuration file in a ConfigMap.

YAML is read as kubectl reads it, and written in block style with sorted keys: comments and the order of keys are lost,
as in Karmada, which goes through JSON. JSON keeps the order of its keys and is written without blanks.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
import yaml

from reconciler.model.tree import Json
from reconciler.stages.yaml.json import json_values
from reconciler.stages.yaml.limits import MAX_DEPTH, YamlRefused, check_encoding, check_file, check_shape
from reconciler.stages.yaml.nodes import build, compose, may_have_aliases
from reconciler.stages.yaml.scalars import ScalarRefused, plain_value


class Unreadable(ValueError):
    """The text cannot be read, or not be written so that it can; the message has the reason and the line."""


def read_embedded(text: str, syntax: str) -> Json:
    """Return the one value of a text. `syntax` is `json` or `yaml`.

    Raises:
        Unreadable: it is malformed, unsafe, or holds several documents, all but the first of which would be lost.
    """
    try:
        data = text.encode()
        values = list(_json(data) if syntax == "json" else _yaml(data))
    except YamlRefused as error:
        raise Unreadable(f"line {error.line}: {error}") from error
    except UnicodeEncodeError as error:
        raise Unreadable("half of a surrogate pair is no character") from error
    if len(values) != 1:
        raise Unreadable(f"it holds {len(values)} documents and not one")
    return values[0]


def write_embedded(value: Json, syntax: str) -> str:
    """Return the value as text that reads as the same value again.

    Raises:
        Unreadable: it is deeper than what is read.
    """
    if _is_deeper_than(value, MAX_DEPTH):
        raise Unreadable(f"it would be deeper than {MAX_DEPTH} levels")
    if syntax == "json":
        return orjson.dumps(value).decode()
    written: str = yaml.dump(value, Dumper=_Dumper, default_flow_style=False, allow_unicode=True, width=2**31)
    return written


def _json(data: bytes) -> list[Json]:
    check_file(data)
    return [value for _, value in json_values(data)]


def _yaml(data: bytes) -> list[Json]:
    check_file(data)
    check_encoding(data)
    check_shape(data)
    has_aliases = may_have_aliases(data)
    return [build(node, [], has_aliases=has_aliases) for node in compose(data)]


def _is_deeper_than(value: Json, depth: int) -> bool:
    """Return whether lists and mappings are nested deeper, level by level."""
    level = [value]
    for _ in range(depth + 1):
        containers = [item for item in level if isinstance(item, dict | list)]
        level = [child for item in containers for child in (item.values() if isinstance(item, dict) else item)]
        if not level:
            return False
    return True


class _Dumper(yaml.SafeDumper):
    """Quotes every text that kubectl would not read as that text again."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    if "\n" in text and _NEXT_LINE not in text:
        return dumper.represent_scalar(_STRING_TAG, text, style="|")
    is_bare = _reads_as_text(text) and _NEXT_LINE not in text
    return dumper.represent_scalar(_STRING_TAG, text, style=None if is_bare else '"')


def _reads_as_text(text: str) -> bool:
    try:
        return bool(plain_value(text) == text)
    except ScalarRefused:
        return False


_STRING_TAG: Final = "tag:yaml.org,2002:str"
_NEXT_LINE: Final = "\x85"
"""A line break of YAML that reads as a blank again, unless it is escaped."""

_Dumper.add_representer(str, _represent_text)
