"""Colour of terminal output, sets of names (`hz-prod-{a,b}, idc-1`), plain tables as of kubectl, and broken lines."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import partialmethod
from itertools import groupby
from typing import Final

from msgspec import Struct

from reconciler.api.plan import Action
from reconciler.regex import regex
from reconciler.report.safe_text import inert, joined, visible


class Style(Struct, frozen=True, kw_only=True):
    """`color`: ANSI colours. `width`: of the terminal, in which tables fit; None: as wide as they are, for a pipe."""

    color: bool = False
    width: int | None = None

    def _painted(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text

    bold = partialmethod(_painted, "1")
    dim = partialmethod(_painted, "2")
    """Of secondary text."""
    red = partialmethod(_painted, "31")
    """Of losses and errors."""
    green = partialmethod(_painted, "32")
    """Of new things."""
    yellow = partialmethod(_painted, "33")
    """Of changes and waits."""

    def of_action(self, action: Action, text: str) -> str:
        """Return the text in the colour of an action: red if it destroys or releases."""
        match action:
            case Action.CREATE | Action.ADOPT:
                return self.green(text)
            case Action.UPDATE:
                return self.yellow(text)
            case Action.REPLACE | Action.DELETE | Action.RELEASE:
                return self.red(text)


PLAIN = Style()

MARKS = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.REPLACE: "-/+",
    Action.DELETE: "-",
    Action.RELEASE: "!",
    Action.ADOPT: "^",
}

DESTRUCTIVE = (Action.DELETE, Action.REPLACE, Action.RELEASE)
"""Shown first and never folded away, in this order."""


_PREFIX_MIN = 3
"""`m-{1,2}` is no shorter than `m-1, m-2`, and harder to read."""


def cluster_list(names: Sequence[str]) -> str:
    """All the names, sorted; those that share everything up to their last dash are written once.

    >>> cluster_list(["hz-prod-b", "idc-1", "hz-prod-a"])
    'hz-prod-{a,b}, idc-1'
    """
    return ", ".join(_parts(sorted({visible(name) for name in names}), 1_000_000_000))


def name_lines(names: Iterable[str], *, chars_max: int) -> list[str]:
    """Return all the names, common prefixes once, on lines of about `chars_max`; a longer name has its own line.

    >>> name_lines(["demo/b", "demo/a", "team-a/x-9", "team-a/x-10", "team-a/x-11"], chars_max=30)
    ['demo/{a,b}, team-a/x-{9..11}']
    """
    lines: list[str] = []
    for part in _parts(sorted({visible(name) for name in names}, key=_in_order), chars_max):
        if lines and len(lines[-1]) + 2 + len(part) <= chars_max:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines


def _parts(ordered: Iterable[str], chars_max: int) -> Iterator[str]:
    for prefix, members in groupby(ordered, key=_prefix):
        shared = prefix if len(prefix) >= _PREFIX_MIN else ""
        endings = [name[len(prefix) :] for name in members]
        if not shared:
            yield from (prefix + ending for ending in endings)
            continue
        held: list[str] = []
        for ending in _ranges(endings):
            if held and len(shared) + 2 + sum(len(other) + 1 for other in held) + len(ending) > chars_max:
                yield _braced(shared, held, endings)
                held = []
            held.append(ending)
        yield _braced(shared, held, endings)


def _braced(prefix: str, endings: list[str], single: Sequence[str]) -> str:
    is_one = len(endings) == 1 and endings[0] in single  # else it is a range
    return prefix + endings[0] if is_one else f"{prefix}{{{','.join(endings)}}}"


def _in_order(name: str) -> tuple[str, int, str]:
    """Return the sort key: equal prefixes together, and numbers as people count."""
    prefix = _prefix(name)
    ending = name[len(prefix) :]
    return prefix, len(ending) if ending.isascii() and ending.isdigit() else 0, ending


def _prefix(name: str) -> str:
    return name[: max(name.rfind("-"), name.rfind("/")) + 1]


def _ranges(endings: list[str]) -> list[str]:
    """Runs of at least three numbers of one width as `000..029`, the way a shell writes them."""
    runs: list[list[str]] = []
    for ending in endings:
        if runs and _follows(runs[-1][-1], ending):
            runs[-1].append(ending)
        else:
            runs.append([ending])
    return [part for run in runs for part in ([f"{run[0]}..{run[-1]}"] if len(run) > 2 else run)]


def _follows(first: str, second: str) -> bool:
    is_number = first.isascii() and first.isdigit() and second.isascii() and second.isdigit()
    if not is_number or len(second) > 9 or int(second) != int(first) + 1:
        return False
    # 9 and 10 follow each other, as 09 and 10 do; 009 and 10 are names of two kinds.
    return len(first) == len(second) or (len(first) + 1 == len(second) and first[0] != "0" and set(first) == {"9"})


_GAP = "   "
_LAST_MIN = 24
"""Columns that are dropped before a last column of text is cut to less than this."""


class Fit(Struct, frozen=True, kw_only=True):
    """The fit of a table. `drop`: columns to drop, in order; `cuts_last`: the last may be cut. `width` None: any."""

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
    """Return a table as kubectl's printer does, in capitals; empty cells are `<none>`. `right`: aligned columns."""
    cells = [
        [name.upper() for name in header],
        *([visible("" if value is None else str(value)) or "<none>" for value in row] for row in rows),
    ]
    return joined(aligned(cells, right=right, fit=fit))


