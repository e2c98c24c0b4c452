"""The problems of the state document: each redacted and written out once, however many rounds show it."""

from __future__ import annotations

from collections.abc import Iterable

from reconciler.model.problem import Problem
from reconciler.model.tree import Json
from reconciler.report.json_parts import problem_part, worst_first
from reconciler.report.mask import Masker


class ProblemRows:
    """Remembers the rows of the problems that were shown last."""

    __slots__ = ("_problems", "_rows", "_shown")

    def __init__(self) -> None:
        """Start with nothing shown."""
        self._problems: tuple[Problem, ...] = ()
        self._shown: list[Json] = []
        self._rows: dict[int, tuple[Problem, Json]] = {}
        """By the id of a problem, which is kept beside its row."""

    def of(self, problems: tuple[Problem, ...], masker: Masker) -> list[Json]:
        """Return the rows, worst first. `masker`: of the output; rows that quote its values are redacted by it."""
        if problems is not self._problems:
            before, plain = self._rows, Masker()
            self._rows = {}
            for problem in problems:
                known = before.get(id(problem))
                self._rows[id(problem)] = known or (problem, problem_part(plain.problem(problem)))
            self._problems = problems
            self._shown = [self._rows[id(problem)][1] for problem in worst_first(problems)]
        # Thousands of hints have the same few messages.
        messages = {problem.message for problem in problems} if masker.knows_any else ()
        quoting = {message for message in messages if masker.knows(message)}
        return self._with_masked(worst_first(problems), quoting, masker) if quoting else self._shown

    def _with_masked(self, problems: Iterable[Problem], quoting: set[str], masker: Masker) -> list[Json]:
        return [
            problem_part(masker.problem(problem)) if problem.message in quoting else self._rows[id(problem)][1]
            for problem in problems
        ]
