"""A plan for a person at a terminal, problems last; and lines about settings and guards for all outputs."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Final

from reconciler.api.plan import Direction, Plan, SettingChange
from reconciler.api.refs import short_revision
from reconciler.incremental import by_key
from reconciler.report.difference import cut, value_texts
from reconciler.report.plan.change_lines import (
    CLUSTERS_MAX,
    SUMMARY_COLUMNS,
    counts_by_cluster,
    placement_lines,
    spoken,
    totals,
    unjudged_lines,
)
from reconciler.report.plan.equal_changes import alike_lines, parts_of
from reconciler.report.plan.first_line import first_line, plain
from reconciler.report.plan.groups import PlanEntry
from reconciler.report.plan.stages import stage_lines
from reconciler.report.problems_text import problem_lines, spoken_problems
from reconciler.report.safe_text import joined, visible
from reconciler.report.terminal import DESTRUCTIVE, PLAIN, Style, aligned, cluster_list


def plan_text(plan: Plan, style: Style = PLAIN, *, is_all: bool = False) -> str:
    """Return the plan as text; `is_all`: with each of many problems of a kind."""
    parts = parts_of(plan)
    plan, losses = parts.plan, parts.losses
    settings = [line for change in plan.settings for line in setting_lines(change, style)]
    sections = (
        (SETTINGS, [*settings, *(review_lines(plan.settings_digest, style) if settings else ())]),
        ("", [style.yellow(line) if line.startswith("  ! ") else line for line in stage_lines(plan)]),
        (LOSSES if losses else "", [*_lines(losses, style), *confirm_lines(plan.held_digest, style)]),
        ("Changes", [*_lines(parts.ready, style), *parts.labels]),
        ("Placements", [line for placement in plan.placements for line in placement_lines(placement, style)]),
        (UNJUDGED, [line for one in plan.unjudged for line in unjudged_lines(one, style)]),
        ("Held", _lines(parts.held, style)),
        (f"Problems ({spoken_problems(plan.problems)})", problem_lines(plan.problems, style, is_all=is_all)),
    )
    lines = [*_summary(plan, style)]
    for title, section in sections:
        if section:
            lines += [*(["", style.bold(title)] if title else [""]), *section]
    return joined(lines)


def _lines(entries: Iterable[PlanEntry], style: Style) -> list[str]:
    return [line for one in entries for line in alike_lines(one, style)]


def _summary(plan: Plan, style: Style) -> list[str]:
    counts = counts_by_cluster(plan.changes)
    base, head = visible(short_revision(plan.base)), visible(short_revision(plan.head))
    revisions = f"{base or 'the clusters'} → {head}"
    lines = [style.bold(plain(first_line(plan))), f"{revisions}  {spoken(totals(counts.values()))}".rstrip()]
    if not plan.is_complete:
        lines.append(style.red(incomplete(plan)))
    if not counts:
        return lines
    rows = [["CLUSTER", *(name.upper() for name in SUMMARY_COLUMNS)]]
    is_short = len(counts) <= CLUSTERS_MAX
    alike = by_key(((*map(str, row.values()), name if is_short else ""), name) for name, row in counts.items())
    for values, names in alike.items():
        label = visible(names[0]) if len(names) == 1 else cut(f"each of {len(names)}: {cluster_list(names)}", 40)
        rows.append([label, *values[:-1]])
    if len(counts) > 1:
        rows.append(["Total", *map(str, totals(counts.values()).values())])
    table = aligned(rows, right=frozenset(range(1, len(SUMMARY_COLUMNS) + 1)), gap="  ")
    return [*lines, "", *(f"  {line}" for line in table)]


LOSSES = "Deletions, replacements and releases"
_UNREAD = "INCOMPLETE: the store or a cluster could not be read; more may change than this (see the problems below)"

_UNKNOWN = "INCOMPLETE: what is listed as not judged may change, too; observations of the clusters let it be judged"


def incomplete(plan: Plan) -> str:
    """Return the reason why an incomplete plan may lack changes."""
    return _UNKNOWN if plan.unjudged else _UNREAD


def confirm_lines(held_digest: str, style: Style = PLAIN) -> list[str]:
    """Return the instruction to confirm held deletions; empty if none is held."""
    return _to_let("what the guard holds", "spec.guards.confirm", held_digest, style)


UNJUDGED = "Not judged"


def has_destruction(plan: Plan) -> bool:
    """Return whether the plan deletes, replaces or releases anything now: `apply` then asks in red."""
    return any(change.held is None and change.action in DESTRUCTIVE for change in plan.changes)


SETTINGS: Final = "Settings that change"
_MARKS: Final = {
    Direction.LOOSENS: "! loosens ",
    Direction.CONFIRMS: "? confirms",
    Direction.TIGHTENS: "+ tightens",
    Direction.NEUTRAL: "~ changes ",
    Direction.PROMOTES: "> promotes",
}
_VALUE_CHARS_MAX: Final = 120
_SUBJECT_CHARS_MAX: Final = 300


def setting_lines(change: SettingChange, style: Style = PLAIN, *, value_chars_max: int = _VALUE_CHARS_MAX) -> list[str]:
    """Return the lines about a redacted change."""
    mark = _MARKS[change.direction]
    words = [_subject(text) for text in (change.document, str(change.source))]
    head = "  ".join([mark, *(["HELD"] if change.held else []), *words])
    lines = [style.red(head) if change.direction is Direction.LOOSENS else head]
    if change.path:
        values = value_texts(change.before, change.after, value_chars_max)
        lines.append(f"      {_subject(change.path)}  {' → '.join(values)}")
    return [*lines, f"      {visible(change.meaning)}"]


def _subject(text: str) -> str:
    """Return a name that hides no other setting by its length: in the middle of a long one stands its digest."""
    plain = visible(text)
    if len(plain) <= _SUBJECT_CHARS_MAX:
        return plain
    half = _SUBJECT_CHARS_MAX // 2
    return f"{plain[:half]}…{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:8]}…{plain[-half:]}"


def review_lines(digest: str, style: Style = PLAIN) -> list[str]:
    """Return the instruction to confirm loosened settings; empty if none is held."""
    return _to_let("the settings that are held", "spec.review.confirm", digest, style)


def _to_let(what: str, path: str, digest: str, style: Style) -> list[str]:
    value = style.bold(f"{path}: {visible(digest)}")
    return [f"To let {what} pass, set in the document of kind Fleet: {value}"] if digest else []


def loosened(settings: Sequence[SettingChange]) -> tuple[int, int]:
    """Return the number of settings that loosen, and of those that are held."""
    return sum(one.direction is Direction.LOOSENS for one in settings), sum(one.held for one in settings)
