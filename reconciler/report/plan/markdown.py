"""A plan as a comment on a pull request.

Counts and what destroys stand above any fold. Everything that comes from the store or a cluster stands in code, where
it is neither markup nor a mention nor a link. The size is a hard limit (GitHub takes 65,536 characters): detail is
given up in steps, and what was given up is named. The budget counts UTF-8 bytes, the stricter of the two readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from reconciler.model.plan import PlacementChange, Plan
from reconciler.model.problem import Severity
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import mask_plan
from reconciler.report.plan.group import Entry, grouped
from reconciler.report.plan.lines import (
    SUMMARY_COLUMNS,
    Detail,
    counts_by_cluster,
    entry_lines,
    placement_lines,
    plan_headline,
    short_revision,
    spoken_losses,
    totals,
    unjudged_lines,
)
from reconciler.report.plan.text import DESTRUCTION, UNJUDGED, Scope, confirm_lines, incomplete
from reconciler.report.problems_text import problem_lines, spoken_problems
from reconciler.report.text.safe import code_html, code_span, fence_for, joined

BUDGET = 65_536
"""What GitHub takes in one comment; Bitbucket takes 32,768, Azure 150,000."""

BUDGET_MIN = 2048
"""Enough for the counts of the whole fleet."""


class _Section(Struct, frozen=True, kw_only=True):
    """A block of lines in code about `count` things. A folded one hides behind its title."""

    title: str
    count: int
    lines: tuple[str, ...]
    is_folded: bool = True


_STEPS = (
    ("", Detail()),
    ("long values and texts are cut", Detail(fields_max=5, value_chars=60, has_text_diffs=False)),
    ("fields are left out", Detail(fields_max=0)),
)


def plan_markdown(
    plan: Plan,
    *,
    budget: int = BUDGET,
    marker: str = "",
    scope: Scope | None = None,
    annotations: Iterable[str] = (),
) -> str:
    """The plan as Markdown of at most `budget` UTF-8 bytes.

    `marker` names the comment that a later run should edit (the fleet, when a repository holds several).
    """
    assert budget >= BUDGET_MIN, f"a comment needs {BUDGET_MIN} bytes, {budget} were given"
    plan = mask_plan(plan, annotations=annotations)
    head = _head(plan, marker, scope)
    table = _table(plan)
    entries = grouped(plan.changes)
    for cut, detail in _STEPS:
        text = _composed(head, table, _sections(plan, entries, detail), cut)
        if _size(text) <= budget:
            return text
    return _shortened(head, table, _sections(plan, entries, _STEPS[-1][1]), budget)


def _head(plan: Plan, marker: str, scope: Scope | None) -> list[str]:
    counts = totals(counts_by_cluster(plan.changes).values())
    seen = f" · {scope.clusters} clusters, {scope.objects:,} objects rendered" if scope else ""
    lines = [
        comment_marker(marker),
        f"### Fleet plan: {code_html(_short(plan.base))} → {code_html(_short(plan.head))}",
        "",
        f"**{plan_headline(plan, counts)}**{seen}",
    ]
    if losses := spoken_losses(counts):
        unmanaged = " What is released stays in its cluster and becomes **unmanaged**." if counts["release"] else ""
        lines.extend(["", "> [!CAUTION]", f"> **Contains {losses}.**{unmanaged}"])
    errors = [problem for problem in plan.problems if problem.severity is Severity.ERROR]
    if errors:
        lines.extend(["", "> [!WARNING]", f"> **{spoken_problems(errors)}**"])
    return [*lines, "", f"**{incomplete(plan)}**"] if not plan.is_complete else lines


def comment_marker(name: str) -> str:
    """The hidden first line by which a later run finds the comment to edit."""
    plain = re.sub(r"[^A-Za-z0-9._/]+", "-", name)[:100].strip("-")
    return f"<!-- fleet-plan {plain} -->" if plain else "<!-- fleet-plan -->"


def _short(revision: str) -> str:
    return short_revision(revision)[:40]


def _table(plan: Plan) -> list[str]:
    counts = counts_by_cluster(plan.changes)
    if not counts:
        return []
    columns = [name for name in SUMMARY_COLUMNS if any(row[name] for row in counts.values())]
    rows = [[code_span(name), *(str(row[column]) for column in columns)] for name, row in counts.items()]
    if len(counts) > 1:
        sums = totals(counts.values())
        rows.append(["**Total**", *(f"**{sums[column]}**" for column in columns)])
    lines = [["cluster", *columns], ["---", *("---:" for _ in columns)], *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines]


def _sections(plan: Plan, entries: tuple[Entry, ...], detail: Detail) -> tuple[_Section, ...]:
    ready = [entry for entry in entries if entry.held is None]
    held = [entry for entry in entries if entry.held is not None]
    lost = [entry for entry in ready if entry.is_destructive]
    rest = [entry for entry in ready if not entry.is_destructive]
    problems = sorted_problems(plan.problems)
    placements = sorted(plan.placements, key=lambda placement: placement.identity)
    found = (
        _Section(title=DESTRUCTION, count=len(lost), lines=_entries(lost, detail), is_folded=False),
        _Section(title=UNJUDGED, count=len(plan.unjudged), lines=_unjudged(plan, detail), is_folded=False),
        _Section(title="Changes", count=len(rest), lines=_entries(rest, detail)),
        _Section(title="Placements", count=len(placements), lines=_placements(placements, detail)),
        _Section(title="Held", count=len(held), lines=(*_entries(held, detail), *confirm_lines(plan.held_digest))),
        _Section(title="Problems", count=len(problems), lines=tuple(problem_lines(problems))),
    )
    return tuple(section for section in found if section.lines)


def _unjudged(plan: Plan, detail: Detail) -> tuple[str, ...]:
    ordered = sorted(plan.unjudged, key=lambda found: found.identity)
    return tuple(line for found in ordered for line in unjudged_lines(found, detail=detail))


def _entries(entries: Iterable[Entry], detail: Detail) -> tuple[str, ...]:
    return tuple(line for entry in entries for line in entry_lines(entry, detail=detail))


def _placements(placements: Iterable[PlacementChange], detail: Detail) -> tuple[str, ...]:
    has_reasons = detail.fields_max > 0
    return tuple(line for change in placements for line in placement_lines(change, has_reasons=has_reasons))


def _composed(head: Sequence[str], table: Sequence[str], sections: Iterable[_Section], cut: str) -> str:
    lines = [*head, "", *table] if table else [*head]
    for section in sections:
        fence = fence_for(section.lines)
        block = [f"{fence}diff", *section.lines, fence]
        if section.is_folded:
            summary = f"<details><summary>{section.title} ({section.count})</summary>"
            lines.extend(["", summary, "", *block, "", "</details>"])
        else:
            lines.extend(["", f"**{section.title}**", "", *block])
    if cut:
        lines.extend(["", f"_Shortened to fit: {cut}. `reconciler diff -o json` has everything._"])
    return joined(lines)


def _shortened(head: Sequence[str], table: Sequence[str], sections: Sequence[_Section], budget: int) -> str:
    """As many lines as fit, what destroys before everything else; when nothing fits, the counts alone."""
    longest = max((len(lines) for lines in (table, *(section.lines for section in sections))), default=0)
    for is_destruction_cut in (False, True):
        low, high, best = 0, longest, ""
        while low <= high:
            kept = (low + high) // 2
            text = _with_lines(head, table, sections, kept, is_destruction_cut)
            if _size(text) <= budget:
                best, low = text, kept + 1
            else:
                high = kept - 1
        if best:
            return best
    return _composed(head, [], [], "only the counts are left")


def _with_lines(
    head: Sequence[str], table: Sequence[str], sections: Sequence[_Section], kept: int, is_destruction_cut: bool
) -> str:
    lost, shorter = ["fields"], []
    rows = list(table)
    if len(table) > kept + 3:  # the header, its rule and the total stay
        lost.append(f"{len(table) - 3 - kept} rows of the table")
        rows = [*table[: kept + 2], table[-1]]
    for section in sections:
        over = len(section.lines) - kept
        if over <= 0 or (section.title == DESTRUCTION and not is_destruction_cut):
            shorter.append(section)
            continue
        lost.append(f"{over} of {len(section.lines)} lines of {section.title.lower()}")
        shorter.append(replace(section, lines=(*section.lines[:kept], f"… {over} more lines")))
    return _composed(head, rows, shorter, f"{', '.join(lost)} are left out")


def _size(text: str) -> int:
    return len(text.encode())
