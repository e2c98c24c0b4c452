"""Custom resources against their structural schema: unknown fields are pruned, defaults are set."""

from __future__ import annotations

from reconciler.sim.objects.kinds import Resource
from reconciler.sim.objects.status import Body, Json

_TYPE_META = ("apiVersion", "kind", "metadata")


def structured(resource: Resource, body: Body) -> Body:
    """The object as it is stored."""
    schema = resource.schema or {}
    shaped: Body = _shaped({name: value for name, value in body.items() if name not in _TYPE_META}, schema)
    return {**{name: body[name] for name in _TYPE_META if name in body}, **shaped}


def _shaped(value: Json, schema: Body) -> Json:
    if isinstance(value, list):
        return [_shaped(item, schema.get("items") or {}) for item in value]
    if not isinstance(value, dict):
        return value
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    shaped: Body = {}
    for name, below in value.items():
        if name in properties:
            shaped[name] = _shaped(below, properties[name])
        elif isinstance(extra, dict):
            shaped[name] = _shaped(below, extra)
        elif extra or schema.get("x-kubernetes-preserve-unknown-fields"):
            shaped[name] = below
    for name, node in properties.items():
        if shaped.get(name) is None and "default" in node:
            shaped[name] = node["default"]
    return shaped
