"""All problems of the store and of the last round, with their remedies."""

from __future__ import annotations

from typing import Any, Final

from reconciler.report.json_parts import problem_part, sorted_problems
from reconciler.report.views.remedies import remedy_of
from reconciler.report.views.shapes import ProblemPart, ProblemsView
from reconciler.report.views.sight import Sight

_PROBLEMS_MAX: Final = 2000


def problems_view(sight: Sight) -> ProblemsView:
    """The problems, errors before warnings before hints; at most 2,000 of `total`."""
    found = sorted_problems(sight.picture.round.plan.problems)
    return ProblemsView(
        problems=tuple(_part(problem_part(sight.masker.problem(one))) for one in found[:_PROBLEMS_MAX]),
        total=len(found),
    )


def _part(part: Any) -> ProblemPart:
    return ProblemPart(**part, todo=remedy_of(part["code"]))
