"""Tables of allowed fields: a `Shape` lists the fields of one mapping of a document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

from msgspec import Struct
from msgspec import field as property_of

from reconciler.model.problem import Severity


class FieldType(StrEnum):
    """The type of a field, as documentation and messages name it."""

    TEXT = "string"
    FLAG = "boolean"
    INTEGER = "integer"
    INTEGER_OR_TEXT = "integer or string"
    TEXTS = "list of strings"
    MAP = "map of strings"
    OBJECT = "object"
    OBJECTS = "list of objects"
    TEXT_OR_OBJECT = "string or object"
    ANY = "any value"


class Status(StrEnum):
    """The support of a field."""

    SUPPORTED = "supported"
    NO_EFFECT = "accepted without effect"
    REFUSED = "refused"


class _Required(Struct, frozen=True):
    name: str
    type: FieldType
    meaning: str


class Field(_Required, frozen=True, kw_only=True):
    """One field: its name, type and meaning; every other property is optional.

    `spellings` are further names for the same field. `values` maps every accepted spelling of an enumeration to its
    canonical one; a value of `refused_values` is an error and one of `inert_values` a warning, with the reason given.
    `no_effect` and `refused` are reasons that concern the field as a whole. `note` ends the message about a bad value.
    """

    shape: Shape | None = None
    spellings: tuple[str, ...] = ()
    values: Mapping[str, str] = property_of(default_factory=dict)
    refused_values: Mapping[str, str] = property_of(default_factory=dict)
    inert_values: Mapping[str, str] = property_of(default_factory=dict)
    default: str = ""
    required: bool = False
    no_effect: str = ""
    refused: str = ""
    severity: Severity = Severity.WARNING
    note: str = ""

    @property
    def status(self) -> Status:
        """Return the support of the field as a whole."""
        if self.refused:
            return Status.REFUSED
        return Status.NO_EFFECT if self.no_effect else Status.SUPPORTED


class Shape(Struct, frozen=True):
    """The fields of one mapping, by name and by every spelling."""

    fields: tuple[Field, ...]
    by_spelling: Mapping[str, Field]


def shape(*fields: Field) -> Shape:
    """A shape of the fields; no spelling may occur twice."""
    by_spelling: dict[str, Field] = {}
    for field in fields:
        for spelling in (field.name, *field.spellings):
            assert spelling not in by_spelling, f"two fields are spelled {spelling}"
            by_spelling[spelling] = field
    return Shape(fields, by_spelling)


def either_case(*values: str, **others: str) -> dict[str, str]:
    """Values of an enumeration that may also begin with a small letter; `others` are further spellings.

    >>> either_case("Abort")
    {'Abort': 'Abort', 'abort': 'Abort'}
    """
    spelled = {value: value for value in values} | others
    return {
        case: value for spelling, value in spelled.items() for case in (spelling, spelling[0].lower() + spelling[1:])
    }


def exactly(*values: str) -> dict[str, str]:
    """Values of an enumeration that have one spelling only."""
    return {value: value for value in values}


def walk(root: Shape, prefix: str = "") -> Iterator[tuple[str, Field]]:
    """Every field below a shape with its path (`spec.overrideRules[].overriders`), parents first."""
    for field in root.fields:
        path = f"{prefix}.{field.name}" if prefix else field.name
        yield path, field
        if field.shape is not None:
            yield from walk(field.shape, path + ("[]" if field.type is FieldType.OBJECTS else ""))
