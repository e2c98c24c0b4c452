"""Lines longer than the terminal, broken between words, with an indented rest.

A terminal would break within a word and begin the rest where a new entry begins.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from reconciler.report.text.safe import inert
from reconciler.report.text.table import text_width

_STYLES: Final = re.compile(r"\x1b\[[0-9;]*m")
_PIECES: Final = re.compile(r" +|[^ ]+")
_SET_IN: Final = 4
"""The rest of a broken line is indented by this much more."""


def folded(text: str, width: int) -> str:
    """Return the text with no line wider than `width` columns, but for words that are; styles take no space."""
    return "".join(_folded_line(line, width) for line in text.splitlines(keepends=True))


def _folded_line(line: str, width: int) -> str:
    if _width(line.rstrip("\n")) <= width:
        return line
    end = "\n" if line.endswith("\n") else ""
    return "\n".join(inert(part) for part in _parts(line.rstrip("\n"), width)) + end


def _parts(line: str, width: int) -> Iterator[str]:
    shown = _STYLES.sub("", line)
    indent = " " * min(len(shown) - len(shown.lstrip(" ")) + _SET_IN, width // 2)
    part, taken, gap = "", 0, ""
    for piece in _PIECES.findall(line):
        if piece.startswith(" "):
            gap = piece
            continue
        needed = _width(piece)
        # A style by itself is no word, and an empty line cannot be broken.
        if part.strip() and needed and taken + len(gap) + needed > width:
            yield part
            part, taken, gap = indent, len(indent), ""
        part, taken, gap = f"{part}{gap}{piece}", taken + len(gap) + needed, ""
    yield part


def _width(text: str) -> int:
    return text_width(_STYLES.sub("", text))
