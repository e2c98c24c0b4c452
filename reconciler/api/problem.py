"""A document of the store, places in it, and its problems."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct

from reconciler.api.content import JsonObject, Step


class Source(NamedTuple):
    """A place in the fleet store: path relative to its root and line from 1 (0: the file as a whole)."""

    path: str
    line: int = 0

    def __str__(self) -> str:
        """`policies/web.yaml:14`, or the path alone."""
        return f"{self.path}:{self.line}" if self.line else self.path


NOWHERE = Source("")
"""The source of things that no file declares: a bare Namespace, a problem of the whole store."""


class Severity(StrEnum):
    """An error stops its subject; a warning and a hint stop nothing."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class Problem(Struct, frozen=True, kw_only=True, order=True):
    """A fault of the user's input, collected and never raised.

    `code` is stable and documented (kebab-case, e.g. `weight-not-positive`); `path` is the field path inside the
    document (`spec.placement.clusterAffinity`), empty for the document itself; `message` names the fault and the
    remedy, without repeating source and path; `cluster` is set when it concerns one cluster only.
    """

    source: Source
    path: str = ""
    code: str
    message: str
    severity: Severity = Severity.ERROR
    cluster: str = ""
    trace: str = ""
    """The place in the code of a fault of the program, for the log."""

    def __str__(self) -> str:
        """One line: `error policies/web.yaml:14 spec.placement: message [code]`."""
        where = " ".join(part for part in (str(self.source), self.path) if part)
        at = f"@ {self.cluster} " if self.cluster else ""
        return f"{self.severity} {where}: {at}{self.message} [{self.code}]"


def error(source: Source, path: str, code: str, message: str, cluster: str = "") -> Problem:
    """Return a problem that stops what it is about."""
    return Problem(source=source, path=path, code=code, message=message, cluster=cluster)


def warning(source: Source, path: str, code: str, message: str, cluster: str = "") -> Problem:
    """Return a problem that stops nothing."""
    return Problem(source=source, path=path, code=code, message=message, severity=Severity.WARNING, cluster=cluster)


def hint(source: Source, path: str, code: str, message: str) -> Problem:
    """Return a problem that may be meant so."""
    return Problem(source=source, path=path, code=code, message=message, severity=Severity.HINT)


def with_problems(before: tuple[Problem, ...], *more: Iterable[Problem]) -> tuple[Problem, ...]:
    """All of these, sorted and each once; `before`, which is so already, itself when nothing is added to it.

    Thousands of hints of a store are not sorted again for each commit.
    """
    news = {problem for problems in more for problem in problems}
    added = sorted(problem for problem in news if not _stands_in(before, problem))
    joined = list(before)
    for problem in added:
        insort(joined, problem)
    return tuple(joined) if added else before


def without_problems(before: tuple[Problem, ...], gone: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return sorted, unique problems without some of them; the same tuple if none goes."""
    leaving = {problem for problem in gone if _stands_in(before, problem)}
    left = list(before)
    for problem in leaving:
        del left[bisect_left(left, problem)]
    return tuple(left) if leaving else before


def _stands_in(problems: tuple[Problem, ...], problem: Problem) -> bool:
    place = bisect_left(problems, problem)
    return place < len(problems) and problems[place] == problem


class Document(Struct, frozen=True, kw_only=True):
    """A mapping, read as kubectl reads it. Items of a `List` are documents of their own.

    `line` is its first line from 1. `locate` gives the line of a field (or of the nearest parent that exists); it may
    parse the text again, so it is called for problems and provenance only, never on a hot path. `is_small`: its text is
    at most 100,000 bytes, and its value is no larger than the text.
    """

    path: str
    line: int
    body: JsonObject
    locate: Callable[[tuple[Step, ...]], int]
    is_small: bool = False

    @property
    def source(self) -> Source:
        """Return the place of the document's beginning."""
        return Source(self.path, self.line)

    def at(self, *steps: Step) -> Source:
        """Return the place of a field."""
        return Source(self.path, self.locate(steps))

    def problem(self, code: str, message: str, *steps: Step, severity: Severity = Severity.ERROR) -> Problem:
        """A problem at a field; its path is written `spec.rules[0].weight`."""
        return Problem(source=self.at(*steps), path=dotted(steps), code=code, message=message, severity=severity)


def dotted(steps: tuple[Step, ...]) -> str:
    """Steps as people write a field path.

    >>> dotted(("spec", "rules", 0, "weight"))
    'spec.rules[0].weight'
    """
    text = ""
    for step in steps:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += f".{step}" if text else step
    return text
