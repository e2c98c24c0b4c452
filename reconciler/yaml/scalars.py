"""The type of a YAML scalar, exactly as kubectl reads it.

kubectl reads YAML through sigs.k8s.io/yaml, which types scalars by YAML 1.1 with Go's number syntax, turns the result
into JSON, and reads that with 64-bit integers. So `on` is true, `0644` is 420, `1e3` is 1000, `1.0` is 1, `22:22` and
dates are strings, and an integer beyond 64 bits becomes a float. A differential test holds this file to kubectl.
"""

from __future__ import annotations

import re
import struct
from base64 import b64decode
from binascii import Error as InvalidBase64
from decimal import Decimal
from typing import Any, Final

from reconciler.api.content import Json
from reconciler.regex import regex
from reconciler.yaml.yaml_limits import YamlRefused

INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1
_UINT64_MAX: Final = 2**64 - 1

_BOOLS: Final[dict[str, bool]] = {
    form: value
    for value, words in ((True, ("y", "yes", "true", "on")), (False, ("n", "no", "false", "off")))
    for word in words
    for form in (word, word.capitalize(), word.upper())
}
_NULLS: Final = frozenset(("", "~", "null", "Null", "NULL"))
_NOT_FINITE: Final = frozenset(
    sign + form
    for sign, forms in (("", (".nan", ".NaN", ".NAN")), ("", (".inf", ".Inf", ".INF")),
                        ("+", (".inf", ".Inf", ".INF")), ("-", (".inf", ".Inf", ".INF")))
    for form in forms
)  # fmt: skip

