"""Every field of OverridePolicy and ClusterOverridePolicy.

Source: "PropagationPolicy and OverridePolicy" (both generations) and Karmada's `policy.karmada.io/v1alpha1`.
"""

from __future__ import annotations

from reconciler.stages.documents import (
    RESOURCE_SELECTORS,
    TARGET_CLUSTER,
    Field,
    FieldType,
    document_shape,
    either_case,
    shape,
)

_OPERATORS = either_case("add", "replace", "remove", Add="add", Replace="replace", Remove="remove")
_LIST_OPERATORS = either_case("add", "remove", Add="add", Remove="remove")
_OPERATOR = Field("operator", FieldType.TEXT, "add, replace or remove.", values=_OPERATORS, required=True)

IMAGE_SHAPE = shape(
    Field(
        "predicate",
        FieldType.TEXT_OR_OBJECT,
        "The JSON pointer of one image.",
        default="every image of the resource",
        shape=shape(Field("path", FieldType.TEXT, "The JSON pointer of the image.", required=True)),
    ),
    Field(
        "component",
        FieldType.TEXT,
        "The part of the image to change.",
        required=True,
        values=either_case("Registry", "Repository", "Tag"),
    ),
    _OPERATOR,
    Field("value", FieldType.TEXT, "The new text, for add and replace."),
)

COMMAND_SHAPE = shape(
    Field("containerName", FieldType.TEXT, "The container.", required=True),
    Field("operator", FieldType.TEXT, "add or remove.", values=_LIST_OPERATORS, required=True),
    Field("value", FieldType.TEXTS, "The items to add or to remove."),
)

MAP_SHAPE = shape(_OPERATOR, Field("value", FieldType.MAP, "The keys with their values."))

PATCH_SHAPE = shape(
    Field("path", FieldType.TEXT, "The JSON pointer of the field.", required=True),
    _OPERATOR,
    Field("value", FieldType.ANY, "The new value, for add and replace."),
)

EMBEDDED_PATCH_SHAPE = shape(
    Field("subPath", FieldType.TEXT, "The JSON pointer inside the embedded document.", required=True),
    _OPERATOR,
    Field("value", FieldType.ANY, "The new value, for add and replace."),
)

OVERRIDERS = Field(
    "overriders",
    FieldType.OBJECT,
    "What to change, in the order of this table.",
    shape=shape(
        Field("imageOverrider", FieldType.OBJECTS, "Changes images.", shape=IMAGE_SHAPE),
        Field("commandOverrider", FieldType.OBJECTS, "Changes the command of a container.", shape=COMMAND_SHAPE),
        Field("argsOverrider", FieldType.OBJECTS, "Changes the arguments of a container.", shape=COMMAND_SHAPE),
        Field("labelsOverrider", FieldType.OBJECTS, "Changes labels.", shape=MAP_SHAPE),
        Field("annotationsOverrider", FieldType.OBJECTS, "Changes annotations.", shape=MAP_SHAPE),
        Field(
            "fieldOverrider",
            FieldType.OBJECTS,
            "Changes JSON or YAML inside a string field.",
            shape=shape(
                Field("fieldPath", FieldType.TEXT, "The JSON pointer of the string field.", required=True),
                Field("json", FieldType.OBJECTS, "Changes to embedded JSON.", shape=EMBEDDED_PATCH_SHAPE),
                Field("yaml", FieldType.OBJECTS, "Changes to embedded YAML.", shape=EMBEDDED_PATCH_SHAPE),
            ),
        ),
        Field("plaintext", FieldType.OBJECTS, "Changes any field by JSON Patch.", shape=PATCH_SHAPE),
    ),
)

OVERRIDE_SHAPE = document_shape(
    Field(
        "spec",
        FieldType.OBJECT,
        "What is different where.",
        required=True,
        shape=shape(
            RESOURCE_SELECTORS,
            Field(
                "overrideRules", FieldType.OBJECTS, "Rules, applied in order.", shape=shape(TARGET_CLUSTER, OVERRIDERS)
            ),
            TARGET_CLUSTER,
            OVERRIDERS,
        ),
    )
)
