"""Bodies of successful answers, decoded and checked. Any unexpected content raises BadAnswer.

Deletions could follow from an empty list, so HTML, another kind, a truncated body or a list without `items` must never
look like one. Source of tables: Kubernetes, "Kubernetes API Concepts, Receiving resources as Tables".
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Annotated, Any, TypeVar

import msgspec
import orjson
from msgspec import Struct, field

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject
from reconciler.api.refs import GVK, Identity
from reconciler.decoding import prepared
from reconciler.errors import BadAnswer, MalformedObject, MemberClusterError
from reconciler.kube.connection.bounds import SharedTrees
from reconciler.kube.discovery import ListMetadata, NamedObject, object_metadata
from reconciler.kube.kube_requests import shown_without
from reconciler.kube.refusal_errors import clean, of_another

_S = TypeVar("_S", bound=Struct)

METADATA_API = "meta.k8s.io/v1"

log = logging.getLogger("reconciler")


class Listing(Struct, frozen=True, kw_only=True):
    """A list as of `resource_version`."""

    objects: tuple[LiveObject, ...] = ()
    resource_version: str = ""
    unread: Mapping[Identity, str] = field(default_factory=dict)
    """Objects of the list that break the API's promises, with their faults."""


class Page(Struct, frozen=True, kw_only=True):
    """One page of a list: raw items, and the token of the next page, empty on the last one."""

    items: Sequence[Any]
    resource_version: str
    token: str

    def __repr__(self) -> str:
        return shown_without(self, ("items",))


@prepared
class Version(Struct, frozen=True, rename="camel"):
    """The answer of /version."""

    git_version: Annotated[str, msgspec.Meta(min_length=1)]


class ReviewStatus(Struct, frozen=True):
    """The answer of an access review."""

    allowed: bool


@prepared
class AccessReview(Struct, frozen=True):
    """A SelfSubjectAccessReview that was answered."""

    status: ReviewStatus


def json_object(cluster: str, body: bytes, what: str) -> Mapping[str, Any]:
    """Return the body as a JSON object."""
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad(cluster, what, body) from error
    if not isinstance(answer, dict):
        raise bad(cluster, what, body)
    return answer


def live_object(cluster: str, body: bytes, gvk: GVK) -> LiveObject:
    """Return the one object of the body, which must be of that group and kind."""
    answer = json_object(cluster, body, gvk.kind)
    if (answer.get("apiVersion"), answer.get("kind")) != (gvk.api_version, gvk.kind):
        raise bad(cluster, f"{gvk.kind} ({gvk.api_version})", body)
    return as_live_object(cluster, answer, gvk)


def as_live_object(cluster: str, item: Any, gvk: GVK) -> LiveObject:
    """Return a parsed item as an object of the kind; items of built-in lists lack it."""
    identity = identity_of(cluster, item, gvk)
    kind = item.get("kind", gvk.kind)
    if kind not in (gvk.kind, "PartialObjectMetadata"):
        raise BadAnswer(cluster, f"an object is {clean(str(kind))!r} instead of {gvk.kind}")
    try:
        metadata = object_metadata(item["metadata"])
        orjson.dumps(item)
    except msgspec.ValidationError as error:
        text = f"the metadata of {identity} are not what the API promises: {error}"
        raise MalformedObject(cluster, clean(text)) from error
    except orjson.JSONEncodeError as error:
        # Whatever walks through it one level after the other would come to the end of its stack.
        raise MalformedObject(cluster, clean(f"{identity} is nested too deeply")) from error
    if "kind" not in item or kind != gvk.kind:
        item = {**item, "apiVersion": gvk.api_version, "kind": gvk.kind}
    return LiveObject(
        gvk=gvk, identity=identity, uid=metadata.uid, resource_version=metadata.resource_version, body=item
    )


def identity_of(cluster: str, item: Any, gvk: GVK) -> Identity:
    """Return the identity of an item. One without identity invalidates the whole answer."""
    metadata = item.get("metadata") if isinstance(item, dict) else None
    try:
        named = msgspec.convert(metadata, NamedObject)
    except msgspec.ValidationError as error:
        raise BadAnswer(cluster, f"an object of kind {gvk.kind} has no metadata.name") from error
    return Identity(gvk.group, gvk.kind, named.namespace, named.name)


def listing(cluster: str, pages: Sequence[Page], gvk: GVK) -> Listing:
    """Return the objects of all pages of a list. One that breaks the API's promises is unread; the others remain."""
    objects: list[LiveObject] = []
    unread: dict[Identity, str] = {}
    for item in chain.from_iterable(page_.items for page_ in pages):
        try:
            objects.append(as_live_object(cluster, item, gvk))
        except MalformedObject as error:
            unread[identity_of(cluster, item, gvk)] = error.message
    return Listing(objects=tuple(objects), resource_version=pages[0].resource_version, unread=unread)


