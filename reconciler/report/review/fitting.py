"""A plan in limited space: the least important part goes first, and omissions are named.

A section is cut in steps that its maker defines, at last item by item. A section is cut only after all less important
ones have nothing left to cut.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace


class Item(Struct, frozen=True, kw_only=True):
    """Lines that stay together. `subject`: the name under which omitted ones are counted."""

    lines: tuple[str, ...]
    subject: str = ""


class Form(Struct, frozen=True, kw_only=True):
    """The items of a section at some length. `lost`: the part of the longer form that is missing."""

    items: tuple[Item, ...]
    lost: str = ""


class Section(Struct, frozen=True, kw_only=True):
    """A titled block about `count` things, which can be shown in several forms, the longest first.

    `folder`: its part of the store, empty: all of it. `ranks`: the importance of each further form's omissions, and at
    last of the items themselves, by which the cuts of all sections are ordered. `heading`: lines that stay as long as
    any item does.
    """

    title: str
    folder: str = ""
    count: int
    forms: tuple[Form, ...]
    ranks: tuple[int, ...]
    heading: tuple[str, ...] = ()
    is_folded: bool = True
    is_open: bool = False
    is_table: bool = False
    noun: str = "entries"


class ShownSection(Struct, frozen=True, kw_only=True):
    """A section as it is shown: a form, and how many of its items; None: all."""

    section: Section
    form: int = 0
    kept: int | None = None

    @property
    def items(self) -> tuple[Item, ...]:
        """Return the items that are shown."""
        return self.section.forms[self.form].items[: self.kept]

    @property
    def left_out(self) -> tuple[Item, ...]:
        """Return the items that are not shown."""
        return () if self.kept is None else self.section.forms[self.form].items[self.kept :]

    @property
    def lines(self) -> tuple[str, ...]:
        """Return the lines, with one about omissions."""
        lines = tuple(line for item in self.items for line in item.lines)
        tail = self._tail()
        return (*self.section.heading, *lines, *tail) if lines or tail else ()

    def _tail(self) -> tuple[str, ...]:
        subjects = Counter(item.subject for item in self.left_out if item.subject)
        if not subjects or self.section.is_table:
            return ()
        told = [f"{count:,} × {subject}" for subject, count in subjects.most_common(_SUBJECTS_MAX)]
        more = ["…"] if len(subjects) > len(told) else []
        return (f"… {len(self.left_out):,} more: {', '.join([*told, *more])}",)

    @property
    def lost(self) -> tuple[str, ...]:
        """Return the parts of the longest form that are missing."""
        forms = self.section.forms[: self.form + 1]
        return tuple(form.lost for before, form in pairwise(forms) if form.items != before.items)


_SUBJECTS_MAX = 5

Composer = Callable[[Sequence[ShownSection]], str]


def fitted(sections: Iterable[Section], compose: Composer, budget: int) -> str:
    """The composed text of at most `budget` UTF-8 bytes with as much in it as fits; empty when nothing does."""
    shown = [ShownSection(section=section) for section in sections]
    text = compose(shown)
    for places, form in _cuts([one.section for one in shown]):
        if size(text) <= budget:
            return text
        if form < len(shown[places[0]].section.forms):
            shown = [replace(one, form=form) if place in places else one for place, one in enumerate(shown)]
            text = compose(shown)
        else:
            shown, text = _trimmed(shown, places, compose, budget)
    return text if size(text) <= budget else ""


def _cuts(sections: Sequence[Section]) -> list[tuple[list[int], int]]:
    """Which sections take which form, least important first; those that matter alike take it together."""
    found: dict[tuple[int, int], list[int]] = {}
    for place, section in enumerate(sections):
        for form, rank in enumerate(section.ranks, start=1):
            found.setdefault((rank, form), []).append(place)
    return [(found[key], key[1]) for key in sorted(found)]


def _trimmed(
    shown: Sequence[ShownSection], places: Sequence[int], compose: Composer, budget: int
) -> tuple[list[ShownSection], str]:  # fmt: skip
    """The sections with as many items each as fit, and the text; with none where not even one does."""

    def with_items(kept: int) -> tuple[list[ShownSection], str]:
        tried = [replace(one, kept=kept) if place in places else one for place, one in enumerate(shown)]
        return tried, compose(tried)

    low, high = 1, max(len(shown[place].items) for place in places)
    best = with_items(0)
    while low <= high:
        kept = (low + high) // 2
        tried = with_items(kept)
        if size(tried[1]) <= budget:
            best, low = tried, kept + 1
        else:
            high = kept - 1
    return best


def size(text: str) -> int:
    """Return the size of a text in bytes, as the budget counts it."""
    return len(text.encode())
