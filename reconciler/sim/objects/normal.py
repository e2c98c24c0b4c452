"""Canonical form of built-in kinds, as decoding into Go types and encoding again leaves it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable

from reconciler.sim.objects import quantities
from reconciler.sim.objects.status import Body, Json, Refused

Fail = Callable[[str], Refused]
"""The refusal of a malformed body: 400 for POST and PUT, 500 for server-side apply, 422 for patches."""

_DROPPED_EMPTY = frozenset(
    {"labels", "annotations", "nodeSelector", "matchLabels", "data", "stringData", "binaryData", "limits", "requests"}
)
_QUANTITY_MAPS = frozenset(
    {
        "limits", "requests", "capacity", "allocatable", "hard", "used", "overhead", "default", "defaultRequest", "min",
        "max",
    }
)  # fmt: skip
_QUANTITIES = frozenset({"averageValue", "sizeLimit", "divisor"})
_TEXT_MAPS = frozenset({"labels", "annotations", "data", "stringData", "binaryData", "matchLabels", "nodeSelector"})
_KEPT_EMPTY_LISTS = frozenset({"managedFields", "rules"})


def normal(body: Body, fail: Fail) -> Body:
    """Return the body without nulls and empty optional values, quantities canonical, stringData folded into data.

    Raises what `fail` makes of a value that has the wrong type or is no quantity or base64.
    """
    kind = body.get("kind")
    if kind in ("CustomResourceDefinition", "ControllerRevision"):
        return body
    tidy: Body = _normal(body, "", fail)
    if not isinstance(tidy.get("metadata"), dict):
        tidy["metadata"] = {}
    if kind == "Secret":
        return _folded(tidy, fail)
    if kind == "Service" and (tidy.get("spec") or {}).get("selector") == {}:
        return {**tidy, "spec": {name: value for name, value in tidy["spec"].items() if name != "selector"}}
    return tidy


def _normal(value: Json, name: str, fail: Fail) -> Json:
    if isinstance(value, dict):
        if name in _TEXT_MAPS:
            return _text_map(value, name, fail)
        if name in _QUANTITY_MAPS and all(isinstance(v, str | int | float) for v in value.values()):
            return {key: _quantity(amount, fail) for key, amount in value.items()}
        tidied: Body = {}
        for key, below in value.items():
            tidy = below if key in ("managedFields", "fieldsV1") else _normal(below, key, fail)
            if tidy is None or (tidy == {} and key in _DROPPED_EMPTY):
                continue
            if tidy == [] and key not in _KEPT_EMPTY_LISTS:
                continue
            tidied[key] = tidy
        return tidied
    if isinstance(value, list):
        return [_normal(item, "", fail) for item in value]
    if name in _QUANTITIES:
        return _quantity(value, fail)
    if name == "replicas" and value is not None and (not isinstance(value, int) or isinstance(value, bool)):
        raise fail(f"json: cannot unmarshal {_go_type(value)} into Go struct field .replicas of type int32")
    return value


def _text_map(value: Body, name: str, fail: Fail) -> Body:
    for key, text in value.items():
        if text is not None and not isinstance(text, str):
            raise fail(f"json: cannot unmarshal {_go_type(text)} into Go struct field .{name}.{key} of type string")
    return {key: text if text is not None else "" for key, text in value.items()}


def _go_type(value: Json) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int | float):
        return "number"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list) else "string"


def _quantity(value: Json, fail: Fail) -> str:
    try:
        return quantities.canonical(value)
    except ValueError:
        pattern = "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        raise fail(pattern) from None


def _folded(secret: Body, fail: Fail) -> Body:
    """`stringData` is write-only: it replaces keys of `data`."""
    data = dict(secret.get("data") or {})
    for text in data.values():
        try:
            base64.b64decode(text, validate=True)
        except binascii.Error:
            raise fail("illegal base64 data at input byte 0") from None
    for key, text in (secret.get("stringData") or {}).items():
        data[key] = base64.b64encode(text.encode()).decode()
    others = {name: value for name, value in secret.items() if name not in ("data", "stringData")}
    return {**others, "data": data} if data else others
