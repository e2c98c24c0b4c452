"""Values for people, on a line or as a diff: differences are found before anything is cut, so that none is lost."""

from __future__ import annotations

import difflib
import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from reconciler.api.content import canonical_bytes
from reconciler.api.plan import MISSING
from reconciler.regex import regex
from reconciler.report.safe_text import alphabet, escape, visible

ABSENT = "(absent)"
_READ_AT_ONCE = 80
"""Longer values are marked where they differ."""
_CONTEXT = 24
_COMMON_MIN = 12
_TOKENS_MAX = 600
_LINES_MAX = 400
"""Beyond that comparing may take minutes on hostile text."""
_LINE_CHARS_MAX = 200
_LONG_LINES_MAX = 40
_LOOKS_ELSE = frozenset({"", "null", "true", "false", "~", ABSENT})
_LOOKS_LIKE_ESCAPE = regex(r"\\(?=[nrtxuUN\\\"])")
_WORD = regex(r"\w+")
_ODD_WORDS_MAX = 5
_TWINS = str.maketrans("0I1|", "Olll")
_TOKEN = regex(r"\\(?:x..|u....|U.{8}|N\{[^}]*\}|.)|\w+|[^\w\\]|\\")


def value_text(value: Any, chars_max: int) -> str:
    """The value on one line, strings bare unless that misleads; beyond `chars_max` its beginning, length and digest."""
    return cut_text(_one_line(value), chars_max)


def value_texts(before: Any, after: Any, chars_max: int) -> tuple[str, str]:
    """Return two values, each on a line, cut around differences, which long ones mark `[-so-]` and `{+so+}`."""
    if before is MISSING or after is MISSING:
        return value_text(before, chars_max), value_text(after, chars_max)
    if not isinstance(before, str) and not isinstance(after, str):
        one, other = _without_far_ends(compact_json(before), compact_json(after), chars_max)
        return _pair(visible(one), visible(other), chars_max)
    is_quoted = isinstance(before, str) and isinstance(after, str) and (_misleads(before) or _misleads(after))
    if isinstance(before, str) and isinstance(after, str):
        before, after = _without_far_ends(before, after, chars_max)
    return _pair(_one_line(before, is_quoted=is_quoted), _one_line(after, is_quoted=is_quoted), chars_max)


