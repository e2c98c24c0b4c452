"""The documentation of a problem code."""

from __future__ import annotations

from typing import NamedTuple


class ProblemCode(NamedTuple):
    """A heading, the meaning of the problem, and the remedy."""

    title: str
    meaning: str
    remedy: str
