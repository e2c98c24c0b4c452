from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.problem import Problem, Severity, Source, with_problems
from reconciler.report import Masker, problems_part
from reconciler.report.status.status_document import ProblemRows

HINTS = tuple(
    Problem(source=Source(f"{number:04}.yaml", 3), code="c", message=f"m{number % 3}", severity=Severity.HINT)
    for number in range(300)
)
ERROR = Problem(source=Source("0100.yaml", 4), code="e", message="the value is hunter2-of-the-mine")


def test_rows_are_what_all_problems_make() -> None:
    rows = ProblemRows()
    assert rows.of(HINTS, Masker()) == problems_part(HINTS)
    more = with_problems(HINTS, [ERROR])
    assert rows.of(more, Masker()) == problems_part(more)
    assert rows.of(HINTS, Masker()) == problems_part(HINTS)


def test_a_row_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    rows, made = ProblemRows(), list[Problem]()
    problem_of = Masker.problem

    def counted(masker: Masker, problem: Problem) -> Problem:
        made.append(problem)
        return problem_of(masker, problem)

    rows.of(HINTS, Masker())
    monkeypatch.setattr(Masker, "problem", counted)
    again = rows.of(HINTS, Masker())
    assert rows.of(HINTS, Masker()) is again
    rows.of(with_problems(HINTS, [ERROR]), Masker())
    assert made == [ERROR]


def test_the_value_of_a_secret_that_is_sent_is_not_shown() -> None:
    """Also where the row was made before the value was known."""
    rows, problems = ProblemRows(), with_problems(HINTS, [ERROR])
    rows.of(problems, Masker())
    masker = Masker()
    masker.learn({"stringData": {"password": "hunter2-of-the-mine"}})
    shown: Any = rows.of(problems, masker)
    assert "hunter2" not in str(shown)
    assert len(shown) == len(problems)
    assert shown[0]["code"] == "e"