def cut(text: str, chars_max: int) -> str:
    """The text, or its beginning with the number of characters that are left out."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}…(+{len(text) - chars_max} characters)"


def compact_json(value: Any) -> str:
    """The value as JSON on one line with sorted keys; integers of any size and half surrogate pairs too."""
    try:
        return canonical_bytes(value).decode()
    except TypeError:
        return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _one_line(value: Any, *, is_quoted: bool = False) -> str:
    if value is MISSING:
        return ABSENT
    if not isinstance(value, str):
        return visible(compact_json(value))
    if not is_quoted and not _misleads(value):
        return _literal(value)
    return '"' + _literal(value).replace('"', '\\"').replace("  ", r" \x20") + '"'


def _misleads(text: str) -> bool:
    is_framed = text.strip() != text or "  " in text or "→" in text or "->" in text
    is_number = text.isascii() and text[:1] in tuple("+-.0123456789") and text.strip("+-.0123456789eE") == ""
    return is_framed or text.lower() in _LOOKS_ELSE or text[:1] in tuple('"[{') or is_number


def _literal(text: str) -> str:
    """Return the visible text; a backslash of its own is doubled where it would look like an escape."""
    return visible(_LOOKS_LIKE_ESCAPE.sub(r"\\\\", text) if "\\" in text else text)


def _rest(text: str) -> str:
    return f"+{len(text):,} characters, #{hashlib.sha256(text.encode(errors='surrogatepass')).hexdigest()[:8]}"


def _without_far_ends(before: str, after: str, chars_max: int) -> tuple[str, str]:
    """Return two texts without equal ends too far from their difference: making them visible takes seconds."""
    length_max = 2 * max(chars_max, _LINE_CHARS_MAX)
    if before == after or min(len(before), len(after)) <= length_max:
        return before, after
    head, tail = (max(length - length_max, 0) for length in _shared_ends(before, after))
    texts = (text[head : len(text) - tail] for text in (before, after))
    one, other = (f"{'…' if head else ''}{text}{'…' if tail else ''}" for text in texts)
    return one, other


def _pair(before: str, after: str, chars_max: int) -> tuple[str, str]:
    pieces = [part for piece in _pieces(before, after) for part in _parts(*piece, chars_max)]
    changed = [(old, new) for old, new in pieces if old != new]
    length = max(len(before), len(after))
    is_alike = any(_look_alike(old, new) for old, new in changed)
    if not changed or (length <= min(chars_max, _READ_AT_ONCE) and not is_alike):
        return cut_text(before, chars_max), cut_text(after, chars_max)
    is_cut, room = length > chars_max, max(chars_max // len(changed), _CONTEXT)
    sides: tuple[list[str], list[str]] = ([], [])
    for place, (old, new) in enumerate(pieces):
        if old == new:
            context = _context(old, has_head=place > 0, has_tail=place < len(pieces) - 1) if is_cut else old
            texts = context, context
        else:
            spelled = (_spelled_out(old), _spelled_out(new)) if _look_alike(old, new) else (old, new)
            old_text, new_text = (
                _without_middle(text, room, other) if is_cut else text
                for text, other in zip(spelled, reversed(spelled), strict=True)
            )
            texts = f"[-{old_text}-]" if old else "", f"{{+{new_text}+}}" if new else ""
        for side, text in zip(sides, texts, strict=True):
            side.append(text)
    most = max(2 * chars_max, _LINE_CHARS_MAX)
    return cut_text("".join(sides[0]), most), cut_text("".join(sides[1]), most)


def cut_text(text: str, chars_max: int) -> str:
    """The text; beyond `chars_max` its beginning, the length of the rest and a digest of it."""
    return text if len(text) <= chars_max else f"{text[:chars_max]}…({_rest(text[chars_max:])})"


def _without_middle(text: str, chars_max: int, other: str) -> str:
    """Return the ends of a text; of what is left out, the words that it alone has."""
    half = chars_max // 2
    if len(text) <= chars_max:
        return text
    middle = text[half:-half]
    odd = sorted(word for word, count in _new_words(_WORD.findall(middle), [other]).items() if count == 1)
    words = f", with {' '.join(odd)}" if 0 < len(odd) <= _ODD_WORDS_MAX and len(max(odd, key=len)) < _CONTEXT else ""
    return f"{text[:half]}…({_rest(middle)}{words})…{text[-half:]}"


def _new_words(texts: Sequence[str], others: Sequence[str]) -> Counter[str]:
    """Return in how many of the texts each word is, but for those of the others."""
    known = {word for text in others for word in _WORD.findall(text)}
    return Counter(word for text in texts for word in {*_WORD.findall(text)} - known)


def _context(text: str, *, has_head: bool, has_tail: bool) -> str:
    """Return the ends of an equal piece that touch a difference."""
    head, tail = text[:_CONTEXT] if has_head else "", text[-_CONTEXT:] if has_tail else ""
    return text if len(text) <= len(head) + len(tail) + 1 else f"{head}…{tail}"


def _pieces(before: str, after: str) -> Iterator[tuple[str, str]]:
    """Yield both texts piece by piece: equal pieces, and those that differ, by words."""
    old, new = _TOKEN.findall(before), _TOKEN.findall(after)
    head, tail = _shared_ends(old, new)
    ends = len(old) - tail, len(new) - tail
    yield from _texts(old[:head], new[:head])
    if max(ends) - head > _TOKENS_MAX:
        yield from _texts(old[head : ends[0]], new[head : ends[1]])
    else:
        matcher = difflib.SequenceMatcher(None, old[head : ends[0]], new[head : ends[1]], autojunk=False)
        start, other_start = head, head
        for at, other_at, size in matcher.get_matching_blocks():
            common = old[head + at : head + at + size]
            # Shorter pieces in common make two texts of one that was written again.
            if sum(map(len, common)) >= _COMMON_MIN or not size:
                yield from _texts(old[start : head + at], new[other_start : head + other_at])
                yield from _texts(common, common)
                start, other_start = head + at + size, head + other_at + size
    yield from _texts(old[ends[0] :], new[ends[1] :])


def _parts(old: str, new: str, chars_max: int) -> Iterator[tuple[str, str]]:
    """Yield two different pieces, of long words without a blank their equal ends apart."""
    is_long = old != new and max(len(old), len(new)) > chars_max // 2
    head, tail = _shared_ends(old, new) if is_long else (0, 0)
    ends = len(old) - tail, len(new) - tail
    if head:
        yield old[:head], new[:head]
    if (head, head) != ends:
        yield old[head : ends[0]], new[head : ends[1]]
    if tail:
        yield old[ends[0] :], new[ends[1] :]


def _texts(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str]]:
    if old or new:
        yield "".join(old), "".join(new)


def _shared_ends(old: Sequence[str], new: Sequence[str]) -> tuple[int, int]:
    """Return how many items are equal at the beginning, and of the others at the end."""
    least = min(len(old), len(new))
    head = next((at for at in range(least) if old[at] != new[at]), least)
    tail = next((at for at in range(least - head) if old[-1 - at] != new[-1 - at]), least - head)
    return head, tail


def _look_alike(old: str, new: str) -> bool:
    """Return whether two different texts could be taken for each other. Source: Unicode UTS 39, confusables."""
    one, other = (unicodedata.normalize("NFKC", text) for text in (old, new))
    if one.split() == other.split() or _skeleton(one) == _skeleton(other):
        return True
    return len(one) == len(other) and any(map(_could_be, one, other))


def _skeleton(text: str) -> str:
    return text.translate(_TWINS).replace("rn", "m").replace("vv", "w")


def _could_be(char: str, other: str) -> bool:
    if char == other or (char.isascii() and other.isascii()):
        return False
    if not char.isalpha() or not other.isalpha():
        return char.isascii() != other.isascii() and not char.isalpha() and not other.isalpha()
    of, of_other = alphabet(char), alphabet(other)
    bases = {unicodedata.normalize("NFD", one)[0].isascii() for one in (char, other)}
    return bool(of and of_other) and (of != of_other or bases == {True, False})


def _spelled_out(text: str) -> str:
    return "".join(
        char if char.isascii() and char != " " else r"\x20" if char == " " else escape(char) for char in text
    )


def is_long_text(before: Any, after: Any) -> bool:
    """Return whether a diff of lines says more than before and after on one line."""
    return isinstance(before, str) and isinstance(after, str) and max(before.count("\n"), after.count("\n")) > 1


def text_diff(before: str, after: str, *, is_whole: bool = False) -> list[str]:
    r"""Return changed lines with `- ` and `+ `, two lines of context with `| `, gaps and notes as `…`.

    Lines end at `\n` and `\r\n` alone. `is_whole`: nothing is cut.
    """
    (old, old_ends), (new, new_ends) = _lines(before), _lines(after)
    if old == new:
        return ["only line ends change"]
    notes = ["… line ends change"] if old_ends != new_ends else []
    if before.endswith("\n") != after.endswith("\n"):
        notes.append(f"… the last line {'loses' if before.endswith(chr(10)) else 'gets'} its line end")
    head, tail = _shared_ends(old, new)
    ends = len(old) - tail, len(new) - tail
    chars_max = 1_000_000_000 if is_whole else _LINE_CHARS_MAX
    if max(ends) - head > _LINES_MAX:
        return [*_moved_lines(old[head : ends[0]], new[head : ends[1]], chars_max, is_whole=is_whole), *notes]
    start = max(head - 2, 0)
    old, new = old[start : ends[0] + 2], new[start : ends[1] + 2]
    lines: list[str] = []
    for group in difflib.SequenceMatcher(None, old, new, autojunk=False).get_grouped_opcodes(2):
        lines += ["…"] if lines else []
        for kind, first, last, other_first, other_last in group:
            block = old[first:last], new[other_first:other_last]
            if kind != "equal":
                lines += _changed_lines(*block, chars_max)
                continue
            for line in block[0]:
                # One that is cut anyway is made visible as far as it is shown.
                is_cut, text = len(line) > chars_max, _literal(line[:chars_max])
                line_text = f"{text[:chars_max]}…({_rest(line[chars_max:])})" if is_cut else cut_text(text, chars_max)
                lines.append(f"| {line_text}")
    return [*lines, *notes]


def _lines(text: str) -> tuple[list[str], str]:
    r"""Return lines without their ends, and the kind of these; of a text with both kinds, `\r` is part of a line."""
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    returns = text.count("\r\n")
    if returns and returns == text.count("\n"):
        return [line.removesuffix("\r") for line in lines], "\r\n"
    return lines, "\n"


def _changed_lines(old: Sequence[str], new: Sequence[str], chars_max: int) -> list[str]:
    """Return lines that replace others: one by one if they are as many, or too long to be shown whole."""
    sides: tuple[list[str], list[str]] = ([], [])
    for one, other in zip(old, new, strict=False):
        first, second = map(_line, _without_far_ends(one, other, chars_max))
        if len(old) == len(new) or max(len(first), len(second)) > chars_max:
            first, second = _pair(first, second, chars_max)
        sides[0].append(first)
        sides[1].append(second)
    gone, come = (
        [*shown_lines, *map(_line, lines[len(shown_lines) :])]
        for shown_lines, lines in zip(sides, (old, new), strict=True)
    )
    return [f"{mark} {cut_text(line, 3 * chars_max)}" for mark, side in (("-", gone), ("+", come)) for line in side]


def _line(text: str) -> str:
    shown_text = _literal(text)
    return rf"{shown_text[:-1]}\x20" if shown_text.endswith(" ") else shown_text


def _moved_lines(old: Sequence[str], new: Sequence[str], chars_max: int, *, is_whole: bool) -> Iterable[str]:
    """Return the lines that are on one side alone, of texts that are too long to be compared in order."""
    if is_whole:
        return [*(f"- {_line(line)}" for line in old), *(f"+ {_line(line)}" for line in new)]
    sides = ("- ", _apart(old, new), new), ("+ ", _apart(new, old), old)
    lines = [f"… {len(old):,} lines become {len(new):,} lines; those that are on one side alone:"]
    for mark, moved, others in sides:
        chosen = _oddest(moved, others)
        lines += [f"{mark}{cut_text(_line(moved[place]), chars_max)}" for place in sorted(chosen)]
        if rest := [line for place, line in enumerate(moved) if place not in chosen]:
            lines.append(f"… {len(rest):,} more of {mark.strip()} ({_rest(chr(10).join(rest))})")
    return lines


def _oddest(lines: Sequence[str], others: Sequence[str]) -> set[int]:
    """Return the places of the lines to show: those first that have a word that few others have."""
    if len(lines) <= _LONG_LINES_MAX:
        return {*range(len(lines))}
    counts = _new_words(lines, others)
    ranks = [
        min((counts[word] for word in _WORD.findall(line) if word in counts), default=len(lines)) for line in lines
    ]
    return {*sorted(range(len(lines)), key=ranks.__getitem__)[:_LONG_LINES_MAX]}


def _apart(lines: Sequence[str], others: Sequence[str]) -> list[str]:
    left = Counter(others)
    apart = []
    for line in lines:
        if left[line]:
            left[line] -= 1
        else:
            apart.append(line)
    return apart
