"""Validation of a body by the schema of its kind."""

from reconciler.stages.schemas.check import SchemaFault, body_faults, may_not_fit
from reconciler.stages.schemas.schema import (
    FREE,
    Format,
    Node,
    Schema,
    Shape,
    builtin_schema,
    object_meta,
    schema_of_crd,
    schema_of_openapi,
)
from reconciler.stages.schemas.types import surely_fits

__all__ = [
    "FREE",
    "Format",
    "Node",
    "Schema",
    "SchemaFault",
    "Shape",
    "body_faults",
    "builtin_schema",
    "may_not_fit",
    "object_meta",
    "schema_of_crd",
    "schema_of_openapi",
    "surely_fits",
]
