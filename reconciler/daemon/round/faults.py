"""A change that fails for a fault of the program: its report, and the duration of that.

Source: design#boundaries; design#promise-7.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from reconciler.containment import INTERNAL_ERROR, fault_fields, internal_error
from reconciler.model.plan import Change
from reconciler.model.problem import Problem

log = logging.getLogger("reconciler")


def fault_of(change: Change, fault: Exception) -> Problem:
    """The problem, at the template and in the cluster of the change."""
    consequence = "it is looked at, and tried again"
    return internal_error(fault, change.source, str(change.identity), consequence, change.cluster)


def log_faults(before: Iterable[Problem], after: Iterable[Problem]) -> None:
    """Log each fault that was not known before, with the place in the code: what a report of it needs."""
    if before is after:
        return
    known = {problem for problem in before if problem.code == INTERNAL_ERROR}
    for problem in after:
        if problem.code == INTERNAL_ERROR and problem not in known:
            told = {"error": f"{problem.message}\n{problem.trace}"}
            extra = fault_fields(problem.cluster, problem.source) | told
            log.error("a fault of the program; what it concerns stays as it is", extra=extra)
