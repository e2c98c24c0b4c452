"""What is documented of a problem code."""

from __future__ import annotations

from typing import NamedTuple


class ProblemCode(NamedTuple):
    """A heading, what the problem means, and what to do about it."""

    title: str
    meaning: str
    remedy: str
