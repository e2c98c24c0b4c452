"""Values: a text of them, and Helm's `--set name=value` as a file with values that means the same.

Source: helm.sh/docs/intro/using_helm; Helm, pkg/strvals/parser.go.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from copy import deepcopy
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from reconciler.api.problem import Severity
from reconciler.importers.reading import Uncarried
from reconciler.yaml import read_yaml

_KEY: Final = re.compile(r"((?:[^.\\\[\],=]|\\.)+)|\[(\d{1,5})\]", re.DOTALL)
_ITEM: Final = re.compile(r"((?:[^\\,}]|\\.)*)([,}])", re.DOTALL)
_TEXT: Final = re.compile(r"(?:[^\\,]|\\.)*", re.DOTALL)
_INTEGER: Final = re.compile(r"[-+]?[1-9]\d{0,18}|-0\d{0,17}", re.ASCII)
_WORDS: Final = {"true": True, "false": False, "null": None, "0": 0}
_INT64: Final = 2**63
_INDEX_MAX: Final = 65536


class Settings(NamedTuple):
    """One parameter. `is_text`: it is a text whatever it looks like; `is_literal`: nothing in it is escaped."""

    name: str
    value: str
    is_text: bool = False
    is_literal: bool = False


def of_settings(settings: Iterable[Settings], base: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """The values that the parameters make over others, in their order; a list is whole, as a file replaces it.

    Raises Uncarried: a name or a value is none, or a name leads below what is no mapping or list.
    """
    values: dict[str, Any] = {}
    for setting in settings:
        steps = _steps(setting.name)
        value = setting.value if setting.is_literal else _typed(setting)
        if value == "" and isinstance(steps[-1], str) and any(isinstance(step, int) for step in steps):
            raise Uncarried(f"the parameter {setting.name} is empty below a list, and Helm leaves it out: take it out")
        _set(values, base, steps, value, setting.name)
    return values


def _set(below: dict[str, Any], base: Any, steps: list[str | int], value: Any, name: str) -> None:
    """Set a value below a mapping. `base`: what stands there of other values."""
    step, rest = steps[0], steps[1:]
    held = base.get(step) if isinstance(base, Mapping) else None
    if not rest:
        below[str(step)] = value
        return
    is_list = isinstance(rest[0], int)
    inner = below.get(str(step), deepcopy(held) if is_list and isinstance(held, list) else [] if is_list else {})
    if not isinstance(inner, list if is_list else dict) or (held is not None and not isinstance(held, type(inner))):
        raise Uncarried(f"the parameter {name} leads below what is no {'list' if is_list else 'mapping'}")
    below[str(step)] = inner
    if isinstance(inner, list):
        _set_item(inner, rest, value, name)
    else:
        _set(inner, held, rest, value, name)


def _set_item(below: list[Any], steps: list[str | int], value: Any, name: str) -> None:
    """Set a value below a list, which becomes long enough."""
    step, rest = int(steps[0]), steps[1:]
    if step > _INDEX_MAX:
        raise Uncarried(f"the parameter {name} has an index above {_INDEX_MAX:,}")
    below += [None] * (step + 1 - len(below))
    if not rest:
        below[step] = value
    elif isinstance(rest[0], int):
        inner = [] if below[step] is None else below[step]
        if not isinstance(inner, list):
            raise Uncarried(f"the parameter {name} leads below what is no list")
        below[step] = inner
        _set_item(inner, rest, value, name)
    else:
        below[step] = below[step] if isinstance(below[step], dict) else {}
        _set(below[step], below[step], rest, value, name)


def values_of(text: str) -> dict[str, Any]:
    """A text as values, typed as Helm types them; empty for no text. Raises Uncarried: it is no single mapping."""
    file = read_yaml("values.yaml", text.encode())
    is_broken = any(problem.severity is Severity.ERROR for problem in file.problems)
    if is_broken or len(file.documents) > 1:
        raise Uncarried("it is no single mapping of values")
    return dict(file.documents[0].body) if file.documents else {}


def _steps(name: str) -> list[str | int]:
    steps: list[str | int] = []
    at = 0
    while at < len(name) and (match := _KEY.match(name, at)) is not None:
        if match[1] is None:
            steps.append(int(match[2]))
            at = match.end()
        else:
            steps.append(re.sub(r"\\(.)", r"\1", match[1], flags=re.DOTALL))
            at = match.end()
        if name[at : at + 1] == "." and at + 1 < len(name) and name[at + 1] != "[":
            at += 1
        elif name[at : at + 1] != "[":
            break
    if not steps or isinstance(steps[0], int) or at != len(name):
        raise Uncarried(f"the parameter {name!r} is no name of a value; write it as values")
    return steps


def _typed(setting: Settings) -> Any:
    """Return the value of a text: a list in braces, else a scalar; a backslash takes the next letter as it is."""
    text, items, at = setting.value, [], 0
    if text.startswith("{"):
        at = 1
        while (match := _ITEM.match(text, at)) is not None:
            items.append(_scalar(match[1], is_text=setting.is_text))
            at = match.end()
            if match[2] == "}":
                break
        if match is None or at != len(text):
            raise Uncarried(f"the parameter {setting.name} has a list that is not closed, or more behind it")
        return items
    if _TEXT.fullmatch(text) is None:
        raise Uncarried(f"the parameter {setting.name} has a comma that is not escaped; write it as values")
    return _scalar(text, is_text=setting.is_text)


def _scalar(written: str, *, is_text: bool) -> Any:
    text = re.sub(r"\\(.)", r"\1", written, flags=re.DOTALL)
    if is_text:
        return text
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    is_number = _INTEGER.fullmatch(text) is not None and -_INT64 <= int(text) < _INT64
    return int(text) if is_number else text
