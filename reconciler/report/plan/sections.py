"""A plan in limited space: a section is cut in steps, after all less important ones have nothing left to cut.

From the least important: hints; long values; reasons of placements; placements; warnings; the table of clusters; held
changes without loss; names of objects with equal changes; further changes; stages of rollouts; objects not evaluated;
errors; losses.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.plan import Plan
from reconciler.api.problem import Problem, Severity
from reconciler.incremental import by_key
from reconciler.report.plan.change_lines import (
    SUMMARY_COLUMNS,
    Detail,
    counts_by_cluster,
    placement_lines,
    totals,
    unjudged_lines,
)
from reconciler.report.plan.equal_changes import PlanParts, alike_lines, by_folder
from reconciler.report.plan.groups import PlanEntry, by_importance, leaf, plural
from reconciler.report.plan.plan_text import LOSSES, SETTINGS, UNJUDGED, setting_lines
from reconciler.report.plan.stages import stage_lines
from reconciler.report.problems_text import problem_lines
from reconciler.report.safe_text import code_span, visible

Lines = tuple[str, ...]
"""Lines that stay together."""


class Form(NamedTuple):
    """The items of a section at some length. `lost`: the part of the longer form that is missing."""

    items: tuple[Lines, ...]
    lost: str = ""


class Section(Struct, frozen=True, kw_only=True):
    """A titled block about `count` things, which can be shown in several forms, the longest first.

    `folder`: its part of the store, empty: all of it. `ranks`: the importance of each further form's omissions, and at
    last of the items themselves, by which the cuts of all sections are ordered. `heading`: lines that stay as long as
    any item does. `subjects`: of each item the name under which omitted ones are counted.
    """

    title: str
    folder: str = ""
    count: int
    forms: tuple[Form, ...]
    ranks: tuple[int, ...]
    heading: Lines = ()
    subjects: Lines = ()
    is_folded: bool = True
    is_open: bool = False
    is_table: bool = False
    noun: str = "entries"


class ShownSection(Struct, frozen=True, kw_only=True):
    """A section as it is shown: a form, and how many of its items; None: all."""

    section: Section
    form: int = 0
    items_max: int | None = None

    @property
    def items(self) -> tuple[Lines, ...]:
        """Return the items that are shown."""
        return self.section.forms[self.form].items[: self.items_max]

    @property
    def left_out(self) -> int:
        """Return the number of items that are not shown."""
        return len(self.section.forms[self.form].items) - len(self.items)

    @property
    def lines(self) -> Lines:
        """Return the lines, with one about omissions."""
        lines = tuple(line for item in self.items for line in item)
        left = Counter(self.section.subjects[self.items_max :] if self.items_max is not None else ())
        if left:
            subjects = [f"{count:,} × {subject}" for subject, count in left.most_common(_SUBJECTS_MAX)]
            more = ["…"] if len(left) > len(subjects) else []
            lines = (*lines, f"… {self.left_out:,} more: {', '.join([*subjects, *more])}")
        return (*self.section.heading, *lines) if lines else ()

    @property
    def lost(self) -> Lines:
        """Return the parts of the longest form that are missing."""
        forms = self.section.forms[: self.form + 1]
        return tuple(form.lost for before, form in pairwise(forms) if form.items != before.items)


_SUBJECTS_MAX = 5

Composer = Callable[[Sequence[ShownSection]], str]


def fitted(sections: Iterable[Section], compose: Composer, budget: int) -> str:
    """The composed text of at most `budget` UTF-8 bytes with as much in it as fits; empty when nothing does."""
    parts = [ShownSection(section=section) for section in sections]
    text = compose(parts)
    # Sections with their next form, the least important first; those that matter alike together.
    cuts = by_key(((rank, form), place) for place, one in enumerate(parts)
                  for form, rank in enumerate(one.section.ranks, start=1))  # fmt: skip
    for (_, form), places in sorted(cuts.items()):
        if size(text) <= budget:
            return text
        if form < len(parts[places[0]].section.forms):
            parts = [replace(one, form=form) if place in places else one for place, one in enumerate(parts)]
            text = compose(parts)
        else:
            parts, text = _trimmed(parts, places, compose, budget)
    return text if size(text) <= budget else ""


def _trimmed(
    parts: Sequence[ShownSection], places: Sequence[int], compose: Composer, budget: int
) -> tuple[list[ShownSection], str]:  # fmt: skip
    """The sections with as many items each as fit, and the text; with none where not even one does."""

    def with_items(count: int) -> tuple[list[ShownSection], str]:
        tried = [replace(one, items_max=count) if place in places else one for place, one in enumerate(parts)]
        return tried, compose(tried)

    low, high = 1, max(len(parts[place].items) for place in places)
    best = with_items(0)
    while low <= high:
        count = (low + high) // 2
        tried = with_items(count)
        if size(tried[1]) <= budget:
            best, low = tried, count + 1
        else:
            high = count - 1
    return best


def size(text: str) -> int:
    """Return the size of a text in bytes, as the budget counts it."""
    return len(text.encode())


_FULL = Detail()
_SHORT = Detail(fields_max=5, value_chars=60, has_text_diffs=False)
_NAMELESS = Detail(fields_max=5, value_chars=60, has_text_diffs=False, name_lines_max=2)
_BARE = Detail(fields_max=0)
_OPEN_LINES_MAX = 40
_OPEN_ERRORS_MAX = 10
_OPEN_CLUSTERS_MAX = 10

(_HINTS, _VALUES, _REASONS, _PLACED, _WARNINGS, _TABLE, _WAITING, _NAMES, _CHANGES, _STAGES, _UNJUDGED, _ERRORS,
 _LOSS_FIELDS, _LOSSES, _SETTINGS) = range(15)  # fmt: skip

_LONG = (_FULL, "")
_WITHOUT_VALUES = (_SHORT, "long values and texts")
_WITHOUT_NAMES = (_NAMELESS, "names of objects that change alike")


def sections_of(contents: PlanParts) -> tuple[Section, ...]:
    """Return the sections of a plan, in reading order."""
    plan, losses, problems = contents.plan, contents.losses, contents.plan.problems
    placements, unjudged, labels = plan.placements, plan.unjudged, (tuple(contents.labels),)
    stages, settings = stage_lines(plan), tuple(tuple(setting_lines(change)) for change in plan.settings)
    parts = (
        Section(title=SETTINGS, count=len(settings), forms=(Form(settings),), ranks=(_SETTINGS,), is_folded=False,
                noun="settings"),
        Section(title="Stages", count=len(plan.rollouts), forms=(_by_line(stages),), ranks=(_STAGES,), is_folded=False,
                noun="lines"),
        # Cut by lines, since one line may name hundreds of objects.
        Section(title=LOSSES, count=sum(one.count for one in losses), ranks=(_VALUES, _LOSS_FIELDS, _LOSSES),
                forms=tuple(_by_line((line for one in losses for line in alike_lines(one, detail=detail)), lost)
                            for detail, lost in (_LONG, _WITHOUT_VALUES, (_BARE, "fields"))),
                is_folded=False, noun="lines"),
        _problems(problems, Severity.ERROR, "Errors", _ERRORS),
        Section(title=UNJUDGED, count=len(unjudged), ranks=(_VALUES, _UNJUDGED), is_folded=False,
                forms=tuple(Form(tuple(tuple(unjudged_lines(one, detail=detail)) for one in unjudged), lost)
                            for detail, lost in (_LONG, _WITHOUT_VALUES))),
        *(_changes("Changes", part, (_VALUES, _NAMES, _CHANGES), _LONG, _WITHOUT_VALUES, _WITHOUT_NAMES, folder=folder)
          for folder, part in by_folder(contents.ready).items()),
        Section(title="Labels of charts", count=bool(contents.labels), forms=(Form(labels),), ranks=(_CHANGES,),
                is_folded=False),
        _changes("Held", contents.held, (_VALUES, _WAITING), _LONG, _WITHOUT_VALUES),
        Section(title="Placements", count=len(placements), ranks=(_REASONS, _PLACED),
                forms=tuple(Form(tuple(tuple(placement_lines(one, has_reasons=not lost)) for one in placements), lost)
                            for lost in ("", "reasons"))),
        _table(plan),
        _problems(problems, Severity.WARNING, "Warnings", _WARNINGS),
        _problems(problems, Severity.HINT, "Hints", _HINTS),
    )  # fmt: skip
    return tuple(part for part in parts if part.count)


def _by_line(lines: Iterable[str], lost: str = "") -> Form:
    return Form(tuple((line,) for line in lines), lost)


def _changes(
    title: str, entries: Sequence[PlanEntry], ranks: tuple[int, ...], *details: tuple[Detail, str], folder: str = ""
) -> Section:
    forms = tuple(Form(tuple(tuple(alike_lines(one, detail=how)) for one in entries), lost) for how, lost in details)
    return Section(
        title=title,
        folder=folder,
        count=sum(one.objects for one in entries),
        forms=forms,
        ranks=ranks,
        subjects=tuple(map(_subject, entries)),
        is_open=title == "Changes" and sum(map(len, forms[0].items)) <= _OPEN_LINES_MAX,
    )


def _subject(one: PlanEntry) -> str:
    """Return `update Deployments (image)`: the name of omitted changes."""
    paths = by_importance(line.path for line in one.fields)
    names = f" ({', '.join(visible(leaf(path))[:40] for path in paths[:3])})" if paths else ""
    return f"{one.action} {visible(plural(one.identity.kind))[:60]}{names}"


def _problems(problems: Sequence[Problem], severity: Severity, title: str, rank: int) -> Section:
    chosen = [problem for problem in problems if problem.severity is severity]
    form = _by_line(problem_lines(chosen, is_all=False))
    is_open = severity is Severity.ERROR and len(form.items) <= _OPEN_ERRORS_MAX
    return Section(title=title, count=len(chosen), forms=(form,), ranks=(rank,), is_folded=not is_open, noun="lines")


def _table(plan: Plan) -> Section:
    counts = counts_by_cluster(plan.changes)
    columns = [name for name in SUMMARY_COLUMNS if any(row[name] for row in counts.values())]
    sums = totals(counts.values())
    heading = (
        ["cluster", *columns],
        ["---", *("---:" for _ in columns)],
        ["**all**", *(f"**{sums[column]:,}**" for column in columns)],
    )
    rows = [[code_span(name), *(f"{row[column]:,}" for column in columns)] for name, row in counts.items()]
    return Section(
        title="Clusters",
        count=len(counts) if len(counts) > 1 else 0,
        forms=(_by_line(map(_row, rows)),),
        ranks=(_TABLE,),
        heading=tuple(map(_row, heading)),
        is_open=len(counts) <= _OPEN_CLUSTERS_MAX,
        is_table=True,
        noun="rows",
    )


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"
