"""Colour and arrows of terminal output, and sets of names as people write them: `hz-prod-{a,b}, idc-1`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from msgspec import Struct

from reconciler.api.plan import Action
from reconciler.report.safe import visible


class Style(Struct, frozen=True, kw_only=True):
    """`color`: ANSI colours. `unicode`: arrows and ellipses beyond ASCII, for a terminal that can show them.

    `width`: columns of the terminal, in which tables fit; None: as wide as they are, for a pipe or a file.
    """

    color: bool = False
    unicode: bool = True
    width: int | None = None

    @property
    def arrow(self) -> str:
        """Between before and after."""
        return "→" if self.unicode else "->"

    def bold(self, text: str) -> str:
        """A heading."""
        return self._painted("1", text)

    def dim(self, text: str) -> str:
        """Return the text in the style of secondary text."""
        return self._painted("2", text)

    def red(self, text: str) -> str:
        """Return the text in the style of losses and errors."""
        return self._painted("31", text)

    def green(self, text: str) -> str:
        """Return the text in the style of new things."""
        return self._painted("32", text)

    def yellow(self, text: str) -> str:
        """Return the text in the style of changes and waits."""
        return self._painted("33", text)

    def of_action(self, action: Action, text: str) -> str:
        """Return the text in the colour of an action: red if it destroys or releases."""
        match action:
            case Action.CREATE | Action.ADOPT:
                return self.green(text)
            case Action.UPDATE:
                return self.yellow(text)
            case Action.REPLACE | Action.DELETE | Action.RELEASE:
                return self.red(text)

    def _painted(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self.color and text else text


PLAIN = Style()
"""For a pipe, a file, a golden test."""

MARKS = {
    Action.CREATE: "+",
    Action.UPDATE: "~",
    Action.REPLACE: "-/+",
    Action.DELETE: "-",
    Action.RELEASE: "!",
    Action.ADOPT: "^",
}
"""The sign of an action."""

DESTRUCTIVE = (Action.DELETE, Action.REPLACE, Action.RELEASE)
"""Shown first and never folded away, in this order."""


_PREFIX_MIN = 3
"""`m-{1,2}` is no shorter than `m-1, m-2`, and harder to read."""


def cluster_list(names: Sequence[str]) -> str:
    """All the names, sorted; those that share everything up to their last dash are written once.

    >>> cluster_list(["hz-prod-b", "idc-1", "hz-prod-a"])
    'hz-prod-{a,b}, idc-1'
    """
    ordered = sorted({visible(name) for name in names})
    parts = []
    for prefix, members in groupby(ordered, key=_prefix):
        endings = [name[len(prefix) :] for name in members]
        if len(endings) > 1 and len(prefix) >= _PREFIX_MIN:
            parts.append(f"{prefix}{{{','.join(_ranges(endings))}}}")
        else:
            parts.extend(prefix + ending for ending in endings)
    return ", ".join(parts)


def name_lines(names: Iterable[str], *, chars_max: int) -> list[str]:
    """Return all the names, common prefixes once, on lines of about `chars_max`; a longer name has its own line.

    >>> name_lines(["demo/b", "demo/a", "team-a/x-9", "team-a/x-10", "team-a/x-11"], chars_max=30)
    ['demo/{a,b}, team-a/x-{9..11}']
    """
    lines: list[str] = []
    for part in _parts(names, chars_max):
        if lines and len(lines[-1]) + 2 + len(part) <= chars_max:
            lines[-1] += f", {part}"
        else:
            lines.append(part)
    return lines


def _parts(names: Iterable[str], chars_max: int) -> Iterator[str]:
    ordered = sorted({visible(name) for name in names}, key=_in_order)
    for prefix, members in groupby(ordered, key=_prefix):
        shared = prefix if len(prefix) >= _PREFIX_MIN else ""
        endings = [name[len(prefix) :] for name in members]
        if not shared:
            yield from (prefix + ending for ending in endings)
            continue
        held: list[str] = []
        for ending in _ranges(endings):
            if held and len(shared) + 2 + sum(len(other) + 1 for other in held) + len(ending) > chars_max:
                yield _braced(shared, held)
                held = []
            held.append(ending)
        yield _braced(shared, held)


def _braced(prefix: str, endings: list[str]) -> str:
    is_one = len(endings) == 1 and ".." not in endings[0]
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
