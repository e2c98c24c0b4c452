"""A plan in limited space: a section is cut in steps, after all less important ones have nothing left to cut.

From the least important: hints; long values; reasons of placements; placements; warnings; the table of clusters; held
changes without loss; names of objects with equal changes; further changes; stages of rollouts; objects not evaluated;
errors; losses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.plan import PlacementChange, Plan, Unjudged
from reconciler.api.problem import Problem, Severity
from reconciler.report.json_parts import sorted_problems
from reconciler.report.plan.alike import EqualChanges, alike, alike_lines, by_folder
from reconciler.report.plan.change_lines import (
    SUMMARY_COLUMNS,
    Detail,
    counts_by_cluster,
    placement_lines,
    totals,
    unjudged_lines,
)
from reconciler.report.plan.groups import by_importance, leaf, plural, without_chart_labels
from reconciler.report.plan.plan_text import LOSSES, SETTINGS, UNJUDGED, setting_lines
from reconciler.report.plan.stages import stage_lines
from reconciler.report.problems_text import problem_lines
from reconciler.report.safe import code_span, visible


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
    """Return sections with their next form, least important first; those that matter alike together."""
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


_FULL = Detail()
_SHORT = Detail(fields_max=5, value_chars=60, has_text_diffs=False)
_NAMELESS = Detail(fields_max=5, value_chars=60, has_text_diffs=False, name_lines_max=2)
_BARE = Detail(fields_max=0)
_OPEN_LINES_MAX = 40
"""Longer sections are folded."""
_OPEN_ERRORS_MAX = 10
_OPEN_CLUSTERS_MAX = 10

(_HINTS, _VALUES, _REASONS, _PLACED, _WARNINGS, _TABLE, _WAITING, _NAMES, _CHANGES, _STAGES, _UNJUDGED, _ERRORS,
 _LOSS_FIELDS, _LOSSES, _SETTINGS) = range(15)  # fmt: skip

_VALUES_LOST = "long values and texts"
_NAMES_LOST = "names of objects that change alike"


def sections_of(plan: Plan) -> tuple[Section, ...]:
    """Return the sections of a redacted plan, in reading order."""
    changes, labels = without_chart_labels(plan.changes)
    found = alike(changes)
    losses = [one for one in found if one.entry.is_destructive]
    ready = [one for one in found if not one.entry.is_destructive and one.entry.held is None]
    held = [one for one in found if not one.entry.is_destructive and one.entry.held is not None]
    problems = sorted_problems(plan.problems)
    placements = sorted(plan.placements, key=lambda placement: placement.identity)
    parts = (
        _settings(plan),
        _stages(plan),
        _losses(losses),
        _problems(problems, Severity.ERROR, "Errors", _ERRORS),
        _not_evaluated(sorted(plan.unjudged, key=lambda one: one.identity)),
        *_changes(ready),
        _chart_labels(labels),
        _waiting(held),
        _placements(placements),
        _table(plan),
        _problems(problems, Severity.WARNING, "Warnings", _WARNINGS),
        _problems(problems, Severity.HINT, "Hints", _HINTS),
    )
    return tuple(part for part in parts if part.count)


def _settings(plan: Plan) -> Section:
    items = tuple(Item(lines=tuple(setting_lines(change))) for change in plan.settings)
    return Section(
        title=SETTINGS,
        count=len(plan.settings),
        forms=(Form(items=items),),
        ranks=(_SETTINGS,),
        is_folded=False,
        noun="settings",
    )


def _stages(plan: Plan) -> Section:
    items = tuple(Item(lines=(line,)) for line in stage_lines(plan))
    return Section(
        title="Stages",
        count=len(plan.rollouts),
        forms=(Form(items=items),),
        ranks=(_STAGES,),
        is_folded=False,
        noun="lines",
    )


def _chart_labels(lines: Sequence[str]) -> Section:
    forms = (Form(items=(Item(lines=tuple(lines)),)),)
    return Section(title="Labels of charts", count=bool(lines), forms=forms, ranks=(_CHANGES,), is_folded=False)


def _losses(found: Sequence[EqualChanges]) -> Section:
    """Cut by lines, since one line may name hundreds of objects."""

    def form(detail: Detail, lost: str = "") -> Form:
        lines = (line for one in found for line in alike_lines(one, detail=detail))
        return Form(items=tuple(Item(lines=(line,)) for line in lines), lost=lost)

    return Section(
        title=LOSSES,
        count=sum(one.count for one in found),
        forms=(form(_FULL), form(_SHORT, _VALUES_LOST), form(_BARE, "fields")),
        ranks=(_VALUES, _LOSS_FIELDS, _LOSSES),
        is_folded=False,
        noun="lines",
    )


def _items(found: Iterable[EqualChanges], detail: Detail) -> tuple[Item, ...]:
    return tuple(Item(lines=tuple(alike_lines(one, detail=detail)), subject=_subject(one)) for one in found)


def _subject(one: EqualChanges) -> str:
    """Return `update Deployments (image)`: the name of omitted changes."""
    paths = by_importance(line.path for line in one.entry.fields)
    names = f" ({', '.join(visible(leaf(path))[:40] for path in paths[:3])})" if paths else ""
    return f"{one.entry.action} {visible(plural(one.entry.identity.kind))[:60]}{names}"


def _changes(found: Sequence[EqualChanges]) -> list[Section]:
    sections = []
    for folder, part in by_folder(found).items():
        forms = (
            Form(items=_items(part, _FULL)),
            Form(items=_items(part, _SHORT), lost=_VALUES_LOST),
            Form(items=_items(part, _NAMELESS), lost=_NAMES_LOST),
        )
        sections.append(
            Section(
                title="Changes",
                folder=folder,
                count=sum(one.objects for one in part),
                forms=forms,
                ranks=(_VALUES, _NAMES, _CHANGES),
                is_open=sum(len(item.lines) for item in forms[0].items) <= _OPEN_LINES_MAX,
            )
        )
    return sections


def _waiting(found: Sequence[EqualChanges]) -> Section:
    return Section(
        title="Held",
        count=sum(one.objects for one in found),
        forms=(Form(items=_items(found, _FULL)), Form(items=_items(found, _SHORT), lost=_VALUES_LOST)),
        ranks=(_VALUES, _WAITING),
    )


def _not_evaluated(found: Sequence[Unjudged]) -> Section:
    def form(detail: Detail, lost: str = "") -> Form:
        items = (Item(lines=tuple(unjudged_lines(one, detail=detail))) for one in found)
        return Form(items=tuple(items), lost=lost)

    return Section(
        title=UNJUDGED,
        count=len(found),
        forms=(form(_FULL), form(_SHORT, _VALUES_LOST)),
        ranks=(_VALUES, _UNJUDGED),
        is_folded=False,
    )


def _placements(found: Sequence[PlacementChange]) -> Section:
    def form(lost: str = "") -> Form:
        items = (Item(lines=tuple(placement_lines(one, has_reasons=not lost))) for one in found)
        return Form(items=tuple(items), lost=lost)

    return Section(
        title="Placements", count=len(found), forms=(form(), form("reasons")), ranks=(_REASONS, _PLACED)
    )  # fmt: skip


def _problems(problems: Sequence[Problem], severity: Severity, title: str, rank: int) -> Section:
    found = [problem for problem in problems if problem.severity is severity]
    items = tuple(Item(lines=(line,)) for line in problem_lines(found, is_all=False))
    is_open = severity is Severity.ERROR and len(items) <= _OPEN_ERRORS_MAX
    return Section(
        title=title, count=len(found), forms=(Form(items=items),), ranks=(rank,), is_folded=not is_open, noun="lines"
    )


def _table(plan: Plan) -> Section:
    counts = counts_by_cluster(plan.changes)
    columns = [name for name in SUMMARY_COLUMNS if any(row[name] for row in counts.values())]
    sums = totals(counts.values())
    heading = (
        _row(["cluster", *columns]),
        _row(["---", *("---:" for _ in columns)]),
        _row(["**all**", *(f"**{sums[column]:,}**" for column in columns)]),
    )
    rows = tuple(
        Item(lines=(_row([code_span(name), *(f"{row[column]:,}" for column in columns)]),))
        for name, row in counts.items()
    )
    return Section(
        title="Clusters",
        count=len(counts) if len(counts) > 1 else 0,
        forms=(Form(items=rows),),
        ranks=(_TABLE,),
        heading=heading,
        is_open=len(counts) <= _OPEN_CLUSTERS_MAX,
        is_table=True,
        noun="rows",
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