def page(cluster: str, body: bytes, api_version: str, kind: str, trees: SharedTrees | None = None) -> Page:
    """Return one page of a list. `kind`: for messages. `trees`: shares equal parts of the objects."""
    what = f"list of {kind} ({api_version})"
    shared = trees.list_answer(body) if trees is not None else None
    answer = json_object(cluster, body, what) if shared is None else shared
    items = answer.get("items", "missing")
    if items is None and api_version == METADATA_API:
        # How API servers write an empty list of metadata (seen on 1.36); whole objects come as an empty list.
        items = []
    is_list = str(answer.get("kind", "")).endswith("List") and answer.get("apiVersion") == api_version
    if not is_list or not isinstance(items, list):
        raise bad(cluster, what, body)
    metadata = list_metadata(cluster, answer, what)
    if metadata.remaining and not metadata.token:
        raise BadAnswer(cluster, f"the {what} ends although {metadata.remaining} items remain")
    return Page(items=items, resource_version=metadata.resource_version, token=metadata.token or "")


def list_metadata(cluster: str, answer: Mapping[str, Any], what: str) -> ListMetadata:
    """Return the metadata of a list."""
    try:
        return msgspec.convert(answer.get("metadata"), ListMetadata)
    except msgspec.ValidationError as error:
        text = f"the metadata of the {what} are not what the API promises: {clean(str(error))}"
        raise BadAnswer(cluster, text) from error


def struct(cluster: str, body: bytes, shape: type[_S], what: str) -> _S:
    """Return the body as a msgspec struct, which checks the types of all fields that we use."""
    try:
        return msgspec.json.decode(body, type=shape)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BadAnswer(cluster, f"the answer is no {what}: {clean(str(error))}{of_another(body)}") from error


def bad(cluster: str, what: str, body: bytes) -> BadAnswer:
    """Return the error for a body that is no `what`. Shows its beginning only when that cannot be data of an object."""
    start = body[:40].decode(errors="replace")
    beginning = f", it begins with {clean(start)!r}" if start.lstrip()[:1] == "<" else ""
    return BadAnswer(cluster, f"the answer is no {what}{beginning} ({len(body)} bytes){of_another(body)}")


@contextmanager
def reading_answer(cluster: str, what: str) -> Iterator[None]:
    """Turn any fault while an answer is read into an error of that cluster, unexpected ones into a logged BadAnswer."""
    try:
        yield
    except MemberClusterError:
        raise
    except Exception as error:
        log.exception("an answer could not be read", extra={"event": "InternalError", "cluster": cluster, "obj": what})
        text = f"internal-error: the answer ({what}) could not be read: {type(error).__name__}"
        raise BadAnswer(cluster, text) from error


class Column(Struct, frozen=True, kw_only=True):
    """A column; those of priority above 0 are shown with `-o wide` only."""

    name: str = ""
    type: str = "string"
    format: str = ""
    priority: int = 0


class PrintedRow(Struct, frozen=True, kw_only=True):
    """The cells of an object in the order of the columns, and its metadata."""

    cells: tuple[Any, ...]
    metadata: JsonObject = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Return metadata.name."""
        return str(self.metadata.get("name", ""))

    @property
    def namespace(self) -> str:
        """Return metadata.namespace, empty for a cluster-scoped object."""
        return str(self.metadata.get("namespace", ""))


class PrintedTable(Struct, frozen=True, kw_only=True):
    """A printed list."""

    columns: tuple[Column, ...] = ()
    rows: tuple[PrintedRow, ...] = ()
    token: str = ""
    """Of the next page, empty on the last one."""


class _Partial(Struct, frozen=True):
    """The object of a row, metadata alone."""

    metadata: dict[str, Any] | None = None


class _Row(Struct, frozen=True):
    """A row as it is answered."""

    cells: list[Any]
    object: _Partial | None = None


class _Answer(Struct, frozen=True, rename="camel", tag_field="kind", tag="Table"):
    """A Table as it is answered."""

    column_definitions: tuple[Column, ...]
    rows: list[_Row] | None
    metadata: ListMetadata | None = None


def table(cluster: str, body: bytes) -> PrintedTable:
    """Return the table, or one page of it."""
    answer = struct(cluster, body, _Answer, "Table")
    columns = answer.column_definitions
    if any(len(row.cells) != len(columns) for row in answer.rows or ()):
        raise BadAnswer(cluster, f"a row of the Table has not {len(columns)} cells")
    metadata = answer.metadata or ListMetadata()
    return PrintedTable(
        columns=columns,
        rows=tuple(
            PrintedRow(cells=tuple(row.cells), metadata=(row.object.metadata if row.object is not None else None) or {})
            for row in answer.rows or ()
        ),
        token=metadata.token or "",
    )
