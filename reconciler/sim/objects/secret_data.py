"""Validation of a Secret of one of the built-in types. Messages are those of the API server's JSON decoder."""

from __future__ import annotations

import json
from base64 import b64decode
from collections.abc import Iterator

from reconciler.sim.objects.status import Body, FieldError, required, wrong

_NEEDED_DATA = {
    "kubernetes.io/dockercfg": (".dockercfg",),
    "kubernetes.io/dockerconfigjson": (".dockerconfigjson",),
    "kubernetes.io/tls": ("tls.crt", "tls.key"),
    "kubernetes.io/ssh-auth": ("ssh-privatekey",),
}
_JSON_NAMES = {list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def typed_data(body: Body) -> Iterator[FieldError]:
    """Yield the faults of the keys that a Secret's type requires. Values are never repeated."""
    kind, data = body["type"], body.get("data") or {}
    for key in _NEEDED_DATA.get(kind, ()):
        if key not in data:
            yield required(f"data[{key}]")
        elif key.startswith(".docker") and (why := _no_json_object(data[key])):
            yield wrong(f"data[{key}]", '"<secret contents redacted>"', why)
    if kind == "kubernetes.io/basic-auth" and not data.keys() & {"username", "password"}:
        yield required("data[username]")
        yield required("data[password]")


def _no_json_object(encoded: str) -> str:
    """Return the message of Go's decoder for a value that is no JSON object; empty if it is one."""
    text = b64decode(encoded).decode(errors="replace").strip()
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text):
            return "unexpected end of JSON input"
        where = "after top-level value" if error.msg == "Extra data" else "looking for beginning of value"
        return f"invalid character {text[error.pos]!r} {where}"
    if isinstance(value, dict) or value is None:
        return ""
    return f"json: cannot unmarshal {_JSON_NAMES[type(value)]} into Go value of type map[string]interface {{}}"
