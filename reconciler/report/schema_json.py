"""JSON Schemas (draft 2020-12) of the kinds that configure distribution, for editors: completion, help, validation.

They are made from the parser's own tables, so that both know the same fields. Null stands for an absent field, as for
kubectl. Rules that span several fields are checked by `validate` alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from reconciler.documents import (
    FLAVORS,
    OVERRIDE_KINDS,
    OWN_API_VERSION,
    PROPAGATION_KINDS,
    Field,
    FieldSupport,
    FieldType,
    Shape,
)
from reconciler.fleet import CLUSTER_APIS, KINDS

DRAFT = "https://json-schema.org/draft/2020-12/schema"

API_VERSIONS: Mapping[str, Sequence[str]] = {
    **{kind: tuple(FLAVORS) for kind in sorted(PROPAGATION_KINDS | OVERRIDE_KINDS)},
    **{kind: tuple(api for api, of in CLUSTER_APIS.items() if of == kind) for kind in CLUSTER_APIS.values()},
    "Fleet": (OWN_API_VERSION,),
    "Rollout": (OWN_API_VERSION,),
    "Render": (OWN_API_VERSION,),
    "Promotion": (OWN_API_VERSION,),
}

Schema = dict[str, Any]

_TYPES = {
    FieldType.TEXT: "string",
    FieldType.FLAG: "boolean",
    FieldType.INTEGER: "integer",
    FieldType.TEXTS: "array",
    FieldType.OBJECTS: "array",
    FieldType.MAP: "object",
    FieldType.OBJECT: "object",
}


def kind_schema(kind: str) -> Schema:
    """The schema of one kind, complete in itself."""
    return {"$schema": DRAFT, "title": kind, **_document(kind)}


def store_schema() -> Schema:
    """One schema for every file of a store: our kinds are checked, and every other kind passes."""
    return {
        "$schema": DRAFT,
        "title": "A document of a fleet store",
        "type": "object",
        "allOf": [{"if": _is_of(kind), "then": {"$ref": f"#/$defs/{kind}"}} for kind in KINDS],
        "$defs": {kind: _document(kind) for kind in KINDS},
    }


def _is_of(kind: str) -> Schema:
    """Return the condition for a document of the kind, in any version of its groups: a wrong version is an error."""
    groups = sorted({api_version.partition("/")[0] for api_version in API_VERSIONS[kind]})
    pattern = "|".join(group.replace(".", "\\.") for group in groups)
    return {
        "properties": {"kind": {"const": kind}, "apiVersion": {"type": "string", "pattern": f"^({pattern})/"}},
        "required": ["apiVersion", "kind"],
    }


def _document(kind: str) -> Schema:
    document = _mapping(KINDS[kind])
    properties = {
        **document["properties"],
        "apiVersion": {"description": "The API group and version.", "enum": list(API_VERSIONS[kind])},
        "kind": {"const": kind},
    }
    return {**document, "properties": properties}


def _mapping(shape: Shape) -> Schema:
    properties: dict[str, Schema] = {}
    for field in shape.fields:
        properties[field.name] = _field(field)
        for spelling in field.spellings:
            properties[spelling] = {**_field(field), "description": f"Another spelling of {field.name}."}
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    required = [field for field in shape.fields if field.required]
    plain = [field.name for field in required if not field.spellings]
    if plain:
        schema["required"] = plain
    either = [
        {"anyOf": [{"required": [name]} for name in (field.name, *field.spellings)]}
        for field in required
        if field.spellings
    ]
    return {**schema, "allOf": either} if either else schema


def _field(field: Field) -> Schema:
    if field.status is FieldSupport.REFUSED:
        return {"description": f"Not supported: {field.refused}.", "not": {}}
    schema: Schema = {"description": _words(field), **_value(field)}
    return {**schema, "deprecated": True} if field.status is FieldSupport.NO_EFFECT else schema


def _words(field: Field) -> str:
    parts = [field.meaning]
    if field.default:
        parts.append(f"Default: {field.default}.")
    if field.no_effect:
        parts.append(f"Without effect: {field.no_effect}.")
    parts += [f"{value} has no effect: {why}." for value, why in sorted(field.inert_values.items())]
    parts += [f"{value} is not supported: {why}." for value, why in sorted(field.refused_values.items())]
    return " ".join(parts)


def _value(field: Field) -> Schema:
    if field.type is FieldType.ANY:
        return {}
    if field.values:
        # The canonical spelling of each value first: editors offer them in this order.
        spellings = dict.fromkeys((*field.values.values(), *field.values))
        return {"enum": [value for value in spellings if value not in field.refused_values]}
    if field.type is FieldType.TEXT_OR_OBJECT:
        return {"anyOf": [{"type": ["string", "null"]}, _inner(field)]}
    if field.type is FieldType.INTEGER_OR_TEXT:
        return {"type": ["integer", "string", "null"]}
    schema: Schema = {"type": [_TYPES[field.type], "null"] if not field.required else _TYPES[field.type]}
    match field.type:
        case FieldType.INTEGER:
            return {**schema, "minimum": -(2**31) + 1, "maximum": 2**31 - 1}
        case FieldType.TEXTS:
            return {**schema, "items": {"type": "string"}}
        case FieldType.MAP:
            return {**schema, "additionalProperties": {"type": "string"}}
        case FieldType.OBJECT:
            return {**_inner(field), **schema}
        case FieldType.OBJECTS:
            return {**schema, "items": _inner(field)}
        case _:
            return schema


def _inner(field: Field) -> Schema:
    assert field.shape is not None, f"{field.name} has no shape"
    return _mapping(field.shape)
