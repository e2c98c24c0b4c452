"""Aligned plain tables, as kubectl prints them, and long lines broken between words, with an indented rest."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from reconciler.report.safe import inert, joined, visible

_GAP = "   "
_LAST_MIN = 24
"""Columns that are dropped before a last column of text is cut to less than this."""


class Fit(Struct, frozen=True, kw_only=True):
    """The fit of a table to a terminal: no line is wider, so that none breaks within a cell.

    `width`: columns of the terminal; None: unlimited. `drop`: columns that may go, the first ones first. `cuts_last`:
    the last column is text that may be cut at its end.
    """

    width: int | None = None
    drop: tuple[int, ...] = ()
    cuts_last: bool = False


ANY_WIDTH = Fit()


def table(
    header: Sequence[str],
    rows: Iterable[Sequence[object]],
    *,
    right: frozenset[int] = frozenset(),
    fit: Fit = ANY_WIDTH,
) -> str:
    """A table with a header in capitals, three spaces between columns and nothing at the ends of lines.

    `right`: columns that are aligned to the right. An empty cell shows `<none>`. Source: kubectl's printer.
    """
    cells = [[name.upper() for name in header], *([_cell(value) for value in row] for row in rows)]
    return joined(aligned(cells, right=right, fit=fit))


def aligned(
    cells: Sequence[Sequence[str]],
    *,
    right: frozenset[int] = frozenset(),
    gap: str = _GAP,
    fit: Fit = ANY_WIDTH,
) -> list[str]:
    """Lines of cells padded to the widest of their column. Cells must be printable."""
    kept = list(range(len(cells[0])))
    if fit.width is not None:
        kept, cells = _fitted(cells, kept, fit, fit.width, len(gap))
        right = frozenset(place for place, index in enumerate(kept) if index in right)
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]
    return [
        gap.join(
            " " * (width - text_width(cell)) + cell if index in right else cell + " " * (width - text_width(cell))
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _fitted(
    cells: Sequence[Sequence[str]], kept: list[int], fit: Fit, width: int, gap: int
) -> tuple[list[int], Sequence[Sequence[str]]]:
    """The columns that stay, and their cells: as many as fit, the last one cut where that is enough."""
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]

    def room_for_last() -> int:
        return width - sum(widths[index] + gap for index in kept[:-1])

    for index in fit.drop:
        least = min(widths[kept[-1]], _LAST_MIN) if fit.cuts_last else widths[kept[-1]]
        if room_for_last() >= least:
            break
        kept.remove(index)
    room = room_for_last()
    if not fit.cuts_last or widths[kept[-1]] <= room:
        return kept, [[row[index] for index in kept] for row in cells]
    return kept, [[*(row[index] for index in kept[:-1]), _shortened(row[kept[-1]], max(room, 1))] for row in cells]


def _shortened(text: str, width: int) -> str:
    if text_width(text) <= width:
        return text
    while text and text_width(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def text_width(text: str) -> int:
    """Columns that a printable text takes on a terminal: wide East Asian characters take two, marks none."""
    if text.isascii():
        return len(text)
    return sum(_char_width(char) for char in text)


def _char_width(char: str) -> int:
    if unicodedata.combining(char):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def _cell(value: object) -> str:
    text = "" if value is None else str(value)
    return visible(text) if text else "<none>"


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
