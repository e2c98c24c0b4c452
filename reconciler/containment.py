"""Boundaries: a fault of ours in one of many is that one's failure, and the others go on.

Source: design#boundaries. The list of boundaries is in docs/architecture.md.
"""

from __future__ import annotations

import traceback
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, NamedTuple, ParamSpec, TypeVar

from reconciler.api.problem import Problem, Source
from reconciler.errors import FleetHeld, JournalError

INTERNAL_ERROR: Final = "internal-error"
"""The code of problems that are faults of this program, or of an interpreter that was installed with it."""

UNCONTAINED: Final = (JournalError, FleetHeld)
"""Exceptions that pass every boundary: nothing may be done unrecorded, nor beside another journal."""

_FRAMES_MAX: Final = 30

Parameters = ParamSpec("Parameters")
Value = TypeVar("Value")


class TryResult(NamedTuple, Generic[Value]):
    """The result of the work, or the exception that ended it."""

    value: Value | None
    fault: Exception | None = None


class SubjectFailed(Exception):
    """Work on one of many failed; `subject` names it, for an outer boundary that can do without it."""

    def __init__(self, subject: Hashable, fault: Exception) -> None:
        super().__init__(f"{subject}: {type(fault).__name__}")
        self.subject = subject
        self.fault = fault


def try_call(work: Callable[Parameters, Value], *args: Parameters.args, **more: Parameters.kwargs) -> TryResult[Value]:
    """Run the work; return its result or its exception, but raise `UNCONTAINED`."""
    try:
        # As `TryResult(...)`, in half the time: of a large fleet, every template is asked several times.
        return tuple.__new__(TryResult, (work(*args, **more), None))
    except UNCONTAINED:
        raise
    except Exception as error:
        return TryResult(None, error)


async def try_await(work: Awaitable[Value]) -> TryResult[Value]:
    """Do the same for an awaitable. Cancellation passes through."""
    try:
        return TryResult(await work)
    except UNCONTAINED:
        raise
    except Exception as error:
        return TryResult(None, error)


def with_subject(
    subject: Hashable, work: Callable[Parameters, Value], *args: Parameters.args, **more: Parameters.kwargs
) -> Value:
    """Run the work and return its result. Raises SubjectFailed: it raised; this says what it was about."""
    try:
        return work(*args, **more)
    except SubjectFailed:
        raise
    except Exception as error:
        raise SubjectFailed(subject, error) from error


def internal_error(fault: Exception, source: Source, subject: str, consequence: str, cluster: str = "") -> Problem:
    """Return the problem of a fault: its subject, its place in the code, and its consequence.

    The text of the exception is left out, as it may quote a value of the store.
    """
    while isinstance(fault, SubjectFailed):
        fault = fault.fault
    frames = [
        f"{_module(frame.filename)}:{frame.lineno} {frame.name}" for frame in traceback.extract_tb(fault.__traceback__)
    ]
    at = f" at {frames[-1]}" if frames else ""
    parts = frames if len(frames) <= _FRAMES_MAX else [*frames[: _FRAMES_MAX // 2], "…", *frames[-_FRAMES_MAX // 2 :]]
    return Problem(
        source=source,
        code=INTERNAL_ERROR,
        message=f"{subject}: a fault of the program ({type(fault).__name__}{at}); {consequence}; please report it",
        cluster=cluster,
        trace="\n".join((*parts, type(fault).__name__)),
    )


def fault_fields(cluster: str = "", subject: object = None) -> dict[str, object]:
    """Return the fields of a log line about a fault, beside its trace."""
    return {
        "event": "InternalError",
        "cluster": cluster or None,
        "obj": None if subject is None else str(subject),
        "err_code": INTERNAL_ERROR,
    }


def _module(path: str) -> str:
    """Return a file of ours by its path in the repository; others by name, which reveals nothing of this machine."""
    _, separator, rest = path.rpartition("/reconciler/")
    return f"reconciler/{rest}" if separator else path.rpartition("/")[2]
