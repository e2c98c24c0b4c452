"""One document of a file of the store, with the line of each of its fields."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from reconciler.model.problem import Problem, Severity, Source
from reconciler.model.tree import JsonObject, Step


class Document(Struct, frozen=True, kw_only=True):
    """A mapping that was read as kubectl reads it. Items of a `List` are documents of their own.

    `line` is its first line from 1. `locate` gives the line of a field (or of the nearest parent that exists); it
    may parse the text again, so it is called for problems and provenance only, never on a hot path. `is_small`: its
    text is at most 100,000 bytes, and nothing in it stands for more than is written there.
    """

    path: str
    line: int
    body: JsonObject
    locate: Callable[[tuple[Step, ...]], int]
    is_small: bool = False

    @property
    def source(self) -> Source:
        """Where the document begins."""
        return Source(self.path, self.line)

    def at(self, *steps: Step) -> Source:
        """Where a field stands."""
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
