"""Every problem code that users may meet, with its meaning and remedy: the lines of `problem_codes.txt`."""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple


class ProblemCode(NamedTuple):
    """The meaning of a problem, and the remedy."""

    meaning: str
    remedy: str


@cache
def problem_codes() -> Mapping[str, ProblemCode]:
    """Return the codes, sorted, with their explanations."""
    data = pkgutil.get_data("reconciler.report", "problem_codes.txt")
    assert data is not None, "the table is not installed"
    rows = (line.split("|", 2) for line in data.decode().splitlines())
    return {code: ProblemCode(meaning, remedy) for code, meaning, remedy in rows}
