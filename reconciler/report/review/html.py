"""A plan as one page: no network, no script, nothing cut, nothing of the store that is markup.

The policy of the page allows its own stylesheet, by digest, and nothing else: no script, image, form, frame or request.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable, Sequence

from reconciler.model.plan import Action, Plan
from reconciler.model.problem import Severity
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import mask_plan
from reconciler.report.plan.alike import Alike, alike, alike_lines
from reconciler.report.plan.first_line import Hold, first_line, losses, plain
from reconciler.report.plan.folders import by_folder
from reconciler.report.plan.lines import (
    SUMMARY_COLUMNS,
    WHOLE,
    counts_by_cluster,
    placement_lines,
    short_revision,
    spoken,
    spoken_losses,
    totals,
    unjudged_lines,
)
from reconciler.report.plan.text import LOSSES, UNJUDGED, confirm_lines, incomplete
from reconciler.report.problems_text import problem_lines
from reconciler.report.review.markup import Markup, element, together
from reconciler.report.review.stylesheet import STYLESHEET
from reconciler.report.rollouts.stages import stage_lines

_OPEN_LINES_MAX = 200
_DIGEST = base64.b64encode(hashlib.sha256(STYLESHEET.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'"


def plans_html(plans: Iterable[Plan]) -> str:
    """A page with all of each plan; of several, one below the other."""
    masked = [mask_plan(plan) for plan in plans]
    title = plain(first_line(masked[0])) if masked else "no plan"
    head = together(
        (
            Markup('<meta charset="utf-8">'),
            Markup(f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'),
            Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
            Markup('<meta name="referrer" content="no-referrer">'),
            element("title", f"Fleet plan: {title}"),
            Markup(f"<style>{STYLESHEET}</style>"),
        )
    )
    body = element("body", *(element("main", *_parts(plan)) for plan in masked))
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>\n{body}</html>\n'


def _parts(plan: Plan) -> Iterable[Markup]:
    found = alike(plan.changes)
    others = [one for one in found if not one.entry.is_destructive]
    problems = sorted_problems(plan.problems)
    faults = [problem for problem in problems if problem.severity is Severity.ERROR]
    rest = [problem for problem in problems if problem.severity is not Severity.ERROR]
    yield from _head(plan)
    yield from _section("Stages", [_block(lines)] if (lines := stage_lines(plan)) else [])
    yield from _section(LOSSES, [_entry(one) for one in found if one.entry.is_destructive])
    yield from _section("Errors", [_block([line]) for line in problem_lines(faults)])
    unjudged = sorted(plan.unjudged, key=lambda one: one.identity)
    yield from _section(UNJUDGED, [_block(unjudged_lines(one, detail=WHOLE)) for one in unjudged])
    for folder, part in by_folder([one for one in others if one.entry.held is None]).items():
        yield from _changes("Changes", part, folder)
    held = [one for one in others if one.entry.held is not None]
    yield from _changes("Held", held)
    placements = sorted(plan.placements, key=lambda one: one.identity)
    yield from _folded("Placements", [_block(placement_lines(one)) for one in placements])
    yield from _table(plan)
    yield from _folded("Warnings and hints", [_block([line]) for line in problem_lines(rest)])


def _head(plan: Plan) -> Iterable[Markup]:
    words = (element("code", word.text) if word.is_code else word.text for word in first_line(plan))
    yield element("h1", *words)
    counts = spoken(totals(counts_by_cluster(plan.changes).values()))
    base, head = (element("code", short_revision(revision)) for revision in (plan.base, plan.head))
    yield element("p", "Fleet plan ", base, " → ", head, f" · {counts}" if counts else "", class_="dim")
    lost = losses(plan)
    words_of = {Hold.NONE: "Contains ", Hold.GUARD: "The guard holds ", Hold.WAITING: "Held for now: "}
    box = [f"{words_of[hold]}{spoken_losses(number)}." for hold, number in lost.items() if any(number.values())]
    if any(number[Action.RELEASE] for number in lost.values()):
        box.append("What is released stays in its cluster and becomes unmanaged.")
    box.extend(confirm_lines(plan.held_digest))
    if box:
        yield element("div", *(element("p", line) for line in box), class_="box loss", role="alert")
    if not plan.is_complete:
        yield element("div", element("p", incomplete(plan)), class_="box fault", role="alert")


def _changes(title: str, found: Sequence[Alike], folder: str = "") -> Iterable[Markup]:
    lines = sum(len(alike_lines(one)) for one in found)
    count = sum(one.objects for one in found)
    return _folded(title, [_entry(one) for one in found], folder, count=count, lines=lines)


def _section(title: str, blocks: Sequence[Markup]) -> Iterable[Markup]:
    """Yield a section that is never folded."""
    if blocks:
        yield element("section", element("h2", title), *blocks)


def _folded(
    title: str, blocks: Sequence[Markup], folder: str = "", *, count: int | None = None, lines: int | None = None
) -> Iterable[Markup]:
    """Yield a section that is folded if long. `count` and `lines`: of the blocks, if one block is not one."""
    if not blocks:
        return
    where = (" in ", element("code", folder)) if folder else ()
    inside = together((element("summary", title, *where, f" ({len(blocks) if count is None else count:,})"), *blocks))
    opened = " open" if (len(blocks) if lines is None else lines) <= _OPEN_LINES_MAX else ""
    yield Markup(f"<details{opened}>{inside}</details>")


def _entry(one: Alike) -> Markup:
    return _block(alike_lines(one, detail=WHOLE), kind="entry loss" if one.entry.is_destructive else "entry")


def _block(lines: Sequence[str], kind: str = "entry") -> Markup:
    painted = [_line(line, is_first=not number) for number, line in enumerate(lines)]
    pieces = [piece for line in painted for piece in (line, Markup("\n"))]
    return element("div", element("pre", *pieces[:-1]), class_=kind)


def _line(line: str, *, is_first: bool) -> Markup:
    if is_first:
        return element("span", line, class_="head")
    mark = line.lstrip()[:2]
    kind = {"- ": "minus", "+ ": "plus"}.get(mark, "")
    return element("span", line, class_=kind) if kind else together((line,))


def _table(plan: Plan) -> Iterable[Markup]:
    counts = counts_by_cluster(plan.changes)
    if len(counts) < 2:
        return
    columns = [name for name in SUMMARY_COLUMNS if any(row[name] for row in counts.values())]
    sums = totals(counts.values())
    rows = [
        element("tr", element("td", element("code", name)), *(element("td", f"{row[column]:,}") for column in columns))
        for name, row in counts.items()
    ]
    whole = element("tr", element("th", "all"), *(element("th", f"{sums[column]:,}") for column in columns))
    head = element("tr", element("th", "cluster"), *(element("th", column) for column in columns))
    table = element("table", element("thead", head), element("tbody", *rows, whole))
    yield element("section", element("h2", "Clusters"), element("div", table, class_="wide"))
