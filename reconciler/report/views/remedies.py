"""Remedies of problems by code, from the reference of problem codes."""

from __future__ import annotations

from reconciler.report.further_codes import FURTHER_CODES
from reconciler.stages.lint import PROBLEM_CODES


def remedy_of(code: str) -> str | None:
    """Return the remedy of a problem code; None: there is none."""
    found = PROBLEM_CODES.get(code) or FURTHER_CODES.get(code)
    return found.remedy if found is not None else None
