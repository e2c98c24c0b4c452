"""What is legal in a store and surely not meant."""

from reconciler.stages.lint.lint import lint

__all__ = [
    "lint",
]
