"""The values of a file in the order of its documents, as sops reads them: the input of its authentication code.

Source: sops 3.13, ToBytes of sops.go; go.yaml.in/yaml/v3, resolve.go; stores/json.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final, NamedTuple

from reconciler.regex import regex
from reconciler.secrets.ciphertext import is_ciphertext
from reconciler.yaml import MAX_DEPTH, MappingNode, Node, ScalarNode, SequenceNode, YamlRefused, compose

_TAG: Final = "tag:yaml.org,2002:"
_INTEGER: Final = regex(r"([-+]?)(?:(0[xX][0-9a-fA-F]+)|(0[bB][01]+)|0[oO]?([0-7]+)|([1-9][0-9]*|0))", re.ASCII)
_FLOAT: Final = regex(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", re.ASCII)
_SPECIAL: Final = {
    **dict.fromkeys((".nan", ".NaN", ".NAN"), b"NaN"),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), b"+Inf"),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), b"-Inf"),
}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})
_FLAGS: Final = {
    **dict.fromkeys(("true", "True", "TRUE"), b"True"),
    **dict.fromkeys(("false", "False", "FALSE"), b"False"),
}
_TIME: Final = regex(
    r"(\d{4})-(\d\d?)-(\d\d?)(?:(?:[Tt]|[ \t]+)(\d\d?):(\d\d?):(\d\d?)(?:\.(\d{1,9}))?(Z|[-+]\d\d:\d\d)?)?", re.ASCII
)
_INT64: Final = range(-(2**63), 2**63)


class Value(NamedTuple):
    """A value of a file: its path of names, its ciphertext or None, and else its authenticated bytes."""

    names: tuple[str, ...]
    ciphertext: str | None
    clear: bytes


class OrderUnknown(ValueError):
    """The file has a form that sops never writes; the message names it."""


def values_in_order(data: bytes, *, is_json: bool) -> Iterator[Value]:
    """Yield every value of every document of an encrypted file, but for sops' own metadata and for nulls.

    Raises OrderUnknown: the file cannot be read as sops reads it.
    """
    try:
        if is_json:
            yield from _of_json(json.loads(data, parse_int=_Number, parse_float=_Number), ())
            return
        for root in compose(data):
            if isinstance(root, MappingNode):
                yield from _of_node(root, (), set())
    except (YamlRefused, ValueError, RecursionError) as error:
        raise error if isinstance(error, OrderUnknown) else OrderUnknown("it is no whole file of sops") from error


def _of_node(node: Node, names: tuple[str, ...], visited: set[int]) -> Iterator[Value]:
    if isinstance(node, ScalarNode):
        clear = _clear_bytes(node)
        if clear is not None:
            is_sealed = is_ciphertext(node.value) and not (node.tag and not node.tag.endswith(":str"))
            yield Value(names, node.value if is_sealed else None, clear)
        return
    if id(node) in visited or len(names) > MAX_DEPTH:
        raise OrderUnknown("it has aliases, which sops writes out")
    visited.add(id(node))
    if isinstance(node, SequenceNode):
        for item in node.value:
            yield from _of_node(item, names, visited)
        return
    for key, below in node.value:
        if not isinstance(key, ScalarNode) or (not key.style and key.value == "<<"):
            raise OrderUnknown("it has keys that are no texts, or merges, which sops does not write")
        if names or key.value != "sops":
            yield from _of_node(below, (*names, key.value), visited)


def _clear_bytes(node: ScalarNode) -> bytes | None:
    text: str = node.value
    tag: str | None = node.tag  # The composer resolves nothing.
    if tag is not None:
        if tag == f"{_TAG}binary":
            try:
                return base64.b64decode("".join(text.split()), validate=True)
            except binascii.Error as error:
                raise OrderUnknown("a value under !!binary is no base64") from error
        if tag != f"{_TAG}str":
            raise OrderUnknown("it has tags other than !!str and !!binary")
        return text.encode()
    return text.encode() if node.style else plain_bytes(text)


def plain_bytes(text: str) -> bytes | None:
    """Return the bytes of a plain scalar that sops authenticates, by its type in Go's YAML; None for null.

    Raises OrderUnknown: an integer that sops cannot hold.

    >>> plain_bytes("0777"), plain_bytes("1.50"), plain_bytes("yes"), plain_bytes("true"), plain_bytes("~")
    (b'511', b'1.5', b'yes', b'True', None)
    """
    if text in _NULLS:
        return None
    if text in _FLAGS:
        return _FLAGS[text]
    if text in _SPECIAL:
        return _SPECIAL[text]
    if text[0] not in "+-.0123456789":
        return text.encode()
    time = _TIME.fullmatch(text)
    if time is not None and (moment := _moment(time)) is not None:
        return moment
    plain = text.replace("_", "")
    match = _INTEGER.fullmatch(plain)
    if match is not None:
        number = _integer(match)
        if number in _INT64:
            return str(number).encode()
        raise OrderUnknown("it has an integer of more than 64 bits")
    return go_float(float(plain)) if _FLOAT.fullmatch(plain) else text.encode()


def _integer(match: re.Match[str]) -> int:
    sign, hexadecimal, binary, octal, decimal = match.groups()
    number = int(hexadecimal or binary or octal or decimal, 16 if hexadecimal else 2 if binary else 8 if octal else 10)
    return -number if sign == "-" else number


def _moment(match: re.Match[str]) -> bytes | None:
    """The time as Go marshals it; None where there is no such time."""
    year, month, day, hour, minute, second, fraction, zone = match.groups()
    if not (1 <= int(month) <= 12 and 1 <= int(day) <= 31 and int(hour or 0) < 24 and int(minute or 0) < 60):
        return None
    rest = (fraction or "").rstrip("0")
    moment = f"{year}-{int(month):02}-{int(day):02}T{int(hour or 0):02}:{int(minute or 0):02}:{int(second or 0):02}"
    return f"{moment}{'.' if rest else ''}{rest}{'Z' if zone in (None, '+00:00') else zone}".encode()


def go_float(value: float) -> bytes:
    """A number as Go formats it, shortest and without an exponent.

    >>> go_float(1e30), go_float(1.5), go_float(3.0)
    (b'1000000000000000000000000000000', b'1.5', b'3')
    """
    if math.isnan(value) or math.isinf(value):
        return b"NaN" if math.isnan(value) else b"+Inf" if value > 0 else b"-Inf"
    text = format(Decimal(repr(value)), "f")
    return (text.rstrip("0").rstrip(".") if "." in text else text).encode()


class _Number(str):
    """A number of a JSON file as it was written."""

    __slots__ = ()


def _of_json(value: Any, names: tuple[str, ...]) -> Iterator[Value]:
    if isinstance(value, dict):
        for name, below in value.items():
            if names or name != "sops":
                yield from _of_json(below, (*names, name))
    elif isinstance(value, list):
        for below in value:
            yield from _of_json(below, names)
    elif isinstance(value, _Number):
        is_whole = value.lstrip("-").isdigit() and int(value) in _INT64
        yield Value(names, None, str(int(value)).encode() if is_whole else go_float(float(value)))
    elif isinstance(value, bool):
        yield Value(names, None, b"True" if value else b"False")
    elif value is not None:
        yield Value(names, value if is_ciphertext(value) else None, value.encode())
