"""Annotations at file and line for GitHub Actions.

Source: GitHub, "Workflow commands": data and properties are percent-encoded, or they could carry commands of their own.
GitHub shows about ten of a kind per step, so the worst come first; of a plan the first one is the sum, which names all
that is lost.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.plan import Plan
from reconciler.model.problem import NOWHERE, Problem, Severity, Source
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import Masker, mask_plan
from reconciler.report.plan.alike import Alike, alike, alike_lines
from reconciler.report.plan.first_line import Hold, first_line, losses, plain
from reconciler.report.plan.lines import Detail, unjudged_lines
from reconciler.report.plan.text import confirm_lines, incomplete
from reconciler.report.text.safe import visible

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.HINT: "notice"}
_NAMES = Detail(fields_max=0)


def github_annotations(problems: Iterable[Problem]) -> str:
    """`::error file=policies/web.yaml,line=14,title=code::message` for each problem, worst first."""
    masker = Masker()
    return "".join(_of_problem(masker.problem(problem)) for problem in sorted_problems(problems))


def plan_annotations(plan: Plan) -> str:
    """Return the total, losses, errors, objects not evaluated, and other changes: one line for equal changes."""
    plan = mask_plan(plan)
    found = alike(plan.changes)
    lost = [one for one in found if one.entry.is_destructive]
    rest = [one for one in found if not one.entry.is_destructive]
    unjudged = sorted(plan.unjudged, key=lambda one: one.identity)
    return "".join(
        (
            _sum(plan, lost),
            *(_of_change(one, Severity.WARNING) for one in lost),
            *map(_of_problem, sorted_problems(plan.problems)),
            *(_line(Severity.WARNING, one.source, "not judged", unjudged_lines(one)) for one in unjudged),
            *(_of_change(one, Severity.HINT) for one in rest),
        )
    )


def _sum(plan: Plan, lost: Iterable[Alike]) -> str:
    counts = losses(plan)
    is_bad = not plan.is_complete or any(problem.severity is Severity.ERROR for problem in plan.problems)
    is_lost = any(number for hold in Hold for number in counts[hold].values())
    severity = Severity.ERROR if is_bad else Severity.WARNING if is_lost else Severity.HINT
    lines = [plain(first_line(plan))]
    if not plan.is_complete:
        lines.append(incomplete(plan))
    lines.extend(line for one in lost for line in alike_lines(one, detail=_NAMES))
    return _line(severity, NOWHERE, "Fleet plan", [*lines, *confirm_lines(plan.held_digest)])


def _of_change(one: Alike, severity: Severity) -> str:
    source = one.sources[0] if one.sources else NOWHERE
    return _line(severity, source, f"{one.entry.action} {one.entry.identity.kind}", alike_lines(one))


def _of_problem(problem: Problem) -> str:
    message = ": ".join(part for part in (problem.cluster, problem.path, problem.message) if part)
    return _line(problem.severity, problem.source, problem.code, [message])


def _line(severity: Severity, source: Source, title: str, lines: Iterable[str]) -> str:
    at = {"file": source.path, "line": str(source.line or ""), "title": title}
    properties = ",".join(f"{name}={_property(value)}" for name, value in at.items() if value)
    return f"::{_COMMANDS[severity]}{f' {properties}' if properties else ''}::{'%0A'.join(map(_data, lines))}\n"


def _data(text: str) -> str:
    # visible() leaves no line end, so nothing can begin a line of its own.
    return visible(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
