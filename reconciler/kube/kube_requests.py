"""The repr of values that hold secrets.

The request shapes that we send to an API server, as pure values. Nothing else is ever sent.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from urllib.parse import quote, urlencode

import orjson
from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.content import Json, JsonObject
from reconciler.api.refs import GVK


def shown_without(value: Struct, hidden: Collection[str]) -> str:
    """Return the value as `repr` gives it, without the hidden fields."""
    fields = (name for name in value.__struct_fields__ if name not in hidden)
    return f"{type(value).__name__}({', '.join(f'{name}={getattr(value, name)!r}' for name in fields)})"


JSON = "application/json"
APPLY_PATCH = "application/apply-patch+yaml"
"""JSON is YAML, so the bytes are orjson's."""
JSON_PATCH = "application/json-patch+json"
METADATA_LIST = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
AGGREGATED_DISCOVERY = ",".join(
    [f"application/json;g=apidiscovery.k8s.io;v={version};as=APIGroupDiscoveryList" for version in ("v2", "v2beta1")]
    + [JSON]
)

LIST_PAGE = 500
WRITE_DEADLINE_S = 30.0
READ_DEADLINE_S = 30.0
LIST_DEADLINE_S = 60.0
WATCH_SECONDS = 300

CREATE_VERSION = "1"
"""The resourceVersion that no stored object has: an apply that carries it creates, or answers 409."""


class Purpose(StrEnum):
    """The purpose of a request: it decides the words of a refusal and whether it may be sent twice."""

    READ = "read"
    CREATE = "create"
    APPLY = "apply"
    PATCH = "patch"
    DELETE = "delete"


class Request(Struct, frozen=True, kw_only=True):
    """One request. `path` is percent-encoded. `part`: what may fail by itself, such as a kind; empty: the cluster."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    content_type: str = ""
    accept: str = JSON
    purpose: Purpose = Purpose.READ
    kind: str = ""
    part: str = ""
    deadline_s: float = READ_DEADLINE_S
    if_none_match: str = ""
    is_anew: bool = False
    """Sent over a new connection, beside all others, also while the cluster is left alone: to see if it is back."""

    def __repr__(self) -> str:
        return shown_without(self, ("body",))

    @property
    def target(self) -> str:
        """Return path and query as in the request line."""
        return f"{self.path}?{_query_string(tuple(self.query.items()))}" if self.query else self.path

    @property
    def may_repeat(self) -> bool:
        """Return whether repeating changes nothing: a create or patch would answer 409 or 422 the second time."""
        return self.purpose in (Purpose.READ, Purpose.APPLY)


class ServedKind(Struct, frozen=True, kw_only=True):
    """One resource type. `is_preferred`: its version is the one that the API server prefers for the group."""

    gvk: GVK
    plural: str
    namespaced: bool
    verbs: frozenset[str] = frozenset()
    singular: str = ""
    short_names: tuple[str, ...] = ()
    is_preferred: bool = True

    @property
    def names(self) -> frozenset[str]:
        """Return its names for people, in lower case: plural, singular, kind, short names."""
        return frozenset({self.plural, self.singular, self.gvk.kind.lower(), *self.short_names}) - {""}

    def path(self, namespace: str = "", name: str = "") -> str:
        """Return the path of a collection or an object; the namespace of a cluster-scoped kind is left out."""
        parts = [api_root(self.gvk.api_version)]
        if namespace and self.namespaced:
            parts += ["namespaces", _quoted(namespace)]
        parts.append(_quoted(self.plural))
        if name:
            parts.append(_quoted(name))
        return "/".join(parts)


@lru_cache(maxsize=16384)
def _quoted(segment: str) -> str:
    return quote(segment, safe="")


@lru_cache(maxsize=1024)
def _query_string(parameters: tuple[tuple[str, str], ...]) -> str:
    """Return the encoded query, cached: thousands of writes share one, and encoding costs as much as a body."""
    return urlencode(parameters)


def api_root(group_version: str) -> str:
    """Return `/api/v1` or `/apis/apps/v1`."""
    return f"/apis/{group_version}" if "/" in group_version else f"/api/{group_version}"


def is_path_segment(name: str) -> bool:
    """Return whether a name can be one path segment. Source: Kubernetes, Object Names and IDs, Path Segment Names."""
    return bool(name) and name not in (".", "..") and "/" not in name and "%" not in name


def read(path: str, *, part: str = "", **query: str) -> Request:
    """Return a plain GET."""
    return Request(method="GET", path=path, part=part, query=query)


class Target(Struct, frozen=True, kw_only=True):
    """One object of a kind, whether it exists or not."""

    kind: ServedKind
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """Return the path of the object."""
        return self.kind.path(self.namespace, self.name)


def get(target: Target) -> Request:
    """Read one object."""
    return Request(method="GET", path=target.path, kind=target.kind.gvk.kind, part=target.kind.path())


def pod_log(target: Target, container: str, lines: int, bytes_max: int, *, is_previous: bool) -> Request:
    """Read the end of a container's log. Source: Kubernetes API reference, Pod, read log of the specified Pod."""
    query = {"container": container, "tailLines": str(lines), "limitBytes": str(bytes_max)}
    if is_previous:
        query["previous"] = "true"
    path = f"{target.path}/log"
    return Request(method="GET", path=path, query=query, accept="*/*", kind="Pod", part=target.kind.path())