_NUMBER_START: Final = frozenset("+-.0123456789")
_INTEGER: Final = regex(r"([+-]?)(?:0[xX]([0-9a-fA-F]+)|0[oO]?([0-7]+)|0[bB]([01]+)|(0|[1-9][0-9]*))", re.ASCII)
_SIGNED_BINARY: Final = regex(r"0b([+-][01]+)", re.ASCII)
_FLOAT: Final = regex(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", re.ASCII)
_POINT_FLOAT: Final = regex(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?", re.ASCII)
_TIMESTAMP: Final = regex(r"[0-9]{4}-[0-9]", re.ASCII)

_TAG: Final = "tag:yaml.org,2002:"
_MAX_MEMO: Final = 20_000
MAX_MEMO_TEXT: Final = 64


def remember(memo: dict[str, Any], text: str, value: Any) -> None:
    """Keep the value of a short text. Values are immutable, so sharing is safe."""
    if len(text) <= MAX_MEMO_TEXT:
        if len(memo) >= _MAX_MEMO:
            memo.clear()
        memo[text] = value


def plain_value(text: str) -> Json:
    """The value of an unquoted, untagged scalar.

    >>> [plain_value(text) for text in ("on", "0644", "1e3", "1.0", "22:22", "~", "v1")]
    [True, 420, 1000, 1, '22:22', None, 'v1']

    Raises YamlRefused: infinity, not-a-number, and floats that do not fit.
    """
    if text in _BOOLS:
        return _BOOLS[text]
    if text in _NULLS:
        return None
    if text in _NOT_FINITE:
        raise YamlRefused("yaml-not-finite", f"{text} has no JSON value; quote it if text is meant")
    if text[0] not in _NUMBER_START:
        return text
    number = _number(text)
    return text if number is None else as_json_number(number)


def _number(text: str) -> int | float | None:
    """The number before JSON narrows it; None when the text is a string."""
    digits = text.replace("_", "")
    if text[0] == ".":
        return _float(digits) if _POINT_FLOAT.fullmatch(text) else None
    match = _INTEGER.fullmatch(digits)
    if match is not None:
        number = _integer(match)
        if INT64_MIN <= number <= INT64_MAX or (number <= _UINT64_MAX and not match[1]):
            return number
    if _FLOAT.fullmatch(digits):
        return _float(digits)
    # Go reads the digits after `0b` with their own sign; more than 64 bits stay text.
    signed = _SIGNED_BINARY.fullmatch(digits)
    return int(signed[1], 2) if signed and INT64_MIN <= int(signed[1], 2) <= INT64_MAX else None


def _integer(match: re.Match[str]) -> int:
    sign, sixteen, eight, two, ten = match.groups()
    for digits, base in ((sixteen, 16), (eight, 8), (two, 2)):
        if digits is not None:
            return int(sign + digits, base)
    # Python refuses to convert thousands of digits, which are out of range anyway.
    return int(sign + ten) if len(ten) < 40 else (-1 if sign == "-" else 1) * 10**40


def _float(text: str) -> float | None:
    """None when the number does not fit a float: Go then leaves the text a string."""
    number = float(text)
    return number if number not in (float("inf"), float("-inf")) else None


def as_json_number(number: float) -> int | float:
    """The number that is left after Go printed it as JSON and read it again: integral ones are 64-bit integers.

    >>> as_json_number(1.0), as_json_number(1.5), as_json_number(2**63)
    (1, 1.5, 9.223372036854776e+18)
    """
    if isinstance(number, int):
        return number if INT64_MIN <= number <= INT64_MAX else float(number)
    if abs(number) < 1e21 and number.is_integer():
        printed = int(Decimal(repr(number)))
        return printed if INT64_MIN <= printed <= INT64_MAX else number
    return number


def tagged_value(tag: str, text: str) -> Json:
    """The value of a scalar with an explicit tag; tags that YAML does not define leave the text a string.

    Raises YamlRefused: the text is not what the tag says.
    """
    match tag.removeprefix(_TAG) if tag.startswith(_TAG) else "":
        case "str":
            return text
        case "binary":
            try:
                data = b64decode("".join(text.split("\n")).replace("\r", ""), validate=True)
            except (InvalidBase64, ValueError) as error:
                raise YamlRefused("yaml-tag-mismatch", "!!binary with invalid base64 data") from error
            return data.decode("utf-8", errors="replace")
        case "null" | "bool" | "int" | "float" | "timestamp" as name:
            raw = _number(text) if text and text[0] in _NUMBER_START and text not in _NOT_FINITE else None
            value: Json = text
            if text in _NULLS:
                actual, value = "null", None
            elif text in _BOOLS:
                actual, value = "bool", _BOOLS[text]
            elif raw is not None:
                actual, value = ("int" if isinstance(raw, int) else "float"), as_json_number(raw)
            else:
                actual = "timestamp" if _TIMESTAMP.match(text) else "str"
            if actual == name or (name == "float" and actual == "int"):
                return value
            raise YamlRefused("yaml-tag-mismatch", f"!!{name} on a value that is no {name}")
        case _:
            return text


def key_text(text: str) -> str:
    """Return the JSON key of an unquoted, untagged key: `on` is "true", `0644` is "420".

    Raises YamlRefused: a null key, an unsigned 64-bit number, or what `plain_value` refuses.
    """
    if text in _NULLS:
        raise YamlRefused("yaml-key-not-a-string", "a key is missing or null; write a name, or quote it")
    if text in _BOOLS:
        return "true" if _BOOLS[text] else "false"
    number = _number(text) if text[0] in _NUMBER_START and text not in _NOT_FINITE else None
    if number is None:
        return _NOT_FINITE_KEY[text.lower()] if text in _NOT_FINITE else text
    if isinstance(number, int):
        if number > INT64_MAX:
            raise YamlRefused("yaml-key-not-a-string", "a number beyond 64 bits is no key; quote it")
        return str(number)
    if abs(number) >= _FLOAT32_OVERFLOW:
        return "-.inf" if number < 0 else ".inf"
    narrow = _narrowed(number)
    digits = next(form for form in (f"{narrow:.{n}e}" for n in range(17)) if _narrowed(float(form)) == narrow)
    mantissa, exponent = digits.split("e")
    if not -4 <= int(exponent) < 6 or narrow == 0:
        return digits if narrow else ("-0" if digits[0] == "-" else "0")
    return f"{Decimal(mantissa).scaleb(int(exponent)):f}"


def _narrowed(number: float) -> float:
    return float(struct.unpack("f", struct.pack("f", number))[0])


_FLOAT32_OVERFLOW: Final = 2.0**128 - 2.0**103
_NOT_FINITE_KEY: Final = {".nan": ".nan", ".inf": ".inf", "+.inf": ".inf", "-.inf": "-.inf"}

_TYPOGRAPHIC: Final = frozenset("\u2018\u2019\u201c\u201d\u201e\u00ab")
"""Quotes of word processors."""


def surprise(text: str, *, is_key: bool) -> str:
    """Return the surprising reading of this plain scalar, or the empty string.

    Words that are booleans, numbers that begin with 0, and integers beyond 64 bits. Digits are not repeated in the
    text: they could be a secret's.
    """
    if text in _BOOLS and text.lower() not in ("true", "false"):
        return f'the key {text} is read as "{key_text(text)}"' if is_key else f"{text} is read as {key_text(text)}"
    if text[:1] in _TYPOGRAPHIC and not is_key:
        return "typographic quotes are part of the text: the quotes of YAML are ' and \""
    if text[:1] not in _NUMBER_START or is_key:
        return ""
    digits = text.lstrip("+-")
    if len(digits) > 1 and digits[0] == "0" and digits[1].isdigit() and isinstance(plain_value(text), int):
        return "a number that begins with 0 is read as " + (
            "decimal, since it has digits above 7" if "8" in digits or "9" in digits else "octal"
        )
    if digits.isdigit() and isinstance(plain_value(text), float):
        return "an integer beyond 64 bits is read as an inexact number"
    return ""
