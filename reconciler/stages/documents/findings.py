"""Problems of one template while it is read."""

from __future__ import annotations

from reconciler.model.problem import Document, Problem, Severity
from reconciler.model.tree import Json, Step


class Findings:
    """Collects the problems of a document. Values of its fields are never repeated: they could be secrets.

    `places`: the steps to the field of each.
    """

    __slots__ = ("document", "places", "problems")

    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self.places: list[tuple[Step, ...]] = []

    def error(self, code: str, message: str, *steps: Step) -> None:
        """Add an error at a field."""
        self.problems.append(self.document.problem(code, message, *steps))
        self.places.append(steps)

    def warning(self, code: str, message: str, *steps: Step) -> None:
        """Add a warning at a field."""
        self.problems.append(self.document.problem(code, message, *steps, severity=Severity.WARNING))
        self.places.append(steps)

    @property
    def has_errors(self) -> bool:
        """Return whether the template must not be used."""
        return any(problem.severity is Severity.ERROR for problem in self.problems)


def type_name(value: Json) -> str:
    """The type of a value in the words of a manifest.

    >>> type_name(True), type_name([]), type_name(None)
    ('a boolean', 'a list', 'null')
    """
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a string"
        case list():
            return "a list"
        case _:
            return "a mapping"


def not_a_string(value: Json) -> str:
    """Return the message about a value that must be a string."""
    return f"{type_name(value)} where a string is needed" + (
        "; quote it" if isinstance(value, bool | int | float) else ""
    )
