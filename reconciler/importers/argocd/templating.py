"""The templates of an ApplicationSet: `{{name}}`, and simple Go templates. All else is refused by name.

Source: argo-cd.readthedocs.io/en/stable/operator-manual/applicationset/Template/ and /GoTemplate/.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, Final

from reconciler.api.content import Json
from reconciler.importers.reading import Uncarried

_HOLE: Final = re.compile(r"\{\{(.*?)(\}\}|\Z)", re.DOTALL)
"""One that is not closed reaches to the end, so that no search begins anew behind it."""
_TRIM: Final = re.compile(r"\{\{-|-\}\}")
_TOKEN: Final = re.compile(r"\s*(?:(\"(?:[^\"\\]|\\.)*\"|`[^`]*`)|(\.[\w.-]*)|(\|)|([A-Za-z]\w*)|(-?\d+))", re.ASCII)
_MISSING: Final = object()
Params = Mapping[str, Any]
"""Parameters of one application: flat names without Go's templates, nested ones with them."""


def filled(template: Json, params: Params, *, go: bool) -> Any:
    """A tree with the templates in its texts and keys filled in.

    Raises:
        Uncarried: a template is not known, or a parameter is missing.
    """
    if isinstance(template, str):
        return _filled_text(template, params, go=go) if "{{" in template else template
    if isinstance(template, Mapping):
        return {filled(key, params, go=go): filled(value, params, go=go) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(item, params, go=go) for item in template]
    return template


def _filled_text(text: str, params: Params, *, go: bool) -> str:
    if go and _TRIM.search(text):
        raise Uncarried("a template trims what is around it ({{- or -}}); it is not evaluated: write it out")

    def value(hole: re.Match[str]) -> str:
        if not hole[2]:
            return hole[0]
        expression = hole[1].removeprefix("-").lstrip().removesuffix("-").rstrip()
        return _go(expression, params) if go else _plain(expression, params)

    return _HOLE.sub(value, text)


def _plain(name: str, params: Params) -> str:
    if name not in params:
        raise Uncarried(f"the template {{{{{name}}}}} names no parameter of the generator")
    return _text(params[name], name)


def _go(expression: str, params: Params) -> str:
    value: Any = _MISSING
    for number, words in enumerate(_stages(expression)):
        value = _call(words, [] if number == 0 else [value], params, expression)
    if value is _MISSING:
        raise Uncarried(f"the template {{{{ {expression} }}}} names no parameter of the generator")
    return _text(value, expression)


def _stages(expression: str) -> list[list[tuple[str, Any]]]:
    """Return the stages of a pipeline, each a list of words with their kinds."""
    found: list[list[tuple[str, Any]]] = [[]]
    at = 0
    while at < len(expression):
        token = _TOKEN.match(expression, at)
        if token is None:
            raise _refused(expression)
        text, path, bar, name, number = token.groups()
        if bar:
            found.append([])
        elif text:
            found[-1].append(("value", re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] == '"' else text[1:-1]))
        elif path:
            found[-1].append(("path", [step for step in path.split(".") if step]))
        else:
            found[-1].append(("name", name) if name else ("value", int(number)))
        at = token.end()
    return found


def _call(words: list[tuple[str, Any]], before: list[Any], params: Params, expression: str) -> Any:
    if not words:
        raise _refused(expression)
    kind, first = words[0]
    if kind != "name":
        if before or len(words) > 1:
            raise _refused(expression)
        return _value(words[0], params)
    arguments = [_value(word, params) for word in words[1:]] + before
    match first, arguments:
        case "default", [fallback, value]:
            return fallback if value is _MISSING or value in ("", 0, False, None, [], {}) else value
        case "index", [container, *steps]:
            return _index(container, steps)
        case (("lower" | "upper" | "trim" | "normalize" | "toString"), [value]) if value is not _MISSING:
            text = _text(value, expression)
            ways: dict[str, Callable[[str], str]] = {
                "lower": str.lower, "upper": str.upper, "trim": str.strip, "normalize": normalized, "toString": str,
            }  # fmt: skip
            return ways[first](text)
    raise _refused(expression)


def _refused(expression: str) -> Uncarried:
    return Uncarried(f"the template {{{{ {expression} }}}} is not evaluated here: write the applications out")


def _value(word: tuple[str, Any], params: Params) -> Any:
    kind, value = word
    if kind == "name":
        raise Uncarried(f"the template function {value} is not evaluated as an argument: write the applications out")
    return _index(params, value) if kind == "path" else value


def _index(container: Any, steps: list[Any]) -> Any:
    for step in steps:
        if isinstance(container, Mapping) and isinstance(step, str):
            container = container.get(step, _MISSING)
        elif isinstance(container, list) and isinstance(step, int) and 0 <= step < len(container):
            container = container[step]
        else:
            return _MISSING
    return container


def _text(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    raise Uncarried(f"the parameter of the template {{{{{name}}}}} is no text")


def normalized(text: str) -> str:
    """A text as a name in DNS, as Argo CD's function of that name makes one."""
    return re.sub(r"[^-a-z0-9.]", "-", text.lower())[:253].strip("-.")


def flattened(params: Params) -> dict[str, Any]:
    """Nested parameters by their dotted names, as templates without Go's see them."""
    found: dict[str, Any] = {}
    for key, value in params.items():
        if isinstance(value, Mapping):
            found |= {f"{key}.{name}": inner for name, inner in flattened(value).items()}
        else:
            found[key] = value
    return found
