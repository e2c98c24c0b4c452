"""Functions of Go's templates and of sprig, and how Go prints a value. What is not here is refused by name.

Source: pkg.go.dev/text/template, Functions; masterminds.github.io/sprig; Argo CD, applicationset/utils/utils.go.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from reconciler.hydration import is_in_range
from reconciler.importers.argocd.go_limits import MANY, GoFailure, fits, pattern
from reconciler.yaml import EmbeddedTextFault, read_embedded, write_embedded

_EXPONENT_MIN: Final = -4
_EXPONENT_MAX: Final = 6
_SPRINTF: Final = re.compile(r"%(%|[-+0]*\d{0,3}(?:\.\d{1,3})?[sdvqftx])")


def is_true(value: Any) -> bool:
    """Return whether Go takes a value for true: it is not empty."""
    return value is not None and value not in ("", 0, False, [], {})


def printed(value: Any) -> str:
    """Return a value as Go prints it; a missing one is an error, where Go prints `<no value>`."""
    if value is None:
        raise GoFailure("names no parameter of the generator", is_missing=True)
    return go_text(value)


def normalized(text: str) -> str:
    """A text as a name in DNS, as Argo CD's function of that name makes one."""
    return re.sub(r"[^-a-z0-9.]", "-", text.lower())[:253].strip("-.")


