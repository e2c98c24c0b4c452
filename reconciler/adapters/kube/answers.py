"""Bodies of successful answers, decoded and checked. What is not exactly what was asked for raises BadAnswer.

An empty list is a strong statement, from which deletions could follow; so HTML, another kind, a truncated body or a
list without `items` must never look like one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec
import orjson

from reconciler.adapters.kube.errors import clean
from reconciler.errors import BadAnswer
from reconciler.model.observation import LiveObject
from reconciler.model.refs import GVK, Identity

_S = TypeVar("_S", bound=msgspec.Struct)

METADATA_API = "meta.k8s.io/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A list, in the API server's order, as of `resource_version`.

    `is_complete` is False when the list was longer than we were ready to read: absence then proves nothing.
    """

    objects: tuple[LiveObject, ...] = ()
    resource_version: str = ""
    is_complete: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page of a list: raw items, and the token of the next page, empty on the last one."""

    items: Sequence[Mapping[str, Any]] = field(repr=False)
    resource_version: str
    token: str


def json_object(cluster: str, body: bytes, what: str) -> Mapping[str, Any]:
    """The body as a JSON object."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad(cluster, what, body) from error
    if not isinstance(answer, Mapping):
        raise bad(cluster, what, body)
    return answer


def live_object(cluster: str, body: bytes, gvk: GVK) -> LiveObject:
    """The one object of the body, which must be of that group and kind."""
    answer = json_object(cluster, body, gvk.kind)
    if (answer.get("apiVersion"), answer.get("kind")) != (gvk.api_version, gvk.kind):
        raise bad(cluster, f"{gvk.kind} ({gvk.api_version})", body)
    return as_live_object(cluster, answer, gvk)


def as_live_object(cluster: str, item: Mapping[str, Any], gvk: GVK) -> LiveObject:
    """A parsed item as an object of the kind; items of built-in lists do not say their kind themselves."""
    metadata = item.get("metadata")
    if not isinstance(metadata, Mapping) or not metadata.get("name"):
        raise BadAnswer(cluster, f"an object of kind {gvk.kind} has no metadata.name")
    identity = Identity(gvk.group, gvk.kind, metadata.get("namespace", ""), metadata["name"])
    kind = item.get("kind", gvk.kind)
    if kind not in (gvk.kind, "PartialObjectMetadata"):
        raise BadAnswer(cluster, f"an object is {clean(str(kind))!r} instead of {gvk.kind}")
    if "kind" not in item or kind != gvk.kind:
        item = {**item, "apiVersion": gvk.api_version, "kind": gvk.kind}
    return LiveObject(
        gvk=gvk,
        identity=identity,
        uid=metadata.get("uid", ""),
        resource_version=metadata.get("resourceVersion", ""),
        body=item,
    )


def page(cluster: str, body: bytes, api_version: str, kind: str) -> Page:
    """One page of a list of that apiVersion. `kind` is for the message: a CRD may name its list kind as it likes."""
    what = f"list of {kind} ({api_version})"
    answer = json_object(cluster, body, what)
    metadata, items = answer.get("metadata"), answer.get("items", "missing")
    if items is None and api_version == METADATA_API:
        # How API servers write an empty list of metadata (seen on 1.36); whole objects come as an empty list.
        items = []
    is_list = str(answer.get("kind", "")).endswith("List") and answer.get("apiVersion") == api_version
    if not is_list or not isinstance(metadata, Mapping) or not isinstance(items, list):
        raise bad(cluster, what, body)
    token, remaining = metadata.get("continue", ""), metadata.get("remainingItemCount", 0)
    if remaining and not token:
        raise BadAnswer(cluster, f"the {what} ends although {remaining} items remain")
    return Page(items=items, resource_version=metadata.get("resourceVersion", ""), token=token)


def struct(cluster: str, body: bytes, shape: type[_S], what: str) -> _S:
    """The body as a msgspec struct, which checks the types of all fields that we use."""
    try:
        return msgspec.json.decode(body, type=shape)
    except msgspec.MsgspecError as error:
        raise BadAnswer(cluster, f"the answer is no {what}: {clean(str(error))}") from error


def bad(cluster: str, what: str, body: bytes) -> BadAnswer:
    """The error for a body that is no `what`. Shows its beginning only when that cannot be data of an object."""
    start = body[:40].decode(errors="replace")
    shown = f", it begins with {clean(start)!r}" if start.lstrip()[:1] == "<" else ""
    return BadAnswer(cluster, f"the answer is no {what}{shown} ({len(body)} bytes)")