def aligned(
    cells: Sequence[Sequence[str]], *, right: frozenset[int] = frozenset(), gap: str = _GAP, fit: Fit = ANY_WIDTH
) -> list[str]:
    """Lines of cells padded to the widest of their column. Cells must be printable."""
    columns = list(range(len(cells[0])))
    if fit.width is not None:
        columns, cells = _fitted(cells, columns, fit, fit.width, len(gap))
        right = frozenset(place for place, index in enumerate(columns) if index in right)
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]
    return [
        gap.join(
            " " * (width - text_width(cell)) + cell if index in right else cell + " " * (width - text_width(cell))
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]


def _fitted(
    cells: Sequence[Sequence[str]], columns: list[int], fit: Fit, width: int, gap: int
) -> tuple[list[int], Sequence[Sequence[str]]]:
    """The columns that stay, and their cells: as many as fit, the last one cut where that is enough."""
    widths = [max(map(text_width, column)) for column in zip(*cells, strict=True)]

    def room_for_last() -> int:
        return width - sum(widths[index] + gap for index in columns[:-1])

    for index in fit.drop:
        least = min(widths[columns[-1]], _LAST_MIN) if fit.cuts_last else widths[columns[-1]]
        if room_for_last() >= least:
            break
        columns.remove(index)
    room = room_for_last()
    if not fit.cuts_last or widths[columns[-1]] <= room:
        return columns, [[row[index] for index in columns] for row in cells]
    *others, last = columns
    return columns, [[*(row[index] for index in others), _shortened(row[last], max(room, 1))] for row in cells]


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
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text if not unicodedata.combining(char))
    return wide + sum(not unicodedata.combining(char) for char in text)


_STYLES: Final = regex(r"\x1b\[[0-9;]*m")
_PIECES: Final = regex(r" +|[^ ]+")
_SET_IN: Final = 4
"""The rest of a broken line is indented by this much more."""


def folded(text: str, width: int) -> str:
    """Return the text with no line wider than `width` columns, but for words that are; styles take no space."""
    lines = []
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\n")
        is_narrow = _width(bare) <= width
        lines.append(line if is_narrow else "\n".join(map(inert, _broken(bare, width))) + line[len(bare) :])
    return "".join(lines)


def _broken(line: str, width: int) -> Iterator[str]:
    bare = _STYLES.sub("", line)
    indent = " " * min(len(bare) - len(bare.lstrip(" ")) + _SET_IN, width // 2)
    part, used, gap = "", 0, ""
    for piece in _PIECES.findall(line):
        if piece.startswith(" "):
            gap = piece
            continue
        needed = _width(piece)
        # A style by itself is no word, and an empty line cannot be broken.
        if part.strip() and needed and used + len(gap) + needed > width:
            yield part
            part, used, gap = indent, len(indent), ""
        part, used, gap = f"{part}{gap}{piece}", used + len(gap) + needed, ""
    yield part


def _width(text: str) -> int:
    return text_width(_STYLES.sub("", text))
