"""Legal but surely unintended parts of a store."""

from reconciler.stages.lint.all_codes import PROBLEM_CODES
from reconciler.stages.lint.lint import lint

__all__ = [
    "PROBLEM_CODES",
    "lint",
]
