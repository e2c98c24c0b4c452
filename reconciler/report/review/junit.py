"""A plan as JUnit XML, which forges show as a list of tests beside the merge.

Failures: errors, changes held by a guard, an incomplete plan. Changes held for a time are skipped; others pass, with
the change as output. Losses are the first suite. Source: the JUnit schema of Jenkins' xUnit plugin; GitLab and others
read a part of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from xml.sax.saxutils import escape, quoteattr

from msgspec import Struct

from reconciler.model.plan import Plan, Unjudged
from reconciler.model.problem import Problem, Severity
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import mask_plan
from reconciler.report.plan.alike import Alike, alike, alike_lines
from reconciler.report.plan.first_line import Hold, first_line, hold_by_reason, plain
from reconciler.report.plan.kinds import counted_kind
from reconciler.report.plan.lines import WHOLE, unjudged_lines
from reconciler.report.plan.text import LOSSES, UNJUDGED, confirm_lines, incomplete
from reconciler.report.text.cluster_list import cluster_list
from reconciler.report.text.safe import visible


class _Case(Struct, frozen=True, kw_only=True):
    """`verdict`: `failure`, `error` or `skipped`; empty: it passes. `text`: lines that are visible."""

    name: str
    verdict: str = ""
    message: str = ""
    text: tuple[str, ...] = ()
    file: str = ""


def plans_junit(plans: Iterable[Plan]) -> str:
    """A document with the suites of all plans."""
    suites = [suite for plan in plans for suite in _suites(mask_plan(plan))]
    return '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n' + "".join(suites) + "</testsuites>\n"


def _suites(plan: Plan) -> Iterable[str]:
    found = alike(plan.changes)
    confirm = tuple(confirm_lines(plan.held_digest))
    lost = [_of_change(one, confirm) for one in found if one.entry.is_destructive]
    rest = [_of_change(one, confirm) for one in found if not one.entry.is_destructive]
    whole = _Case(name=plain(first_line(plan)))
    if not plan.is_complete:
        whole = _Case(name=whole.name, verdict="error", message=incomplete(plan))
    unjudged = [_of_unjudged(one) for one in sorted(plan.unjudged, key=lambda one: one.identity)]
    problems = [_of_problem(problem) for problem in sorted_problems(plan.problems)]
    yield _suite("Fleet plan", [whole])
    yield _suite(LOSSES, lost)
    yield _suite("Problems", problems)
    yield _suite(UNJUDGED, unjudged)
    yield _suite("Changes", rest)


def _of_change(one: Alike, confirm: tuple[str, ...]) -> _Case:
    entry = one.entry
    subject = str(entry.identity) if one.objects == 1 else counted_kind(entry.identity.kind, one.objects)
    hold = hold_by_reason(entry.held)
    verdict = {Hold.NONE: "", Hold.GUARD: "failure", Hold.WAITING: "skipped"}[hold]
    text = tuple(alike_lines(one, detail=WHOLE))
    return _Case(
        name=f"{entry.action} {subject} in {cluster_list(entry.clusters)}",
        verdict=verdict,
        message=entry.held or "",
        text=(*text, *confirm) if hold is Hold.GUARD else text,
        file=one.sources[0].path if one.sources else "",
    )


def _of_unjudged(found: Unjudged) -> _Case:
    text = tuple(unjudged_lines(found, detail=WHOLE))
    return _Case(name=str(found.identity), verdict="error", message=found.why, text=text, file=found.source.path)


def _of_problem(problem: Problem) -> _Case:
    return _Case(
        name=f"{problem.code} {problem.source}".strip(),
        verdict="failure" if problem.severity is Severity.ERROR else "",
        message=problem.message,
        text=tuple(visible(part) for part in (problem.cluster, problem.path, problem.message) if part),
        file=problem.source.path,
    )


def _suite(name: str, cases: list[_Case]) -> str:
    """Empty without cases."""
    if not cases:
        return ""
    of = {verdict: sum(case.verdict == verdict for case in cases) for verdict in ("failure", "error", "skipped")}
    counts = (
        f'tests="{len(cases)}" failures="{of["failure"]}" errors="{of["error"]}" skipped="{of["skipped"]}"'
    )  # fmt: skip
    inside = "".join(_case(name, case) for case in cases)
    return f"  <testsuite name={_attribute(name)} {counts}>\n{inside}  </testsuite>\n"


def _case(suite: str, case: _Case) -> str:
    file = f" file={_attribute(case.file)}" if case.file else ""
    opening = f"    <testcase classname={_attribute(suite)} name={_attribute(case.name)}{file}"
    text = escape("\n".join(case.text))
    match case.verdict:
        case "":
            return f"{opening}><system-out>{text}</system-out></testcase>\n" if text else f"{opening}/>\n"
        case "skipped":  # Its text is read nowhere.
            skipped = f"<skipped message={_attribute(case.message)}/>"
            return f"{opening}>{skipped}<system-out>{text}</system-out></testcase>\n"
        case verdict:
            return f"{opening}><{verdict} message={_attribute(case.message)}>{text}</{verdict}></testcase>\n"


def _attribute(text: str) -> str:
    # visible() leaves no character that XML cannot hold.
    return quoteattr(visible(text))
