"""Aligned plain tables, as kubectl prints them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

from reconciler.report.text.safe import joined, visible

_GAP = "   "


def table(header: Sequence[str], rows: Iterable[Sequence[object]], *, right: frozenset[int] = frozenset()) -> str:
    """A table with a header in capitals, three spaces between columns and nothing at the ends of lines.

    `right`: columns that are aligned to the right. An empty cell shows `<none>`. Source: kubectl's printer.
    """
    cells = [[name.upper() for name in header], *([_cell(value) for value in row] for row in rows)]
    return joined(aligned(cells, right=right))


def aligned(cells: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset(), gap: str = _GAP) -> list[str]:
    """Lines of cells padded to the widest of their column. Cells must be printable."""
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]
    return [
        gap.join(
            " " * (width - text_width(cell)) + cell if index in right else cell + " " * (width - text_width(cell))
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


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
