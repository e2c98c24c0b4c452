"""A typed reader of document fields: a table lists the allowed fields, and each misfit becomes a problem.

A `Shape` lists the fields of one mapping. Reading a mapping through `Fields` reports unknown fields, wrong types,
unknown values, refused fields and fields without effect once, for every field, whether or not the parser asks for it.
Source: design#strict-fields; design#refused-fields; design#all-faults.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType, UnionType
from typing import TypeVar

from reconciler.api.content import Json, JsonObject, Step
from reconciler.api.problem import Document, Problem, Severity, Source
from reconciler.documents.field_tables import Field, FieldType, Shape, places_in

Value = TypeVar("Value")

_NO_TEXTS: Mapping[str, str] = MappingProxyType({})
_INT32_MAX = 2**31 - 1
_INTEGERS = (FieldType.INTEGER, FieldType.INTEGER_OR_TEXT)
_PYTHON_TYPES: Mapping[FieldType, type | UnionType] = {
    FieldType.TEXT: str,
    FieldType.FLAG: bool,
    FieldType.INTEGER: int,
    FieldType.INTEGER_OR_TEXT: int | str,
    FieldType.OBJECT: Mapping,
    FieldType.TEXT_OR_OBJECT: str | Mapping,
    FieldType.ANY: object,
}

_EXAMPLES: Mapping[FieldType, str] = {
    FieldType.TEXT: "web",
    FieldType.FLAG: "true",
    FieldType.INTEGER: "3",
    FieldType.INTEGER_OR_TEXT: "3",
    FieldType.TEXTS: "[web, api]",
    FieldType.MAP: "{app: web}",
    FieldType.OBJECT: "{}",
    FieldType.OBJECTS: "[]",
    FieldType.TEXT_OR_OBJECT: "web",
}

_PROBLEMS_MAX = 1_000
"""So many problems of one document are told; finding the place and the meant name of each takes time."""


class Findings:
    """Collects the problems of a document. Values of its fields are never repeated: they could be secrets.

    `root`: the document's shape, for suggestions. `places`: the steps to the field of each. `is_full`: further ones are
    not told, but for the first error. With `has_errors` the document must not be used.
    """

    __slots__ = ("document", "has_errors", "places", "problems", "root")

    def __init__(self, document: Document, root: Shape | None = None) -> None:
        self.document = document
        self.root = root
        self.has_errors = False
        self.problems: list[Problem] = []
        self.places: list[tuple[Step, ...]] = []

    def error(self, code: str, message: str, *steps: Step) -> None:
        """Add an error at a field."""
        self._add(Severity.ERROR, code, message, steps)

    def warning(self, code: str, message: str, *steps: Step, severity: Severity = Severity.WARNING) -> None:
        """Add a warning, or with `severity` a hint, at a field."""
        self._add(severity, code, message, steps)

    def hint(self, code: str, message: str, *steps: Step) -> None:
        """Add a hint at a field."""
        self._add(Severity.HINT, code, message, steps)

    @property
    def is_full(self) -> bool:
        """Return whether so many problems are told that no further one is."""
        return len(self.problems) >= _PROBLEMS_MAX

    def _add(self, severity: Severity, code: str, message: str, steps: tuple[Step, ...]) -> None:
        if self.is_full and (severity is not Severity.ERROR or self.has_errors):
            return
        if len(self.problems) == _PROBLEMS_MAX - 1:
            message += f"; further problems of this document are not shown, since it has {_PROBLEMS_MAX:,}"
        self.problems.append(self.document.problem(code, message, *steps, severity=severity))
        self.places.append(steps)
        self.has_errors = self.has_errors or severity is Severity.ERROR

    def sorted(self) -> tuple[Problem, ...]:
        """Every problem in the order of the file, each once."""
        return tuple(sorted(set(self.problems)))


class Fields:
    """One mapping of a document through its shape. Getters take canonical names and return only well-typed values."""

    __slots__ = ("_entries", "_mentioned", "report", "shape", "steps")

    def __init__(self, report: Findings, shape: Shape, body: JsonObject, steps: tuple[Step, ...] = ()) -> None:
        self.report = report
        self.shape = shape
        self.steps = steps
        self._entries: dict[str, tuple[str, Json]] = {}
        self._mentioned: set[str] = set()
        for key, value in body.items():
            field = shape.by_spelling.get(key)
            if field is None:
                report.error("unknown-field", _unknown(report, shape, key, value), *steps, key)
            elif value is None and field.type is not FieldType.ANY:
                continue  # null in a manifest is an absent field, as for kubectl
            elif field.name in self._mentioned:
                spelled = ", ".join((field.name, *field.spellings))
                report.error("field-given-twice", f"these are one field: {spelled}; keep one of them", *steps, key)
            else:
                self._mentioned.add(field.name)
                if _fits(report, field, value, (*steps, key)):
                    self._entries[field.name] = key, value
        for field in shape.fields:
            if field.required and field.name not in self._mentioned:
                report.error("field-required", f"{field.name} is missing: {field.meaning}", *steps)

    def _get(self, name: str, *types: FieldType) -> Json:
        field = self.shape.by_spelling[name]
        assert field.name == name and field.type in types, f"{name} is no {types} of this shape"
        return self._entries.get(name, ("", None))[1]

    def has(self, name: str) -> bool:
        """Return whether the field is there, not null and well-typed."""
        return name in self._entries

    def is_empty(self, name: str) -> bool:
        """Return whether a field is absent, null or empty; one of a wrong type is not empty."""
        return name not in self._mentioned or (name in self._entries and not self._entries[name][1])

    def path(self, name: str, *rest: Step) -> tuple[Step, ...]:
        """Steps to a field (or below it) under the spelling that the document uses."""
        return (*self.steps, self._entries[name][0] if name in self._entries else name, *rest)

    def error(self, code: str, message: str, name: str = "", *rest: Step) -> None:
        """Add an error at the mapping, or at one of its fields, or below that."""
        self.report.error(code, message, *(self.path(name, *rest) if name else self.steps))

    def warning(self, code: str, message: str, name: str = "", *, severity: Severity = Severity.WARNING) -> None:
        """Add a warning, or with `severity` a hint, at the mapping or at one of its fields."""
        self.report.warning(code, message, *(self.path(name) if name else self.steps), severity=severity)

    def check(self, name: str, is_legal: Callable[[str], object], code: str, message: str) -> None:
        """Report a text, or an item of a list of texts, that is not legal. `message`: `{}` in it is the text."""
        value = self._get(name, FieldType.TEXT, FieldType.TEXTS)
        for index, text in enumerate([value] if isinstance(value, str) else value or ()):
            if not is_legal(text):
                self.error(code, message.format(repr(text)), name, *(() if isinstance(value, str) else (index,)))

    def result(self, value: Value) -> tuple[Value | None, tuple[Problem, ...]]:
        """Return the value of the document, None if it has errors, and its problems in the order of the file."""
        return (None if self.report.has_errors else value), self.report.sorted()

    def source(self, name: str = "") -> Source:
        """Return the place of the mapping, or of one of its fields."""
        return self.report.document.at(*(self.path(name) if name else self.steps))

    def text(self, name: str, default: str = "") -> str:
        """A string; the canonical spelling when the field is an enumeration."""
        value = self._get(name, FieldType.TEXT)
        if value is None:
            return default
        return self.shape.by_spelling[name].values.get(value) or str(value)

    def flag(self, name: str) -> bool | None:
        """A boolean, None when it is not given."""
        value = self._get(name, FieldType.FLAG)
        return value if isinstance(value, bool) else None

    def integer(self, name: str) -> int | None:
        """An integer that fits 32 bits, None when it is not given."""
        value = self._get(name, FieldType.INTEGER)
        return value if isinstance(value, int) else None

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of strings, empty when it is not given."""
        return tuple(self._get(name, FieldType.TEXTS) or ())

    def text_map(self, name: str) -> Mapping[str, str]:
        """A mapping of strings to strings, empty when it is not given."""
        return self._get(name, FieldType.MAP) or _NO_TEXTS

    def any(self, name: str) -> Json:
        """Return the value of a field of several types; `has` tells null from absent."""
        return self._get(name, FieldType.ANY, FieldType.INTEGER_OR_TEXT, FieldType.TEXT_OR_OBJECT)

    def child(self, name: str) -> Fields | None:
        """The mapping below a field, None when it is not given (or a string, where that is allowed)."""
        value = self._get(name, FieldType.OBJECT, FieldType.TEXT_OR_OBJECT)
        if not isinstance(value, Mapping):
            return None
        return Fields(self.report, self._below(name), value, self.path(name))

    def section(self, name: str) -> Fields:
        """The mapping below a field, an empty one when it is not given."""
        return self.child(name) or Fields(self.report, self._below(name), {}, self.path(name))

    def children(self, name: str) -> Iterator[Fields]:
        """The mappings of a list; an item of another type is reported and left out."""
        below = self._below(name)
        for index, item in enumerate(self._get(name, FieldType.OBJECTS) or ()):
            if isinstance(item, Mapping):
                yield Fields(self.report, below, item, self.path(name, index))
            else:
                wrong = f"must be an object, is {_type_of(item)}; for example {_below(below)}"
                self.error("wrong-type", wrong, name, index)

    def _below(self, name: str) -> Shape:
        below = self.shape.by_spelling[name].shape
        assert below is not None, f"{name} has no shape"
        return below


