"""A plan as one HTML page.

HTML by construction: a text becomes markup only by being escaped.

Style of the page of a plan: light and dark, on a desk, on a phone and on paper, without external resources.

A plan as one page: no network, no script, nothing cut, nothing of the store that is markup.

The policy of the page allows its own stylesheet, by digest, and nothing else: no script, image, form, frame or request.
"""

from __future__ import annotations

import base64
import hashlib
import html
from collections.abc import Iterable, Sequence

from reconciler.api.plan import Action, Direction, Plan, SettingChange
from reconciler.api.problem import Severity
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import Masker
from reconciler.report.plan.alike import EqualChanges, alike, alike_lines, by_folder
from reconciler.report.plan.change_lines import (
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
from reconciler.report.plan.first_line import HoldGroup, first_line, losses, plain
from reconciler.report.plan.groups import without_chart_labels
from reconciler.report.plan.plan_text import LOSSES, UNJUDGED, confirm_lines, incomplete
from reconciler.report.plan.setting_lines import SETTINGS, review_lines, setting_lines
from reconciler.report.plan.stages import stage_lines
from reconciler.report.problems_text import problem_lines
from reconciler.report.safe import visible


class Markup(str):
    """HTML that is safe in a page. Only this module makes it of texts."""

    __slots__ = ()


def element(name: str, *children: Markup | str, **attributes: str) -> Markup:
    """An element; texts among its children and attributes are escaped. `class_` is the attribute `class`."""
    given = "".join(f' {key.rstrip("_")}="{_escaped(value)}"' for key, value in attributes.items())
    return Markup(f"<{name}{given}>{together(children)}</{name}>")


def together(children: Iterable[Markup | str]) -> Markup:
    """Pieces one after the other; texts are escaped."""
    return Markup("".join(child if isinstance(child, Markup) else _escaped(child) for child in children))


def _escaped(text: str) -> str:
    return html.escape(visible(text), quote=True)


STYLESHEET = """
:root { color-scheme: light dark; --ink: #1f2328; --dim: #59636e; --ground: #fff; --panel: #f6f8fa; --rule: #d1d9e0;
  --red: #b3261e; --red-ground: #fff1f0; --green: #116329; --green-ground: #eaf7ee; --yellow: #7d4e00;
  --yellow-ground: #fff8e5; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6edf3; --dim: #9198a1; --ground: #0d1117; --panel: #151b23;
  --rule: #3d444d; --red: #ff8f87; --red-ground: #2d1513; --green: #7ee2a0; --green-ground: #0f2417;
  --yellow: #eac055; --yellow-ground: #2a2110; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 76rem; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.35rem; line-height: 1.35; margin: 0 0 .4rem; text-wrap: pretty; }
h2 { font-size: 1.05rem; margin: 2rem 0 .6rem; }
code, pre, td.field { font: 13px/1.45 ui-monospace, SFMono-Regular, Menlo, Consolas, monospace;
  overflow-wrap: anywhere; }
h1 code { font-size: .92em; background: var(--panel); border-radius: 4px; padding: .05em .3em; }
.dim { color: var(--dim); }
.box { border: 1px solid var(--rule); border-left: 4px solid var(--rule); border-radius: 6px; padding: .6rem .9rem;
  margin: .8rem 0; }
.box p { margin: .15rem 0; }
.entry { border: 1px solid var(--rule); border-radius: 6px; margin: .5rem 0; overflow: hidden; }
.entry > pre { margin: 0; padding: .55rem .8rem; white-space: pre-wrap; overflow-wrap: anywhere; }
.loss, .entry.loss { border-color: var(--red); border-left-width: 4px; background: var(--red-ground); }
.fault { border-color: var(--yellow); background: var(--yellow-ground); }
.minus { color: var(--red); background: var(--red-ground); }
.plus { color: var(--green); background: var(--green-ground); }
.head { font-weight: 600; }
summary { cursor: pointer; font-weight: 600; margin: 1.6rem 0 .5rem; }
summary:focus-visible { outline: 2px solid currentColor; outline-offset: 3px; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
th, td { border: 1px solid var(--rule); padding: .25rem .6rem; text-align: right; }
th:first-child, td:first-child { text-align: left; }
th { background: var(--panel); }
@media print { details { display: block; } body { max-width: none; } }
"""
"""Nothing in it comes from a store."""


_OPEN_LINES_MAX = 200
_VALUE_CHARS_MAX = 10_000
_DIGEST = base64.b64encode(hashlib.sha256(STYLESHEET.encode()).digest()).decode()
_POLICY = f"default-src 'none'; style-src 'sha256-{_DIGEST}'; base-uri 'none'; form-action 'none'"


def plans_html(plans: Iterable[Plan]) -> str:
    """A page with all of each plan; of several, one below the other."""
    masked = [Masker().plan(plan) for plan in plans]
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
    changes, labels = without_chart_labels(plan.changes)
    found = alike(changes)
    others = [one for one in found if not one.entry.is_destructive]
    problems = sorted_problems(plan.problems)
    faults = [problem for problem in problems if problem.severity is Severity.ERROR]
    rest = [problem for problem in problems if problem.severity is not Severity.ERROR]
    yield from _head(plan)
    yield from _section(SETTINGS, [_setting(one) for one in plan.settings])
    yield from _section("Stages", [_block(lines)] if (lines := stage_lines(plan)) else [])
    yield from _section(LOSSES, [_entry(one) for one in found if one.entry.is_destructive])
    yield from _section("Errors", [_block([line]) for line in problem_lines(faults)])
    unjudged = sorted(plan.unjudged, key=lambda one: one.identity)
    yield from _section(UNJUDGED, [_block(unjudged_lines(one, detail=WHOLE)) for one in unjudged])
    yield from _section("Labels of charts", [_block([line]) for line in labels])
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
    base = element("code", short_revision(plan.base)) if plan.base else "the clusters"
    head = element("code", short_revision(plan.head))
    yield element("p", "Fleet plan ", base, " → ", head, f" · {counts}" if counts else "", class_="dim")
    lost = losses(plan)
    words_of = {HoldGroup.NONE: "Contains ", HoldGroup.GUARD: "The guard holds ", HoldGroup.WAITING: "Held for now: "}
    box = [f"{words_of[hold]}{spoken_losses(number)}." for hold, number in lost.items() if any(number.values())]
    if any(number[Action.RELEASE] for number in lost.values()):
        box.append("What is released stays in its cluster and becomes unmanaged.")
    box.extend((*confirm_lines(plan.held_digest), *review_lines(plan.settings_digest)))
    if box:
        yield element("div", *(element("p", line) for line in box), class_="box loss", role="alert")
    if not plan.is_complete:
        yield element("div", element("p", incomplete(plan)), class_="box fault", role="alert")


def _changes(title: str, found: Sequence[EqualChanges], folder: str = "") -> Iterable[Markup]:
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


def _setting(one: SettingChange) -> Markup:
    kind = "entry loss" if one.direction is Direction.LOOSENS else "entry"
    return _block(setting_lines(one, value_chars_max=_VALUE_CHARS_MAX), kind)


def _entry(one: EqualChanges) -> Markup:
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
