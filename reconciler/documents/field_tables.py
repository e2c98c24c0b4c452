"""Tables of the fields that a document may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache, partial
from operator import itemgetter
from typing import Any, Final

from msgspec import Struct
from msgspec import field as property_of

from reconciler.api.problem import Severity


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


class FieldSupport(StrEnum):
    """The support of a field."""

    SUPPORTED = "supported"
    NO_EFFECT = "accepted without effect"
    REFUSED = "refused"


class Field(Struct, frozen=True):
    """One field: its name, type and meaning; every other property is optional.

    `spellings` are further names for the same field. `values` maps every accepted spelling of an enumeration to its
    canonical one; a value of `refused_values` is an error and one of `inert_values` a warning, with the reason given.
    `no_effect` and `refused` are reasons that concern the field as a whole. `note` ends the message about a bad value.
    """

    name: str
    type: FieldType
    meaning: str
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
    def status(self) -> FieldSupport:
        """Return the support of the field as a whole."""
        if self.refused:
            return FieldSupport.REFUSED
        return FieldSupport.NO_EFFECT if self.no_effect else FieldSupport.SUPPORTED


class Shape(Struct, frozen=True, eq=False):
    """The fields of one mapping, by name and by every spelling. Each is itself alone."""

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


def _field(kind: FieldType, name: str, meaning: str, *below: Field, **options: Any) -> Field:
    if below:
        options["shape"] = shape(*below)
    return Field(name, kind, meaning, **options)


text_field: Final = partial(_field, FieldType.TEXT)
flag_field: Final = partial(_field, FieldType.FLAG)
integer_field: Final = partial(_field, FieldType.INTEGER)
integer_or_text_field: Final = partial(_field, FieldType.INTEGER_OR_TEXT)
texts_field: Final = partial(_field, FieldType.TEXTS)
map_field: Final = partial(_field, FieldType.MAP)
object_field: Final = partial(_field, FieldType.OBJECT)
objects_field: Final = partial(_field, FieldType.OBJECTS)
text_or_object_field: Final = partial(_field, FieldType.TEXT_OR_OBJECT)
any_field: Final = partial(_field, FieldType.ANY)


def either_case(*values: str, **others: str) -> dict[str, str]:
    """Values of an enumeration that may also begin with a small letter; `others` are further spellings.

    >>> either_case("Abort")
    {'Abort': 'Abort', 'abort': 'Abort'}
    """
    spelled = {value: value for value in values} | others
    return spelled | {spelling[0].lower() + spelling[1:]: value for spelling, value in spelled.items()}


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


@cache
def places_in(root: Shape) -> Mapping[str, tuple[str, Field]]:
    """Return the first path, in their order, of each spelling of a field below a shape."""
    places: dict[str, tuple[str, Field]] = {}
    for path, field in sorted(walk(root), key=itemgetter(0)):
        for spelling in (field.name, *field.spellings):
            places.setdefault(spelling, (path, field))
    return places


_BY_SERVER = "an API server sets it; leave it out of the store"


def _server_field(name: str) -> Field:
    return any_field(name, "Set by an API server.", no_effect=_BY_SERVER, severity=Severity.HINT)


API_VERSION = text_field("apiVersion", "The API group and version.", required=True)
KIND = text_field("kind", "The kind of the document.", required=True)
STATUS = _server_field("status")

METADATA_SHAPE = shape(
    text_field("name", "The name of the object.", required=True),
    text_field("namespace", "The namespace, for namespaced kinds.", default="default, for namespaced kinds"),
    map_field("labels", "Labels."),
    map_field("annotations", "Annotations."),
    text_field("generateName", "A prefix of a made-up name.", refused="an object of the store needs a fixed name"),
    *map(_server_field, ("creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "finalizers")),
    *map(_server_field, ("generation", "managedFields", "ownerReferences", "resourceVersion", "selfLink", "uid")),
)
METADATA = object_field("metadata", "Name, namespace, labels, annotations.", shape=METADATA_SHAPE, required=True)


def document_shape(spec: Field) -> Shape:
    """Return the shape of a document with this spec."""
    return shape(API_VERSION, KIND, METADATA, spec, STATUS)


LABEL_SELECTOR_SHAPE = shape(
    map_field("matchLabels", "Labels that must have exactly these values."),
    objects_field(
        "matchExpressions",
        "Requirements that must all hold.",
        text_field("key", "The label key.", required=True),
        text_field(
            "operator", "How values compare.", required=True, values=exactly("In", "NotIn", "Exists", "DoesNotExist")
        ),
        texts_field("values", "Values for In and NotIn."),
    ),
)

RESOURCE_SELECTORS = objects_field(
    "resourceSelectors",
    "Which templates the policy concerns.",
    text_field("apiVersion", "Compared exactly with the template's.", required=True),
    text_field("kind", "Compared exactly with the template's.", required=True),
    text_field("namespace", "The namespace of the templates.", default="the policy's own; for cluster policies any"),
    text_field("name", "The name of the template; labelSelector is then ignored."),
    object_field("labelSelector", "Selects templates by label.", shape=LABEL_SELECTOR_SHAPE),
)

CLUSTER_NAMES = texts_field("clusterNames", "Clusters to include, by name.", spellings=("clusterIds",))

AFFINITY_FIELDS = (
    CLUSTER_NAMES,
    texts_field("exclude", "Clusters to leave out, whatever else matches.", spellings=("excludeClusters",)),
    object_field("labelSelector", "Selects clusters by label.", shape=LABEL_SELECTOR_SHAPE),
    object_field(
        "fieldSelector",
        "Selects clusters by provider, region or zone.",
        objects_field(
            "matchExpressions",
            "Requirements that must all hold.",
            text_field("key", "provider, region or zone.", required=True),
            text_field("operator", "In or NotIn.", required=True),
            texts_field("values", "The values."),
        ),
    ),
)

AFFINITY_SHAPE = shape(*AFFINITY_FIELDS)

TARGET_CLUSTER = object_field(
    "targetCluster",
    "The clusters that this entry is for.",
    *AFFINITY_FIELDS,
    object_field(
        "clusterAffinity", "The same fields, one level deeper, as the older page shows them.", shape=AFFINITY_SHAPE
    ),
    default="every cluster",
)