def document_fields(document: Document, root: Shape) -> Fields:
    """The top of a document, with a fresh report."""
    return Fields(Findings(document, root), root, document.body)


def _fits(report: Findings, field: Field, value: Json, steps: tuple[Step, ...]) -> bool:
    if field.refused:
        report.error("field-refused", f"{field.name} is not supported: {field.refused}", *steps)
        return False
    misfit, remedy = _misfit(field.type, value)
    if misfit:
        article = "an" if field.type[0] in "aio" else "a"
        remedy = remedy or f"; for example {field.name}: {_example(field)}"
        report.error("wrong-type", f"must be {article} {field.type}, {misfit}{remedy}", *steps)
        return False
    if field.no_effect:
        report.warning(
            "field-without-effect", f"{field.name} has no effect: {field.no_effect}", *steps, severity=field.severity
        )
    if isinstance(value, int) and field.type in _INTEGERS and abs(value) > _INT32_MAX:
        report.error("number-out-of-range", f"{value} does not fit 32 bits", *steps)
        return False
    return not isinstance(value, str) or _known_value(report, field, value, steps)


def _example(field: Field) -> str:
    if field.shape is not None:
        below = _below(field.shape)
        return f"[{below}]" if field.type is FieldType.OBJECTS else below
    known = next((value for value in field.values.values() if value not in field.refused_values), "")
    return known or _EXAMPLES[field.type]


