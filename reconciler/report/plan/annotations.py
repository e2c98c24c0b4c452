"""A plan for GitHub Actions (worst first: it shows about ten) and as JUnit XML. Source: GitHub, "Workflow commands"."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from reconciler.api.plan import Direction, Plan
from reconciler.api.problem import NOWHERE, Problem, Severity, Source
from reconciler.report.json_parts import sorted_problems
from reconciler.report.plan.change_lines import WHOLE, Detail, unjudged_lines
from reconciler.report.plan.equal_changes import alike, alike_lines, parts_of, redacted
from reconciler.report.plan.first_line import HoldGroup, first_line, group_of, losses, plain
from reconciler.report.plan.groups import PlanEntry, counted_kind
from reconciler.report.plan.plan_text import (
    LOSSES,
    SETTINGS,
    UNJUDGED,
    confirm_lines,
    incomplete,
    loosened,
    review_lines,
    setting_lines,
)
from reconciler.report.problems_text import by_kind
from reconciler.report.safe_text import visible
from reconciler.report.terminal import cluster_list

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.HINT: "notice"}
_NAMES = Detail(fields_max=0)


def github_annotations(problems: Iterable[Problem]) -> str:
    """`::error file=policies/web.yaml,line=14,title=code::message` for each problem, worst first."""
    return "".join(_of_problem(problem) for problem in by_kind(sorted_problems(problems)))


def plan_annotations(plan: Plan) -> str:
    """Return the total, losses, errors, objects not evaluated, and other changes: one line for equal changes."""
    plan, lost, rest, labels = parts_of(plan)
    return "".join(
        (
            _sum(plan, lost),
            *(
                _line(
                    Severity.WARNING if one.direction is Direction.LOOSENS else Severity.HINT,
                    one.source,
                    f"setting {one.direction}",
                    setting_lines(one),
                )
                for one in plan.settings
            ),
            *(_of_change(one, Severity.WARNING) for one in lost),
            *map(_of_problem, by_kind(plan.problems)),
            *(_line(Severity.WARNING, one.source, "not judged", unjudged_lines(one)) for one in plan.unjudged),
            *(_line(Severity.HINT, NOWHERE, "labels of charts", [line]) for line in labels),
            *(_of_change(one, Severity.HINT) for one in rest),
        )
    )


def _sum(plan: Plan, lost: Iterable[PlanEntry]) -> str:
    counts = losses(plan)
    is_bad = not plan.is_complete or any(problem.severity is Severity.ERROR for problem in plan.problems)
    is_lost = any(number for hold in HoldGroup for number in counts[hold].values())
    is_lost = is_lost or loosened(plan.settings)[0] > 0
    severity = Severity.ERROR if is_bad else Severity.WARNING if is_lost else Severity.HINT
    lines = [plain(first_line(plan))]
    if not plan.is_complete:
        lines.append(incomplete(plan))
    lines.extend(line for one in lost for line in alike_lines(one, detail=_NAMES))
    return _line(
        severity, NOWHERE, "Fleet plan", [*lines, *confirm_lines(plan.held_digest), *review_lines(plan.settings_digest)]
    )


def _of_change(one: PlanEntry, severity: Severity) -> str:
    source = one.sources[0] if one.sources else NOWHERE
    return _line(severity, source, f"{one.action} {one.identity.kind}", alike_lines(one))


def _of_problem(problem: Problem) -> str:
    message = ": ".join(part for part in (problem.cluster, problem.path, problem.message) if part)
    return _line(problem.severity, problem.source, problem.code, [message])


def _line(severity: Severity, source: Source, title: str, lines: Iterable[str]) -> str:
    at = {"file": source.path, "line": str(source.line or ""), "title": title}
    escaped = {name: _data(value).replace(":", "%3A").replace(",", "%2C") for name, value in at.items() if value}
    properties = ",".join(f"{name}={value}" for name, value in escaped.items())
    return f"::{_COMMANDS[severity]}{f' {properties}' if properties else ''}::{'%0A'.join(map(_data, lines))}\n"


def _data(text: str) -> str:
    # visible() leaves no line end, so nothing can begin a line of its own.
    return visible(text).replace("%", "%25")


class _Case(NamedTuple):
    """`verdict`: `failure`, `error` or `skipped`; empty: it passes. `text`: lines that are visible."""

    name: str
    verdict: str = ""
    message: str = ""
    text: Sequence[str] = ()
    file: str = ""


def plans_junit(plans: Iterable[Plan]) -> str:
    """A document with the suites of all plans."""
    suites = [_suite(*suite) for plan in plans for suite in _suites(redacted(plan)) if suite[1]]
    return '<?xml version="1.0" encoding="UTF-8"?>\n<testsuites>\n' + "".join(suites) + "</testsuites>\n"


def _suites(plan: Plan) -> Iterator[tuple[str, list[_Case]]]:
    entries, confirm = alike(plan.changes), confirm_lines(plan.held_digest)
    line = plain(first_line(plan))
    yield "Fleet plan", [_Case(line) if plan.is_complete else _Case(line, "error", incomplete(plan))]
    review = review_lines(plan.settings_digest)
    yield (
        SETTINGS,
        [
            _Case(
                f"{one.direction} {one.document} {one.path}".strip(),
                "failure" if one.held else "",
                one.meaning,
                [*setting_lines(one), *(review if one.held else ())],
                one.source.path,
            )
            for one in plan.settings
        ],
    )
    yield LOSSES, [_junit_of_change(one, confirm) for one in entries if one.is_destructive]
    yield (
        "Problems",
        [
            _Case(
                f"{one.code} {one.source}".strip(),
                "failure" if one.severity is Severity.ERROR else "",
                one.message,
                [visible(part) for part in (one.cluster, one.path, one.message) if part],
                one.source.path,
            )
            for one in plan.problems
        ],
    )
    yield (
        UNJUDGED,
        [
            _Case(str(one.identity), "error", one.why, unjudged_lines(one, detail=WHOLE), one.source.path)
            for one in plan.unjudged
        ],
    )
    yield "Changes", [_junit_of_change(one, confirm) for one in entries if not one.is_destructive]


def _junit_of_change(one: PlanEntry, confirm: list[str]) -> _Case:
    hold = group_of(one.hold)
    subject = str(one.identity) if one.objects == 1 else counted_kind(one.identity.kind, one.objects)
    return _Case(
        f"{one.action} {subject} in {cluster_list(one.clusters)}",
        {HoldGroup.NONE: "", HoldGroup.GUARD: "failure", HoldGroup.WAITING: "skipped"}[hold],
        one.held or "",
        [*alike_lines(one, detail=WHOLE), *(confirm if hold is HoldGroup.GUARD else ())],
        one.sources[0].path if one.sources else "",
    )


def _suite(name: str, cases: list[_Case]) -> str:
    of = {verdict: sum(case.verdict == verdict for case in cases) for verdict in ("failure", "error", "skipped")}
    counts = f'tests="{len(cases)}" failures="{of["failure"]}" errors="{of["error"]}" skipped="{of["skipped"]}"'
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
