"""Hints about what is legal in a store and surely not meant."""

from reconciler.lint.lint_codes import PROBLEM_CODES
from reconciler.lint.lint_store import lint
from reconciler.lint.review_check import NOT_SEEN, is_judge, review_faults

__all__ = [
    "NOT_SEEN",
    "PROBLEM_CODES",
    "is_judge",
    "lint",
    "review_faults",
]
