"""Fields that several kinds share: metadata, resource selectors, cluster affinities."""

from __future__ import annotations

from reconciler.model.problem import Severity
from reconciler.stages.documents.shapes import Field, FieldType, Shape, exactly, shape

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