class ListQuery(Struct, frozen=True, kw_only=True):
    """The subject of a list or watch; no namespace: all. `is_cached`: any version in memory (resourceVersion 0)."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""
    is_cached: bool = False

    def parameters(self) -> dict[str, str]:
        """Return the query parameters."""
        pairs = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {key: value for key, value in pairs.items() if value}


def list_page(kind: ServedKind, query: ListQuery, *, limit: int, token: str = "", accept: str = JSON) -> Request:
    """Return one page of a list; `limit` 0 asks for everything at once."""
    parameters = query.parameters()
    if limit:
        parameters["limit"] = str(limit)
    if token:
        parameters["continue"] = token
    elif query.is_cached:
        parameters["resourceVersion"] = "0"
    return Request(
        method="GET",
        path=kind.path(query.namespace),
        query=parameters,
        accept=accept,
        kind=kind.gvk.kind,
        part=kind.path(),
        deadline_s=LIST_DEADLINE_S,
    )


def watch(kind: ServedKind, query: ListQuery, *, resource_version: str, seconds: int) -> Request:
    """Return a watch that the API server ends after `seconds`, with bookmarks in between."""
    parameters = {**query.parameters(), "watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(seconds)}
    if resource_version:
        parameters["resourceVersion"] = resource_version
    return Request(
        method="GET", path=kind.path(query.namespace), query=parameters, kind=kind.gvk.kind, part=kind.path()
    )


def create(target: Target, body: JsonObject, *, manager: str) -> Request:
    """Return a server-side apply that creates, and never merges into an existing object."""
    parameters = {"fieldManager": manager}
    return _write(target, _with_metadata(body, "resourceVersion", CREATE_VERSION), parameters, Purpose.CREATE)


def apply(
    target: Target, body: JsonObject, *, manager: str, force: bool, uid: str, resource_version: str = "", dry_run: bool
) -> Request:
    """Return a server-side apply to the object of that uid and version; an empty one is not compared."""
    parameters = {"fieldManager": manager, "force": "true"} if force else {"fieldManager": manager}
    if uid:
        body = _with_metadata(body, "uid", uid)
    if resource_version:
        body = _with_metadata(body, "resourceVersion", resource_version)
    request = _write(target, body, parameters, Purpose.APPLY)
    return replace(request, query={**request.query, "dryRun": "All"}) if dry_run else request


def json_patch(target: Target, operations: Sequence[JsonObject], *, manager: str) -> Request:
    """Return an RFC 6902 patch; its preconditions are `test` operations at the beginning."""
    return _write(target, operations, {"fieldManager": manager} if manager else {}, Purpose.PATCH)


def delete(target: Target, *, uid: str) -> Request:
    """Delete the object of that uid."""
    options = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": uid},
        "propagationPolicy": "Background",
        "dryRun": [],
    }
    return Request(
        method="DELETE",
        path=target.path,
        body=orjson.dumps(options),
        content_type=JSON,
        purpose=Purpose.DELETE,
        kind=target.kind.gvk.kind,
        part=target.kind.path(),
        deadline_s=WRITE_DEADLINE_S,
    )


def access_review(verb: str, group: str, plural: str, *, name: str) -> Request:
    """Ask the API server whether we may do that. It stores nothing."""
    attributes = {"verb": verb, "group": group, "resource": plural, "namespace": "", "name": name}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    path = f"{api_root('authorization.k8s.io/v1')}/selfsubjectaccessreviews"
    return Request(method="POST", path=path, body=orjson.dumps(review), content_type=JSON)


def _with_metadata(body: JsonObject, key: str, value: str) -> JsonObject:
    return {**body, "metadata": {**body.get("metadata", {}), key: value}}


def _write(target: Target, body: Json, parameters: Mapping[str, str], purpose: Purpose) -> Request:
    return Request(
        method="PATCH",
        path=target.path,
        query={**parameters, "fieldValidation": "Strict"},
        body=orjson.dumps(body),
        content_type=JSON_PATCH if purpose is Purpose.PATCH else APPLY_PATCH,
        purpose=purpose,
        kind=target.kind.gvk.kind,
        part=target.kind.path(),
        deadline_s=WRITE_DEADLINE_S,
    )
