"""Colour and arrows of terminal output; none of it when piped.

Field values for people: on one line, cut when long, texts of many lines as a diff.

Sets of names, as people write them: `hz-prod-{a,b}, idc-1`, `edge-{000..029}`, `demo/old-{0..49}`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Any

from msgspec import Struct

from reconciler.api.content import canonical_bytes
from reconciler.api.plan import MISSING, Action
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
