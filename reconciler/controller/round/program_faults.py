"""A change that fails for a fault of the program: its report, and the duration of that.

Source: design#boundaries; design#promise-7.

Altered writes in words: each field with its live and its sent value.

Source: design#altered-writes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Final

from reconciler.api.content import Json, canonical_bytes
from reconciler.api.plan import MISSING, Change, FieldChange
from reconciler.api.problem import Problem
from reconciler.containment import INTERNAL_ERROR, fault_fields, internal_error

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


_FIELDS_MAX: Final = 5
_VALUE_MAX: Final = 60


def altered_text(fields: Sequence[FieldChange]) -> str:
    """The fields that a cluster made something else of, in words. `fields`: as they may be shown."""
    told = [
        f"{field.path} was dropped"
        if field.before is MISSING
        else f"{field.path} is {_value(field.before)}, not {_value(field.after)}"
        for field in fields
    ]
    more = f", and {len(told) - _FIELDS_MAX} more" if len(told) > _FIELDS_MAX else ""
    dropped = " or a schema without the field" if any(field.before is MISSING for field in fields) else ""
    return (
        f"the cluster changed what was written (an admission webhook{dropped}?): {', '.join(told[:_FIELDS_MAX])}{more}"
    )


def _value(value: Json) -> str:
    text = canonical_bytes(value).decode(errors="replace") if value is not MISSING else "there"
    return text if len(text) <= _VALUE_MAX else f"{text[: _VALUE_MAX - 1]}…"
