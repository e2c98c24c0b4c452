"""Comments of a rewritten file: each stays at its line, if that line stays.

This needs a file in our own layout, comments aside. Of any other the comments above the document stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple


class _Line(NamedTuple):
    """A line of the document, the lines of comments above it, and the comment behind it."""

    text: str
    above: tuple[str, ...] = ()
    behind: str = ""


def with_comments(written: str, before: str, after: str) -> str:
    """Return the text `after` with the comments of `written`. `before`: the values of `written` in our layout.

    Only comments are taken over, so that the values stay the same.
    """
    lines, rest = _lines(written, before.splitlines())
    if lines is None:
        head = [line for line in _until_document(written.splitlines()) if line.startswith("#")]
        return "".join(f"{line}\n" for line in head) + after
    old, new = before.splitlines(), after.splitlines()
    made: list[str] = []
    for kind, start, end, to, until in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            for line in lines[start:end]:
                made += [*line.above, line.text + line.behind]
        else:
            # A comment behind a removed line is about that line; those above may be about the next one.
            made += [comment for line in lines[start:end] for comment in line.above]
            made += new[to:until]
    return "".join(f"{line}\n" for line in (*made, *rest))


def _until_document(lines: Sequence[str]) -> list[str]:
    for number, line in enumerate(lines):
        if line.strip() and not line.startswith(("#", "---")):
            return list(lines[:number])
    return []


def _lines(written: str, expected: Sequence[str]) -> tuple[list[_Line] | None, list[str]]:
    """Each expected line with its comments, and the comments at the end; None where the layout is another one."""
    found: list[_Line] = []
    above: list[str] = []
    for line in written.splitlines():
        if not line.strip() or line.lstrip().startswith("#") or (line == "---" and not found):
            above.append(line)
            continue
        if len(found) == len(expected):
            return None, []
        text = expected[len(found)]
        behind = line[len(text) :]
        if not line.startswith(text) or (behind and not behind.lstrip(" ").startswith("#")) or behind.startswith("#"):
            return None, []
        found.append(_Line(text, tuple(above), behind))
        above = []
    return (found, above) if len(found) == len(expected) else (None, [])
