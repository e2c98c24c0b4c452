"""The documentation of a problem code."""

from __future__ import annotations

from typing import NamedTuple


class ProblemCode(NamedTuple):
    """The meaning of a problem, and the remedy."""

    meaning: str
    remedy: str
