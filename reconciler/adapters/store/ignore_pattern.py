"""Patterns of `.reconcilerignore` as expressions without backtracking. Source: gitignore(5).

Each run of characters between two stars is searched once, from the left, and never again: an early match only leaves
more for the rest. So a pattern costs at most its length times that of the name.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

_FOLDERS: Final = "(?:[^/]+/)*?"
_END: Final = r"(?=/|\Z)"


class IgnorePattern(NamedTuple):
    """A pattern. `is_of_path`: it is matched with the whole path below its file, not with the last name alone."""

    expression: re.Pattern[str]
    excludes: bool
    folders_only: bool
    is_of_path: bool
    length: int


def parse_pattern(line: str) -> IgnorePattern | None:
    """Return the pattern of a line; None for a blank line and a comment.

    Raises:
        ValueError: it says nothing: `!`, `/`.
    """
    text = _without_trailing_blanks(line)
    if not text or text.startswith("#"):
        return None
    excludes = not text.startswith("!")
    text = text if excludes else text[1:]
    folders_only = text.endswith("/")
    body = text.rstrip("/") if folders_only else text
    if not body:
        raise ValueError("the pattern names nothing")
    is_of_path = "/" in body
    segments = body.removeprefix("/").split("/")
    expression = _of_segments(segments) if is_of_path else _of_segment(segments[0])
    return IgnorePattern(re.compile(expression + r"\Z"), excludes, folders_only, is_of_path, len(body))


def _without_trailing_blanks(line: str) -> str:
    bare = line.rstrip(" ")
    # A backslash keeps the blank behind it.
    is_kept = bare != line and (len(bare) - len(bare.rstrip("\\"))) % 2 == 1
    return bare + " " if is_kept else bare


def _of_segments(segments: list[str]) -> str:
    """Return runs of names between double stars: the first at the beginning, the last at the end."""
    runs: list[list[str]] = [[]]
    for segment in segments:
        if segment == "**":
            runs.append([])
        else:
            runs[-1].append(segment)
    runs = [runs[0], *(run for run in runs[1:-1] if run), *runs[-1:]] if len(runs) > 1 else runs
    whole = ["/".join(map(_of_segment, run)) for run in runs]
    if len(runs) == 1:
        return whole[0]
    first = f"{whole[0]}/" if runs[0] else ""
    middle = "".join(f"(?>{_FOLDERS}{run}/)" for run in whole[1:-1])
    last = f"(?:[^/]+/)*{whole[-1]}" if runs[-1] else r"[\s\S]+"
    return first + middle + last


def _of_segment(text: str) -> str:
    """One name of a path. It is found as a whole or not at all."""
    chunks: list[list[str]] = [[]]
    at = 0
    while at < len(text):
        if text[at] == "*":
            chunks.append([])
            at += 1
        else:
            found, at = _one_character(text, at)
            chunks[-1].append(found)
    whole = ["".join(chunk) for chunk in chunks]
    if len(whole) == 1:
        return f"(?>{whole[0]}{_END})"
    middle = "".join(f"(?>[^/]*?{chunk})" for chunk in whole[1:-1] if chunk)
    return f"(?>{whole[0]}{middle}[^/]*{whole[-1]}{_END})"


def _one_character(text: str, at: int) -> tuple[str, int]:
    """Return the expression for one character, and its end."""
    if text[at] == "?":
        return "[^/]", at + 1
    if text[at] == "\\" and at + 1 < len(text):
        return re.escape(text[at + 1]), at + 2
    if text[at] == "[" and (end := _end_of_class(text, at)):
        return _class(text[at + 1 : end]), end + 1
    return re.escape(text[at]), at + 1


def _end_of_class(text: str, at: int) -> int:
    """Return the index of the closing bracket; 0: there is none, and the bracket is literal."""
    end = at + 1
    if text[end : end + 1] in ("!", "^"):
        end += 1
    if text[end : end + 1] == "]":
        end += 1
    while end < len(text) and text[end] != "]":
        end += 2 if text[end] == "\\" else 1
    return end if end < len(text) else 0


def _class(inside: str) -> str:
    """Return a set of characters without the slash."""
    is_negated = inside.startswith(("!", "^"))
    members: list[str] = []
    body, at = inside[1:] if is_negated else inside, 0
    while at < len(body):
        at += body[at] == "\\" and at + 1 < len(body)
        low, at = body[at], at + 1
        if body[at : at + 1] == "-" and at + 1 < len(body):
            at += 1
            at += body[at] == "\\" and at + 1 < len(body)
            high, at = body[at], at + 1
            if low <= high:
                members.append(f"{re.escape(low)}-{re.escape(high)}")
        else:
            members.append(re.escape(low))
    if not members:
        return "[^/]" if is_negated else r"(?!)"
    return f"[^/{''.join(members)}]" if is_negated else f"(?!/)[{''.join(members)}]"