def as_go(value: Any) -> Any:
    """Return parameters as Go decodes them of JSON: each number is a float."""
    if isinstance(value, Mapping):
        return {str(key): as_go(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [as_go(inner) for inner in value]
    return float(value) if isinstance(value, int) and not isinstance(value, bool) else value


def go_text(value: Any) -> str:
    """Return a value as `%v` prints it."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, Mapping):
        return f"map[{' '.join(f'{key}:{go_text(inner)}' for key, inner in sorted(value.items()))}]"
    if isinstance(value, list):
        return f"[{' '.join(map(go_text, value))}]"
    return str(value)


def _float(value: float) -> str:
    """Return a number as `%v` does: the shortest digits, with an exponent from a million on."""
    exponent = Decimal(repr(value)).adjusted() if math.isfinite(value) else 0
    if value and not _EXPONENT_MIN <= exponent < _EXPONENT_MAX:
        shortest = repr(value).partition("e")[0].replace(".", "").lstrip("-0").rstrip("0")
        rest = f".{shortest[1:]}" if shortest[1:] else ""
        return f"{'-' if value < 0 else ''}{shortest[0]}{rest}e{exponent:+03d}"
    return f"{value:.0f}" if value.is_integer() else repr(value)


def _plain(value: Any) -> Any:
    """Return a value for JSON and YAML, where 3.0 is 3."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return int(value) if isinstance(value, float) and value == int(value) else value


def _json(value: Any) -> str:
    text = json.dumps(_plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _read(text: str, syntax: str) -> Any:
    try:
        return as_go(read_embedded(text, syntax))
    except EmbeddedTextFault as error:
        raise GoFailure(f"reads {syntax} that is none: {error}") from error


def _same(one: Any, *others: Any) -> bool:
    """Compare as `eq` does, to each of the others; a float and an integer are no two of one kind."""
    if not others:
        raise GoFailure("compares one value with nothing")
    kinds = {_kind(value) for value in (one, *others)} - {"invalid"}
    if len(kinds) > 1:
        raise GoFailure("compares values of two kinds (numbers of parameters are floats)")
    return any(one == other for other in others)


def _kind(value: Any) -> str:
    names = {bool: "bool", str: "string", int: "int", float: "float64", list: "slice", dict: "map"}
    return names.get(type(value), "invalid")


def _before(one: Any, other: Any) -> bool:
    if _kind(one) != _kind(other) or _kind(one) not in ("string", "int", "float64"):
        raise GoFailure("compares values of two kinds (numbers of parameters are floats)")
    return bool(one < other)


def _index(container: Any, *steps: Any) -> Any:
    for step in steps:
        if isinstance(container, list):
            if not 0 <= int(step) < len(container):
                raise GoFailure("names no element of a list")
            container = container[int(step)]
        elif isinstance(container, Mapping):
            container = container.get(step)
        else:
            raise GoFailure("names no parameter of the generator", is_missing=True)
    return container


def _int(value: Any) -> int:
    if isinstance(value, str):
        match = re.fullmatch(r"\s*([-+]?\d+)\s*", value)
        return int(match[1]) if match else 0
    return int(value or 0)


def _sprintf(form: str, *values: Any) -> str:
    rest = list(values)

    def one(match: re.Match[str]) -> str:
        how = match[1]
        if how == "%":
            return "%"
        value = rest.pop(0)
        verb, flags = how[-1], how[:-1]
        if verb == "q":
            return json.dumps(value, ensure_ascii=False)
        if verb == "d" and isinstance(value, float):
            raise GoFailure("prints a float by %d (numbers of parameters are floats)")
        return f"%{flags}{verb}" % value if verb in "dfx" else f"%{flags}s" % go_text(value)

    text = _SPRINTF.sub(one, form)
    if rest:
        raise GoFailure("gives printf more values than it prints")
    return text


def _indent(count: int, text: str) -> str:
    fits(int(count), text.count("\n") + 1)
    return " " * int(count) + text.replace("\n", "\n" + " " * int(count))


def _repeat(count: int, text: str) -> str:
    fits(len(text), int(count))
    return text * int(count)


def _replace(old: str, new: str, text: str) -> str:
    fits(len(new), text.count(old))
    return text.replace(old, new)


def _join(sign: str, values: Any) -> str:
    texts = [*map(go_text, values if isinstance(values, list) else [values])]
    fits(len(sign), len(texts))
    return sign.join(texts)


def _replace_all(form: str, text: str, new: str, filled: Any) -> str:
    fits(len(new), len(text) + 1)
    return pattern(form, text).sub(filled, text)


def _replacement(text: str) -> Callable[[re.Match[str]], str]:
    names = re.compile(r"\$(?:\$|\{(\w+)\}|(\w+))")

    def filled(match: re.Match[str]) -> str:
        def one(name: re.Match[str]) -> str:
            if name[0] == "$$":
                return "$"
            key = name[1] or name[2]
            try:
                return match[int(key) if key.isdigit() else key] or ""
            except IndexError:
                return ""

        return names.sub(one, text)

    return filled


def _dig(*arguments: Any) -> Any:
    *steps, fallback, value = arguments
    for step in steps:
        if not isinstance(value, Mapping) or step not in value:
            return fallback
        value = value[step]
    return value


def _merged(*maps: Any, over: bool) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for each in maps if over else reversed(maps):
        result = merged(result, each)
    return result


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Return one mapping over another, mappings in them merged; what is empty above wins over nothing.

    Source: dario.cat/mergo, WithOverride.
    """
    result = dict(below)
    for key, value in above.items():
        inner = result.get(key)
        if isinstance(inner, Mapping) and isinstance(value, Mapping):
            result[key] = merged(inner, value)
        elif is_true(value) or key not in result:
            result[key] = value
    return result


def _until(*bounds: int) -> list[int]:
    numbers = range(*map(int, bounds))
    if len(numbers) > MANY:
        raise GoFailure("counts too far")
    return list(numbers)


def _fail(why: str) -> Any:
    raise GoFailure(f"fails: {why}")


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise GoFailure("takes what is no list for one")
    return value


def _print(*values: Any) -> str:
    """Return values beside one another, with a blank between two that are no texts."""
    text = ""
    for at, value in enumerate(values):
        is_apart = at and not isinstance(value, str) and not isinstance(values[at - 1], str)
        text += f"{' ' if is_apart else ''}{go_text(value)}"
    return text


_STRINGS: Final[dict[str, Callable[..., Any]]] = {
    "lower": str.lower,
    "upper": str.upper,
    "trim": str.strip,
    "trimAll": lambda cut, text: text.strip(cut),
    "trimPrefix": lambda cut, text: text.removeprefix(cut),
    "trimSuffix": lambda cut, text: text.removesuffix(cut),
    "replace": _replace,
    "contains": lambda part, text: part in text,
    "hasPrefix": lambda part, text: text.startswith(part),
    "hasSuffix": lambda part, text: text.endswith(part),
    "repeat": _repeat,
    "nospace": lambda text: re.sub(r"\s", "", text),
    "trunc": lambda length, text: text[:length] if length >= 0 else text[length:],
    "substr": lambda start, end, text: text[max(int(start), 0) : int(end)] if int(end) >= 0 else text[int(start) :],
    "quote": lambda *values: " ".join(
        json.dumps(go_text(one), ensure_ascii=False) for one in values if one is not None
    ),
    "squote": lambda *values: " ".join(f"'{go_text(one)}'" for one in values if one is not None),
    "cat": lambda *values: " ".join(go_text(one) for one in values if one is not None),
    "indent": _indent,
    "nindent": lambda count, text: f"\n{_indent(count, text)}",
    "join": _join,
    "splitList": lambda sign, text: text.split(sign) if sign else list(text),
    "split": lambda sign, text: {f"_{at}": part for at, part in enumerate(text.split(sign))},
    "splitn": lambda sign, most, text: {f"_{at}": part for at, part in enumerate(text.split(sign, int(most) - 1))},
    "regexMatch": lambda form, text: pattern(form, text).search(text) is not None,
    "regexFind": lambda form, text: (pattern(form, text).search(text) or [""])[0],
    "regexReplaceAll": lambda form, text, new: _replace_all(form, text, new, _replacement(new)),
    "regexReplaceAllLiteral": lambda form, text, new: _replace_all(form, text, new, lambda _: new),
    "sha256sum": lambda text: hashlib.sha256(text.encode()).hexdigest(),
    "sha1sum": lambda text: hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest(),
    "b64enc": lambda text: base64.b64encode(text.encode()).decode(),
    "b64dec": lambda text: base64.b64decode(text, validate=True).decode(),
    "toString": go_text,
    "print": _print,
    "println": lambda *values: " ".join(map(go_text, values)) + "\n",
    "printf": _sprintf,
    "normalize": normalized,
    "semverCompare": lambda allowed, text: is_in_range(text, allowed),
}
_VALUES: Final[dict[str, Callable[..., Any]]] = {
    "not": lambda value: not is_true(value),
    "eq": _same,
    "ne": lambda one, other: not _same(one, other),
    "lt": _before,
    "le": lambda one, other: not _before(other, one),
    "gt": lambda one, other: _before(other, one),
    "ge": lambda one, other: not _before(one, other),
    "default": lambda fallback, value=None: value if is_true(value) else fallback,
    "empty": lambda value: not is_true(value),
    "coalesce": lambda *values: next(filter(is_true, values), None),
    "ternary": lambda yes, no, value: yes if value else no,
    "fail": _fail,
    "kindOf": _kind,
    "int": _int,
    "int64": _int,
    "atoi": _int,
    "float64": lambda value: float(value or 0),
    "add": lambda *values: sum(map(_int, values)),
    "add1": lambda value: _int(value) + 1,
    "sub": lambda one, other: _int(one) - _int(other),
    "mul": lambda *values: math.prod(map(_int, values)),
    "div": lambda one, other: int(_int(one) / _int(other)),
    "mod": lambda one, other: int(math.fmod(_int(one), _int(other))),
    "max": lambda *values: max(map(_int, values)),
    "min": lambda *values: min(map(_int, values)),
    "toJson": _json,
    "toRawJson": lambda value: json.dumps(_plain(value), ensure_ascii=False, sort_keys=True, separators=(",", ":")),
    "fromJson": lambda text: _read(text, "json"),
    "toYaml": lambda value: write_embedded(_plain(value), "yaml").removesuffix("\n"),
    "fromYaml": lambda text: _read(text, "yaml") or {},
    "fromYamlArray": lambda text: _read(text, "yaml") or [],
}
_CONTAINERS: Final[dict[str, Callable[..., Any]]] = {
    "len": len,
    "index": _index,
    "slice": lambda value, start=0, end=None: value[start:end],
    "list": lambda *values: list(values),
    "first": lambda values: _list(values)[0] if values else None,
    "last": lambda values: _list(values)[-1] if values else None,
    "rest": lambda values: _list(values)[1:],
    "initial": lambda values: _list(values)[:-1],
    "append": lambda values, value: [*_list(values), value],
    "prepend": lambda values, value: [value, *_list(values)],
    "concat": lambda *lists: [value for values in lists for value in _list(values)],
    "reverse": lambda values: _list(values)[::-1],
    "uniq": lambda values: [value for at, value in enumerate(_list(values)) if value not in values[:at]],
    "compact": lambda values: list(filter(is_true, _list(values))),
    "without": lambda values, *gone: [value for value in _list(values) if value not in gone],
    "has": lambda value, values: value in _list(values),
    "sortAlpha": lambda values: sorted(map(go_text, values)),
    "until": _until,
    "untilStep": _until,
    "dict": lambda *pairs: {
        go_text(pairs[at]): pairs[at + 1] if at + 1 < len(pairs) else "" for at in range(0, len(pairs), 2)
    },
    "get": lambda mapping, key: mapping.get(key, ""),
    "hasKey": lambda mapping, key: key in mapping,
    "keys": lambda *maps: [key for mapping in maps for key in sorted(mapping)],
    "values": lambda mapping: [mapping[key] for key in sorted(mapping)],
    "pick": lambda mapping, *keys: {key: mapping[key] for key in keys if key in mapping},
    "omit": lambda mapping, *keys: {key: value for key, value in mapping.items() if key not in keys},
    "dig": _dig,
    "merge": lambda *maps: _merged(*maps, over=False),
    "mergeOverwrite": lambda *maps: _merged(*maps, over=True),
    "deepCopy": lambda value: value,
}
FUNCTIONS: Final[Mapping[str, Callable[..., Any]]] = {**_STRINGS, **_VALUES, **_CONTAINERS}
"""Functions by their names in templates; an error of Python is one of its arguments."""
