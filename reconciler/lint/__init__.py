"""Hints about what is legal in a store and surely not meant."""

from reconciler.lint.lint_codes import PROBLEM_CODES
from reconciler.lint.lint_store import lint

__all__ = [
    "PROBLEM_CODES",
    "lint",
]
