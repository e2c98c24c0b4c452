"""A plan as a comment on a pull request.

The first line summarises the plan; losses stand above any fold, held or not. All text from the store or a cluster
stands in code, where it is neither markup nor a mention nor a link. The size is a hard limit (GitHub takes 65,536
characters): the least important part is omitted first, and omissions are named. The budget counts UTF-8 bytes, the
stricter of the two readings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from reconciler.api.plan import Action, Plan
from reconciler.api.problem import Severity
from reconciler.api.refs import short_revision
from reconciler.incremental import by_key
from reconciler.report.plan.change_lines import counts_by_cluster, spoken, totals
from reconciler.report.plan.equal_changes import parts_of
from reconciler.report.plan.first_line import Code, first_line, loss_words
from reconciler.report.plan.groups import counted
from reconciler.report.plan.plan_text import incomplete, loosened
from reconciler.report.plan.sections import ShownSection, fitted, sections_of, size
from reconciler.report.safe_text import code_html, code_text, fence_for, joined

BUDGET = 65_536
"""GitHub's limit for one comment; Bitbucket's is 32,768, Azure's 150,000."""

BUDGET_MIN = 2048
"""Enough for the counts of the whole fleet."""

_FIRST_LINE_MAX = 700
"""Bytes of the first line, above which it counts and does not describe."""


def plan_markdown(plan: Plan, *, budget: int = BUDGET, marker: str = "") -> str:
    """Return Markdown of at most `budget` UTF-8 bytes. `marker`: names the comment that a later run edits."""
    assert budget >= BUDGET_MIN, f"a comment needs {BUDGET_MIN} bytes, {budget} were given"
    parts = parts_of(plan)
    head = _head(parts.plan, marker)

    def composed(fitting: Sequence[ShownSection]) -> str:
        lines = [*head]
        for one in fitting:
            lines.extend(_block(one))
        if notes := _notes(fitting):
            lines.extend(["", _shortened("; ".join(notes))])
        return joined(lines)

    bare = joined([*head, "", _shortened("everything but the counts")])
    return fitted(sections_of(parts), composed, budget) or bare


def _head(plan: Plan, marker: str) -> list[str]:
    counts = spoken(totals(counts_by_cluster(plan.changes).values()))
    base, head = (code_text(short_revision(revision)[:40]) for revision in (plan.base, plan.head))
    title, revisions = _spans(first_line(plan)), f"Fleet plan {base if plan.base else 'the clusters'} → {head}"
    lines = [
        comment_marker(marker),
        f"### {title if size(title) <= _FIRST_LINE_MAX else _spans(first_line(plan, groups_max=0))}",
        "",
        " · ".join(part for part in (revisions, counts) if part),
        *_loss_box(plan),
    ]
    errors = sum(problem.severity is Severity.ERROR for problem in plan.problems)
    if errors:
        lines.extend(["", "> [!WARNING]", f"> **{counted(errors, 'error')}**"])
    return [*lines, "", f"**{incomplete(plan)}**"] if not plan.is_complete else lines


def _spans(words: Iterable[str]) -> str:
    return "".join(code_text(word) if isinstance(word, Code) else word for word in words)


def _loss_box(plan: Plan) -> list[str]:
    """A red box wherever anything is deleted, replaced or released, held or not."""
    box = [f"> **{words}**" for words in loss_words(plan)]
    if any(change.action is Action.RELEASE for change in plan.changes):
        box.append("> What is released stays in its cluster and becomes **unmanaged**.")
    if (held := loosened(plan.settings)[1]) and plan.settings_digest:
        confirm = code_text(f"spec.review.confirm: {plan.settings_digest}")
        box.append(
            f"> **{counted(held, 'loosened setting')} held.** To let it pass, set {confirm} in the `Fleet` document."
        )
    if plan.held_digest:
        confirm = code_text(f"spec.guards.confirm: {plan.held_digest[:40]}")
        box.append(f"> To let what the guard holds pass, set {confirm} in the document of kind Fleet.")
    return ["", "> [!CAUTION]", *box] if box else []


def comment_marker(name: str) -> str:
    """The hidden first line by which a later run finds the comment to edit."""
    plain = re.sub(r"[^A-Za-z0-9._/]+", "-", name)[:100].strip("-")
    return f"<!-- fleet-plan {plain} -->" if plain else "<!-- fleet-plan -->"


def _notes(fitting: Sequence[ShownSection]) -> list[str]:
    notes = []
    for title, parts in by_key((one.section.title, one) for one in fitting).items():
        lost = list(dict.fromkeys(name for one in parts for name in one.lost))
        if gone := sum(one.left_out for one in parts):
            whole = gone + sum(len(one.items) for one in parts)
            lost.append(f"{gone:,} of {whole:,} {parts[0].section.noun}")
        if lost:
            notes.append(f"{', '.join(lost)} ({title})")
    return notes


def _shortened(left_out: str) -> str:
    return f"_Left out to fit: {left_out}. `reconciler diff -o html` has everything._"


def _block(part: ShownSection) -> list[str]:
    if not part.lines:
        return []
    fence = fence_for(part.lines)
    block = [*part.lines] if part.section.is_table else [f"{fence}diff", *part.lines, fence]
    where = f" in {code_html(part.section.folder[:100])}" if part.section.folder else ""
    title = f"{part.section.title}{where} ({part.section.count:,})"
    if not part.section.is_folded:
        return ["", f"**{title}**", "", *block]
    opened = "<details open>" if part.section.is_open else "<details>"
    return ["", f"{opened}<summary>{title}</summary>", "", *block, "", "</details>"]
