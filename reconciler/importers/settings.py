"""Values: a text of them, and Helm's `--set name=value` as a file for the names that mean the same there."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from reconciler.api.problem import Severity
from reconciler.importers.reading import Uncarried
from reconciler.yaml import read_yaml

_KEY: Final = re.compile(r"(?:[^.\\\[\]{},=]|\\.)+")
_INTEGER: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)
_WORDS: Final = {"true": True, "false": False, "null": None}


class Settings(NamedTuple):
    """One parameter. `is_text`: it is a text whatever it looks like."""

    name: str
    value: str
    is_text: bool = False


def of_settings(found: Iterable[Settings]) -> dict[str, Any]:
    """The values that the parameters make, in their order.

    Numbers, truth values and null are read as Helm reads them. Source: helm.sh/docs/intro/using_helm.

    Raises:
        Uncarried: a name leads into a list, which a file with values replaces as a whole, or is no name.
    """
    values: dict[str, Any] = {}
    for setting in found:
        *above, last = _steps(setting.name)
        below = values
        for step in above:
            inner = below.setdefault(step, {})
            if not isinstance(inner, dict):
                raise Uncarried(f"the parameter {setting.name} leads below what another one sets; write them as values")
            below = inner
        below[last] = setting.value if setting.is_text else _typed(setting)
    return values


def values_of(text: str) -> dict[str, Any]:
    """A text as values, typed as Helm types them.

    Raises:
        Uncarried: it is no single mapping.
    """
    found = read_yaml("values.yaml", text.encode())
    if len(found.documents) != 1 or any(problem.severity is Severity.ERROR for problem in found.problems):
        raise Uncarried("it is no single mapping of values")
    return dict(found.documents[0].body)


def _steps(name: str) -> list[str]:
    steps, at = [], 0
    while at < len(name):
        found = _KEY.match(name, at)
        if found is None or (found.end() < len(name) and name[found.end()] != "."):
            break
        steps.append(re.sub(r"\\(.)", r"\1", found[0]))
        at = found.end() + 1
    if not steps or at != len(name) + 1:
        raise Uncarried(f"the parameter {name!r} leads into a list, or is no plain name; write it as values")
    return steps


def _typed(setting: Settings) -> Any:
    text = setting.value
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        return int(text)
    if text.startswith("{") or "\\" in text:
        raise Uncarried(f"the parameter {setting.name} is a list, or escapes something; write it as values")
    return text
