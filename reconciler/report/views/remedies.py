"""What to do about a problem, by its code: the words of the reference of problem codes."""

from __future__ import annotations

from reconciler.report.further_codes import FURTHER_CODES
from reconciler.stages.lint import PROBLEM_CODES


def remedy_of(code: str) -> str | None:
    """What to do; None: nobody wrote it down."""
    found = PROBLEM_CODES.get(code) or FURTHER_CODES.get(code)
    return found.remedy if found is not None else None
