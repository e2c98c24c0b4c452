"""Annotations at file and line for GitHub Actions.

Source: GitHub, "Workflow commands": data and properties are percent-encoded, or they could carry commands of their own.
GitHub shows about ten of a kind per step, so the worst come first.
"""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.problem import Problem, Severity
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import Masker
from reconciler.report.text.safe import visible

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.HINT: "notice"}


def github_annotations(problems: Iterable[Problem]) -> str:
    """`::error file=policies/web.yaml,line=14,title=code::message` for each problem, worst first."""
    masker = Masker()
    return "".join(f"{_annotation(masker.problem(problem))}\n" for problem in sorted_problems(problems))


def _annotation(problem: Problem) -> str:
    at = {"file": problem.source.path, "line": str(problem.source.line or ""), "title": problem.code}
    properties = ",".join(f"{name}={_property(value)}" for name, value in at.items() if value)
    message = ": ".join(part for part in (problem.cluster, problem.path, problem.message) if part)
    return f"::{_COMMANDS[problem.severity]} {properties}::{_data(message)}"


def _data(text: str) -> str:
    # visible() leaves no line end, so nothing can begin a line of its own.
    return visible(text).replace("%", "%25")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
