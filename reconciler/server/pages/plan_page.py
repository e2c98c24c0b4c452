"""A plan as one page, uncut: the policy of the page allows its own stylesheet, by digest, and nothing else."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from msgspec import Struct

from reconciler.api.plan import Action, Direction, Plan
from reconciler.api.problem import Severity
from reconciler.api.refs import short_revision
from reconciler.report.plan.change_lines import (
    SUMMARY_COLUMNS,
    WHOLE,
    counts_by_cluster,
    placement_lines,
    spoken,
    totals,
    unjudged_lines,
)
from reconciler.report.plan.equal_changes import PlanParts, alike_lines, by_folder, parts_of
from reconciler.report.plan.first_line import Code, first_line, loss_words, plain
from reconciler.report.plan.groups import PlanEntry
from reconciler.report.plan.plan_text import (
    LOSSES,
    SETTINGS,
    UNJUDGED,
    confirm_lines,
    incomplete,
    review_lines,
    setting_lines,
)
from reconciler.report.plan.stages import stage_lines
from reconciler.report.problems_text import problem_lines
from reconciler.server.pages.drawing import draw

_OPEN_LINES_MAX: Final = 200
_VALUE_CHARS_MAX: Final = 10_000
_STYLE: Final = (Path(__file__).parent / "templates/plan.css").read_text(encoding="utf-8")
"""Nothing in it comes from a store."""
_DIGEST: Final = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode()
_POLICY: Final = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'"


class PageBlock(NamedTuple):
    """Lines about one thing, each with its style, in a frame of a style."""

    lines: tuple[tuple[str, str], ...]
    kind: str


class PagePart(Struct, frozen=True):
    """A titled part. `is_open` None: it is never folded. `folder`: its part of the store; empty: all of it."""

    title: str
    blocks: Sequence[PageBlock]
    is_open: bool | None = None
    count: int = 0
    folder: str = ""


def plans_html(plans: Iterable[Plan]) -> str:
    """A page with all of each plan; of several, one below the other."""
    parts = list(map(parts_of, plans))
    title = plain(first_line(parts[0].plan)) if parts else "no plan"
    return draw("plan.html", title=title, style=_STYLE, policy=_POLICY, plans=list(map(_values, parts)))


def _values(parts: PlanParts) -> dict[str, Any]:
    plan = parts.plan
    rest = [problem for problem in plan.problems if problem.severity is not Severity.ERROR]
    losses = loss_words(plan)
    if any(change.action is Action.RELEASE for change in plan.changes):
        losses.append("What is released stays in its cluster and becomes unmanaged.")
    return {
        "first_line": [(word, isinstance(word, Code)) for word in first_line(plan)],
        "base": short_revision(plan.base) if plan.base else "",
        "head": short_revision(plan.head),
        "counts": spoken(totals(counts_by_cluster(plan.changes).values())),
        "losses": [*losses, *confirm_lines(plan.held_digest), *review_lines(plan.settings_digest)],
        "incomplete": "" if plan.is_complete else incomplete(plan),
        "parts": [part for part in _parts(parts) if part.blocks],
        "table": _table(plan),
        "remarks": [_folded("Warnings and hints", _lines(problem_lines(rest)))] if rest else [],
    }


def _parts(parts: PlanParts) -> Iterator[PagePart]:
    plan = parts.plan
    faults = [problem for problem in plan.problems if problem.severity is Severity.ERROR]
    settings = (
        _block(setting_lines(one, value_chars_max=_VALUE_CHARS_MAX), is_loss=one.direction is Direction.LOOSENS)
        for one in plan.settings
    )
    yield PagePart(SETTINGS, list(settings))
    yield PagePart("Stages", [_block(lines)] if (lines := stage_lines(plan)) else [])
    yield PagePart(LOSSES, list(map(_entry, parts.losses)))
    yield PagePart("Errors", _lines(problem_lines(faults)))
    yield PagePart(UNJUDGED, [_block(unjudged_lines(one, detail=WHOLE)) for one in plan.unjudged])
    yield PagePart("Labels of charts", _lines(parts.labels))
    for folder, part in by_folder(parts.ready).items():
        yield _changes("Changes", part, folder)
    yield _changes("Held", parts.held)
    yield _folded("Placements", [_block(placement_lines(one)) for one in plan.placements])


def _changes(title: str, entries: Sequence[PlanEntry], folder: str = "") -> PagePart:
    lines, count = sum(len(alike_lines(one)) for one in entries), sum(one.objects for one in entries)
    return PagePart(title, [_entry(one) for one in entries], lines <= _OPEN_LINES_MAX, count, folder)


def _folded(title: str, blocks: Sequence[PageBlock]) -> PagePart:
    return PagePart(title, blocks, len(blocks) <= _OPEN_LINES_MAX, len(blocks))


def _entry(one: PlanEntry) -> PageBlock:
    return _block(alike_lines(one, detail=WHOLE), is_loss=one.is_destructive)


def _lines(lines: Iterable[str]) -> list[PageBlock]:
    return [_block([line]) for line in lines]


def _block(lines: Sequence[str], *, is_loss: bool = False) -> PageBlock:
    kinds = {"- ": "minus", "+ ": "plus"}
    rows = ((line, kinds.get(line.lstrip()[:2], "") if number else "head") for number, line in enumerate(lines))
    return PageBlock(tuple(rows), "entry loss" if is_loss else "entry")


def _table(plan: Plan) -> list[list[str]]:
    """Return a row for each cluster, between the heads and the sums; empty unless there are several."""
    counts = counts_by_cluster(plan.changes)
    if len(counts) < 2:
        return []
    columns = [name for name in SUMMARY_COLUMNS if any(row[name] for row in counts.values())]
    rows = [*counts.items(), ("all", totals(counts.values()))]
    return [["cluster", *columns], *([name, *(f"{row[column]:,}" for column in columns)] for name, row in rows)]