def _below(shape: Shape) -> str:
    """Return a mapping of this shape, as far as one field shows it."""
    usable = (field for field in shape.fields if not (field.refused or field.no_effect))
    return f"{{{next(usable, shape.fields[0]).name}: …}}"


def _known_value(report: Findings, field: Field, value: str, steps: tuple[Step, ...]) -> bool:
    if value in field.refused_values:
        report.error("value-refused", f"{field.name} {value} is not supported: {field.refused_values[value]}", *steps)
        return False
    if value in field.inert_values:
        report.warning(
            "value-without-effect", f"{field.name} {value} has no effect: {field.inert_values[value]}", *steps
        )
    if field.values and value not in field.values:
        allowed = ", ".join(filter(None, dict.fromkeys(field.values.values())))
        message = f"{value!r} is not known; {field.name} is one of: {allowed}"
        report.error("unknown-value", f"{message}. {field.note}" if field.note else message, *steps)
        return False
    return True


def _misfit(expected: FieldType, value: Json) -> tuple[str, str]:
    """Return the fault of a value's type, empty if it fits, and its remedy; empty where an example is the best one."""
    if expected in (FieldType.TEXTS, FieldType.OBJECTS):
        if isinstance(value, str) and value.lstrip().startswith("-"):
            return "is a string", ": a list item needs a space after its dash"
        if not isinstance(value, list | tuple):
            return f"is {_type_of(value)}", ""
        items = enumerate(value) if expected is FieldType.TEXTS else ()
        return _misfit_of_items((f"item {index}", item) for index, item in items)
    if expected is FieldType.MAP:
        return _misfit_of_items(value.items()) if isinstance(value, Mapping) else (f"is {_type_of(value)}", "")
    types = (FieldType.FLAG, FieldType.ANY)
    fits = expected in types if isinstance(value, bool) else isinstance(value, _PYTHON_TYPES[expected])
    if value in ("true", "false") if expected is FieldType.FLAG else expected is FieldType.INTEGER and is_number(value):
        return "is a string", "; take the quotes away"
    return ("", "") if fits else (f"is {_type_of(value)}", _quote_tip(expected, value))


def _misfit_of_items(items: Iterable[tuple[str, Json]]) -> tuple[str, str]:
    wrong = ((name, item) for name, item in items if not isinstance(item, str))
    return next(((f"{name} is {_type_of(item)}", _quote_tip(FieldType.TEXT, item)) for name, item in wrong), ("", ""))


def is_number(value: Json) -> bool:
    """Return whether a value is a text of digits, as a number in quotes is."""
    return isinstance(value, str) and value.strip().lstrip("-").replace(".", "", 1).isdigit()


def _quote_tip(expected: FieldType, value: Json) -> str:
    return "; put it in quotes" if expected is FieldType.TEXT and isinstance(value, bool | int | float) else ""


def type_name(value: Json) -> str:
    """The type of a value in the words of a manifest.

    >>> type_name(True), type_name([]), type_name(None)
    ('a boolean', 'a list', 'null')
    """
    if value is None:
        return "null"
    names = ((bool, "a boolean"), (str, "a string"), (int | float, "a number"), (Mapping, "a mapping"))
    return next((name for kind, name in names if isinstance(value, kind)), "a list")


def _type_of(value: Json) -> str:
    return type_name(value).replace("a mapping", "an object")


def _unknown(report: Findings, here: Shape, key: str, value: Json) -> str:
    """Return the message about a field that is not in the shape: a close spelling, or the place where it belongs."""
    if report.is_full:
        return f"unknown field {key}"
    close = difflib.get_close_matches(key, here.by_spelling, n=1, cutoff=0.7)
    if close:
        return f"unknown field {key}; did you mean {close[0]}?"
    place = places_in(report.root).get(key) if report.root is not None else None
    if place is not None and not _misfit(place[1].type, value)[0]:
        return f"unknown field {key} here; it belongs at {place[0]}: check the indentation"
    return f"unknown field {key}; known here: {', '.join(sorted(field.name for field in here.fields))}"
