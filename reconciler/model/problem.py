"""Where something stands in the store, and what is wrong with it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct


class Source(NamedTuple):
    """A place in the fleet store: path relative to its root and line from 1 (0: the file as a whole)."""

    path: str
    line: int = 0

    def __str__(self) -> str:
        """`policies/web.yaml:14`, or the path alone."""
        return f"{self.path}:{self.line}" if self.line else self.path


NOWHERE = Source("")
"""The source of what no file wrote: a bare Namespace, a problem of the whole store."""


class Severity(StrEnum):
    """An error stops what it concerns; a warning and a hint stop nothing."""

    ERROR = "error"
    WARNING = "warning"
    HINT = "hint"


class Problem(Struct, frozen=True, kw_only=True, order=True):
    """A fault of the user's input, collected and never raised.

    `code` is stable and documented (kebab-case, e.g. `weight-not-positive`); `path` is the field path inside the
    document (`spec.placement.clusterAffinity`), empty for the document itself; `message` says what is wrong and
    what to do next, without repeating source and path; `cluster` is set when it concerns one cluster only.
    """

    source: Source
    path: str = ""
    code: str
    message: str
    severity: Severity = Severity.ERROR
    cluster: str = ""

    def __str__(self) -> str:
        """One line: `error policies/web.yaml:14 spec.placement: message [code]`."""
        where = " ".join(part for part in (str(self.source), self.path) if part)
        at = f"@ {self.cluster} " if self.cluster else ""
        return f"{self.severity} {where}: {at}{self.message} [{self.code}]"
