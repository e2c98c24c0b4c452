"""Tables of the fields that a document may have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import NamedTuple

from msgspec import Struct
from msgspec import field as property_of

from reconciler.api.problem import Severity


class ProblemCode(NamedTuple):
    """The meaning of a problem, and the remedy."""

    meaning: str
    remedy: str


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
    def status(self) -> FieldSupport:
        """Return the support of the field as a whole."""
        if self.refused:
            return FieldSupport.REFUSED
        return FieldSupport.NO_EFFECT if self.no_effect else FieldSupport.SUPPORTED


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


_BY_SERVER = "an API server sets it; leave it out of the store"


def _server_field(name: str, kind: FieldType) -> Field:
    return Field(name, kind, "Set by an API server.", no_effect=_BY_SERVER, severity=Severity.HINT)


API_VERSION = Field("apiVersion", FieldType.TEXT, "The API group and version.", required=True)
KIND = Field("kind", FieldType.TEXT, "The kind of the document.", required=True)
STATUS = _server_field("status", FieldType.ANY)

METADATA_SHAPE = shape(
    Field("name", FieldType.TEXT, "The name of the object.", required=True),
    Field("namespace", FieldType.TEXT, "The namespace, for namespaced kinds.", default="default, for namespaced kinds"),
    Field("labels", FieldType.MAP, "Labels."),
    Field("annotations", FieldType.MAP, "Annotations."),
    Field(
        "generateName",
        FieldType.TEXT,
        "A prefix of a made-up name.",
        refused="an object of the store needs a fixed name",
    ),
    _server_field("creationTimestamp", FieldType.ANY),
    _server_field("deletionGracePeriodSeconds", FieldType.ANY),
    _server_field("deletionTimestamp", FieldType.ANY),
    _server_field("finalizers", FieldType.ANY),
    _server_field("generation", FieldType.ANY),
    _server_field("managedFields", FieldType.ANY),
    _server_field("ownerReferences", FieldType.ANY),
    _server_field("resourceVersion", FieldType.ANY),
    _server_field("selfLink", FieldType.ANY),
    _server_field("uid", FieldType.ANY),
)
METADATA = Field(
    "metadata", FieldType.OBJECT, "Name, namespace, labels, annotations.", shape=METADATA_SHAPE, required=True
)


def document_shape(spec: Field) -> Shape:
    """Return the shape of a document with this spec."""
    return shape(API_VERSION, KIND, METADATA, spec, STATUS)


LABEL_SELECTOR_SHAPE = shape(
    Field("matchLabels", FieldType.MAP, "Labels that must have exactly these values."),
    Field(
        "matchExpressions",
        FieldType.OBJECTS,
        "Requirements that must all hold.",
        shape=shape(
            Field("key", FieldType.TEXT, "The label key.", required=True),
            Field(
                "operator",
                FieldType.TEXT,
                "How values compare.",
                required=True,
                values=exactly("In", "NotIn", "Exists", "DoesNotExist"),
            ),
            Field("values", FieldType.TEXTS, "Values for In and NotIn."),
        ),
    ),
)

RESOURCE_SELECTORS = Field(
    "resourceSelectors",
    FieldType.OBJECTS,
    "Which templates the policy concerns.",
    shape=shape(
        Field("apiVersion", FieldType.TEXT, "Compared exactly with the template's.", required=True),
        Field("kind", FieldType.TEXT, "Compared exactly with the template's.", required=True),
        Field(
            "namespace",
            FieldType.TEXT,
            "The namespace of the templates.",
            default="the policy's own; for cluster policies any",
        ),
        Field("name", FieldType.TEXT, "The name of the template; labelSelector is then ignored."),
        Field("labelSelector", FieldType.OBJECT, "Selects templates by label.", shape=LABEL_SELECTOR_SHAPE),
    ),
)

CLUSTER_NAMES = Field("clusterNames", FieldType.TEXTS, "Clusters to include, by name.", spellings=("clusterIds",))

AFFINITY_FIELDS = (
    CLUSTER_NAMES,
    Field("exclude", FieldType.TEXTS, "Clusters to leave out, whatever else matches.", spellings=("excludeClusters",)),
    Field("labelSelector", FieldType.OBJECT, "Selects clusters by label.", shape=LABEL_SELECTOR_SHAPE),
    Field(
        "fieldSelector",
        FieldType.OBJECT,
        "Selects clusters by provider, region or zone.",
        shape=shape(
            Field(
                "matchExpressions",
                FieldType.OBJECTS,
                "Requirements that must all hold.",
                shape=shape(
                    Field("key", FieldType.TEXT, "provider, region or zone.", required=True),
                    Field("operator", FieldType.TEXT, "In or NotIn.", required=True),
                    Field("values", FieldType.TEXTS, "The values."),
                ),
            )
        ),
    ),
)

AFFINITY_SHAPE = shape(*AFFINITY_FIELDS)

TARGET_CLUSTER = Field(
    "targetCluster",
    FieldType.OBJECT,
    "The clusters that this entry is for.",
    default="every cluster",
    shape=shape(
        *AFFINITY_FIELDS,
        Field(
            "clusterAffinity",
            FieldType.OBJECT,
            "The same fields, one level deeper, as the older page shows them.",
            shape=AFFINITY_SHAPE,
        ),
    ),
)
