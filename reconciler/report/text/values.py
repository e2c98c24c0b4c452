"""Field values for people: on one line, cut when long, texts of many lines as a diff."""

from __future__ import annotations

import difflib
import json
from typing import Any

from reconciler.model.plan import MISSING
from reconciler.model.tree import canonical_bytes
from reconciler.report.text.safe import visible

ABSENT = "(absent)"
_LINES_MAX = 400  # beyond that comparing lines may take minutes on hostile text
_LINE_CHARS_MAX = 200
_LOOKS_ELSE = frozenset({"", "null", "true", "false", "~", ABSENT})


def shown(value: Any, chars_max: int) -> str:
    """The value on one line, never longer than `chars_max` and a note; strings bare unless that could mislead."""
    if value is MISSING:
        return ABSENT
    if isinstance(value, str):
        text = f'"{visible(value)}"' if _misleads(value) else visible(value)
    else:
        text = visible(compact_json(value))
    return cut(text, chars_max)


def compact_json(value: Any) -> str:
    """The value as JSON on one line with sorted keys; integers of any size and half surrogate pairs too."""
    try:
        return canonical_bytes(value).decode()
    except TypeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))


def cut(text: str, chars_max: int) -> str:
    """The text, or its beginning with the number of characters that are left out."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}…(+{len(text) - chars_max} characters)"


def _misleads(text: str) -> bool:
    return text.strip() != text or text.lower() in _LOOKS_ELSE or text[:1] in tuple('"[{') or _is_number(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text[:1] in tuple("+-.0123456789") and text.strip("+-.0123456789eE") == ""


def is_long_text(before: Any, after: Any) -> bool:
    """Return whether a diff of lines says more than before and after on one line."""
    return isinstance(before, str) and isinstance(after, str) and max(before.count("\n"), after.count("\n")) > 1


def text_diff(before: str, after: str, *, is_whole: bool = False) -> list[str]:
    """Return changed lines with `- ` and `+ `, two lines of context with `| `, gaps as `…`.

    `is_whole`: lines are not cut, and texts that are too long to be compared are shown one after the other.
    """
    old, new = before.splitlines(), after.splitlines()
    if max(len(old), len(new)) > _LINES_MAX:
        if not is_whole:
            return [f"{len(old)} lines become {len(new)} lines"]
        return [*(f"- {visible(line)}" for line in old), *(f"+ {visible(line)}" for line in new)]
    lines = []
    for line in list(difflib.unified_diff(old, new, n=2, lineterm=""))[2:]:
        if line.startswith("@@"):
            lines.append("…")
        else:
            mark = {" ": "|"}.get(line[0], line[0])
            text = visible(line[1:])
            lines.append(f"{mark} {text if is_whole else cut(text, _LINE_CHARS_MAX)}")
    # Equal lines mean that only line ends differ.
    return lines[1:] if lines else ["only line ends change"]
