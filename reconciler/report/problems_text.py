"""Problems for people: one line each, worst first, and a count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from reconciler.api.problem import Problem, Severity
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import Masker
from reconciler.report.safe import joined, visible
from reconciler.report.shown_values import PLAIN, Style


def problems_text(problems: Iterable[Problem], style: Style = PLAIN) -> str:
    """`error  policies/web.yaml:14  spec.placement: message [code]` for each problem and a count; empty without any."""
    found = sorted_problems(problems)
    return joined([*problem_lines(found, style), "", spoken_problems(found)]) if found else ""


def problem_lines(problems: Iterable[Problem], style: Style = PLAIN) -> list[str]:
    """A line for each problem, in the given order."""
    masker = Masker()
    return [_line(masker.problem(problem), style) for problem in problems]


def spoken_problems(problems: Iterable[Problem]) -> str:
    """`2 errors, 1 warning`; `no problems` when there are none."""
    counts = Counter(problem.severity for problem in problems)
    parts = [f"{counts[kind]} {kind}{'s' if counts[kind] != 1 else ''}" for kind in Severity if counts[kind]]
    return ", ".join(parts) or "no problems"


def _line(problem: Problem, style: Style) -> str:
    paint = {Severity.ERROR: style.red, Severity.WARNING: style.yellow, Severity.HINT: style.dim}[problem.severity]
    subject = ": ".join(visible(part) for part in (problem.cluster, problem.path, problem.message) if part)
    source = visible(str(problem.source)) if problem.source.path else ""
    parts = (paint(str(problem.severity).ljust(7)), source, f"{subject} {style.dim(f'[{visible(problem.code)}]')}")
    return "  ".join(part for part in parts if part)
