"""Remedies for syntax errors of YAML, and the line that has to be edited.

libyaml reports where it stopped, which is often the line after the mistake, and nothing of what a person would change.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from yaml.error import Mark, MarkedYAMLError

from reconciler.regex import regex

_CONFLICT: Final = regex(rb"^(?:<{7} |>{7} |\|{7} |={7}\r?$)", re.MULTILINE)
_DASHES: Final = regex(r"\s*(?:- +)*")
_MUST_BE_QUOTED: Final = "quote a value that begins with {}"

_REMEDIES: Final = {
    "undefined alias": "*NAME repeats what &NAME marks above it",
    "expected node content": "a value is missing, or the bracket is not closed",
    "unknown escape character": "write each backslash twice, or use single quotes",
    "tab character": "indent with spaces",
    "expected <document start>": "a line --- begins a new document",
}
"""Remedies of errors at the place where libyaml stops, by a part of its message."""


def syntax_error(error: MarkedYAMLError, data: bytes) -> tuple[str, int]:
    """Return the message for an error with a mark, with a remedy where one is known, and its line, counted from 1."""
    if conflict := _CONFLICT.search(data):
        line = data.count(b"\n", 0, conflict.start()) + 1
        return "a merge conflict is not resolved; keep one side of it, and take the markers out", line
    assert error.problem_mark is not None
    lines = data.decode("utf-8", errors="replace").splitlines()
    remedy, mark = _remedy(str(error.problem), error.problem_mark, error.context_mark, lines)
    context = f" {error.context}" if error.context else ""
    return f"{error.problem}{context}" + (f"; {remedy}" if remedy else ""), mark.line + 1


def _remedy(problem: str, mark: Mark, begun: Mark | None, lines: Sequence[str]) -> tuple[str, Mark]:
    """Return what a person would change, empty if that is unknown, and where."""
    here = lines[mark.line] if mark.line < len(lines) else ""
    at = here[mark.column : mark.column + 1]
    if any("{{" in line for line in lines[max(0, mark.line - 1) : mark.line + 1]):
        return "render templates first ('reconciler hydrate'), and list them in .reconcilerignore", mark
    if "cannot start any token" in problem:
        return ("indent with spaces" if at == "\t" else _MUST_BE_QUOTED.format(at)), mark
    if "alphabetic or numeric character" in problem:
        return _MUST_BE_QUOTED.format(here[: mark.column].rstrip()[-1:] or "* or &"), mark
    for part, remedy in _REMEDIES.items():
        if part in problem:
            return remedy, mark
    if "could not find expected ':'" in problem and begun is not None:
        if begun.line < len(lines) and not lines[begun.line].strip(" -"):
            return "a line --- separates documents", begun
        return "write ':' and a space after the key", begun
    if "unexpected end of stream" in problem and begun is not None:
        return "the quote that begins here is not closed", begun
    if "',' or" in problem and begun is not None:
        is_at_the_end = not any(line.strip() for line in lines[mark.line + 1 :]) and not here[mark.column + 1 :].strip()
        return "a ',' is missing, or the bracket is not closed", begun if is_at_the_end else mark
    if "mapping values are not allowed" in problem and here[: mark.column].strip().count(": "):
        return "quote the value: it holds a colon and a space", mark
    return _levels(lines, mark.line), mark


def _levels(lines: Sequence[str], number: int) -> str:
    """Return the indentation of a line, and those that lines before it allow; empty if it is one of these."""
    if number >= len(lines) or not lines[number].strip():
        return ""
    indent = len(lines[number]) - len(lines[number].lstrip(" "))
    allowed: list[int] = []
    for line in reversed(lines[:number]):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        first = len(line) - len(line.lstrip(" "))
        content = _DASHES.match(line)
        columns = {first, content.end() if content is not None else first}
        allowed += [column for column in columns if not allowed or column < min(allowed)]
    if indent in allowed:
        return ""
    near = sorted(sorted(set(allowed), key=lambda column: abs(column - indent))[:2])
    meant = " or ".join(map(str, near))
    return f"it is indented by {indent}, where {meant} would go on with what is above" if near else ""
