"""Problems for people: one line each, worst first, and a count; and the meaning and remedy of every code."""

from __future__ import annotations

import pkgutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from reconciler.api.problem import Problem, Severity
from reconciler.incremental import by_key
from reconciler.report.json_parts import sorted_problems
from reconciler.report.mask import Masker
from reconciler.report.safe_text import joined, visible
from reconciler.report.terminal import PLAIN, Style

_ALIKE_MAX = 5
_PLACES_MAX = 3


def problems_text(problems: Iterable[Problem], style: Style = PLAIN, *, is_all: bool = False) -> str:
    """Return `error  web.yaml:14  spec.x: message [code]` lines and a count; unless `is_all`, one line a kind."""
    ordered = sorted_problems(problems)
    return joined([*problem_lines(ordered, style, is_all=is_all), "", spoken_problems(ordered)]) if ordered else ""


def problem_lines(problems: Iterable[Problem], style: Style = PLAIN, *, is_all: bool = True) -> list[str]:
    """A line for each problem, in the given order; unless `is_all`, many of a kind are one line."""
    return [_line(problem, style) for problem in (map(Masker().problem, problems) if is_all else by_kind(problems))]


def by_kind(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield redacted problems; for many of a kind the first, whose message counts them and names the next places."""
    listed, masker = list(problems), Masker()
    kinds = by_key(((problem.severity, problem.code), problem) for problem in listed)
    for problem in listed:
        alike = kinds[problem.severity, problem.code]
        if len(alike) <= _ALIKE_MAX:
            yield masker.problem(problem)
        elif problem is alike[0]:
            first = masker.problem(problem)
            places = list(dict.fromkeys(str(one.source) for one in alike[1:] if one.source.path))
            named = ", ".join(places[:_PLACES_MAX])
            where = f", as in {named}{' …' if len(places) > _PLACES_MAX else ''}" if named else ""
            yield replace(first, message=f"{first.message} ({len(alike):,} of this kind{where}; --all names each)")


def spoken_problems(problems: Iterable[Problem]) -> str:
    """`2 errors, 1 warning`; `no problems` when there are none."""
    counts = Counter(problem.severity for problem in problems)
    parts = [f"{counts[kind]:,} {kind}{'s' if counts[kind] != 1 else ''}" for kind in Severity if counts[kind]]
    return ", ".join(parts) or "no problems"


def _line(problem: Problem, style: Style) -> str:
    paint = {Severity.ERROR: style.red, Severity.WARNING: style.yellow, Severity.HINT: style.dim}[problem.severity]
    subject = ": ".join(visible(part) for part in (problem.cluster, problem.path, problem.message) if part)
    source = visible(str(problem.source)) if problem.source.path else ""
    parts = (paint(str(problem.severity).ljust(7)), source, f"{subject} {style.dim(f'[{visible(problem.code)}]')}")
    return "  ".join(part for part in parts if part)


class ProblemCode(NamedTuple):
    """The meaning of a problem, and the remedy."""

    meaning: str
    remedy: str


@cache
def problem_codes() -> Mapping[str, ProblemCode]:
    """Return the codes, sorted, with their explanations."""
    data = pkgutil.get_data("reconciler.report", "problem_codes.txt")
    assert data is not None, "the table is not installed"
    rows = (line.split("|", 2) for line in data.decode().splitlines())
    return {code: ProblemCode(meaning, remedy) for code, meaning, remedy in rows}
