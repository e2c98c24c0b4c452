"""Get, list and watch, and the three forms of an answer: whole objects, metadata only, and tables."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

from reconciler.sim.api.http import Answer, Request, Target, listed
from reconciler.sim.api.tables import table
from reconciler.sim.api.watches import Watch
from reconciler.sim.objects.kinds import Resource
from reconciler.sim.objects.selectors import fields_match, labels_match
from reconciler.sim.objects.status import Body, bad_request, expired, not_found
from reconciler.sim.state.state import State


def get(state: State, resource: Resource, target: Target, request: Request) -> Answer:
    """One object."""
    body = state.store.get(resource.group_plural, target.namespace, target.name)
    if body is None:
        raise not_found(resource.plural, resource.group, target.name)
    return shown(state, resource, resource.converted(body), request)


def shown(state: State, resource: Resource, body: Body, request: Request, status: int = 200) -> Answer:
    """An object in the form that the client accepts. A Status (of a deletion) is always whole."""
    form = _form(request)
    if body.get("kind") == "Status" or not form:
        return Answer(status=status, body=body)
    if form == "Table":
        version = {"resourceVersion": body["metadata"].get("resourceVersion", "")}
        rendered = table(state, resource, [body], version, include=request.query.get("includeObject", "Metadata"))
        return Answer(status=status, body=rendered)
    return Answer(status=status, body=metadata_only(body))


def _form(request: Request) -> str:
    """`Table`, `PartialObjectMetadata` or nothing; the first acceptable type counts."""
    for choice in request.accept.split(","):
        parameters = dict(p.strip().partition("=")[::2] for p in choice.split(";")[1:])
        form = parameters.get("as", "").removesuffix("List")
        if form in ("Table", "PartialObjectMetadata"):
            return form
        if choice.strip().startswith(("application/json", "*/*")):
            return ""
    return ""


def metadata_only(body: Body) -> Body:
    """PartialObjectMetadata."""
    return {"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": body["metadata"]}


def matcher(resource: Resource, target: Target, request: Request) -> Callable[[Body], bool]:
    """The selection of a list, watch or deletecollection."""
    by_labels = labels_match(request.query.get("labelSelector", ""))
    by_fields = fields_match(request.query.get("fieldSelector", ""), resource.kind)

    def matches(body: Body) -> bool:
        metadata = body["metadata"]
        if target.namespace and metadata.get("namespace") != target.namespace:
            return False
        if target.name and metadata["name"] != target.name:
            return False
        return by_labels(metadata.get("labels") or {}) and by_fields(body)

    return matches


def list_(state: State, resource: Resource, target: Target, request: Request) -> Answer:
    """A list, whole or page by page. A continue token is good until the change log is compacted past it."""
    matches = matcher(resource, target, request)
    stored = state.store.sorted(resource.group_plural, target.namespace)
    bodies = [resource.converted(body) for body in stored if matches(body)]
    metadata: Body = {"resourceVersion": str(state.store.version)}
    token = request.query.get("continue")
    if token:
        version, after = _token(token)
        if version < state.store.oldest:
            raise expired("The provided continue parameter is too old to display a consistent list result.")
        metadata["resourceVersion"] = str(version)
        bodies = [body for body in bodies if _key(body) > after]
    limit = int(request.query.get("limit") or 0)
    if 0 < limit < len(bodies):
        metadata["continue"] = _make_token(int(metadata["resourceVersion"]), _key(bodies[limit - 1]))
        if not request.query.get("labelSelector") and not request.query.get("fieldSelector"):
            metadata["remainingItemCount"] = len(bodies) - limit
        bodies = bodies[:limit]
    form = _form(request)
    if form == "Table":
        include = request.query.get("includeObject", "Metadata")
        return Answer(body=table(state, resource, bodies, metadata, include=include))
    if form:
        items = [metadata_only(body) for body in bodies]
        return Answer(body=listed("PartialObjectMetadata", "meta.k8s.io/v1", items, metadata))
    if not resource.is_custom:
        bodies = [{name: value for name, value in b.items() if name not in ("kind", "apiVersion")} for b in bodies]
    return Answer(body=listed(resource.kind, resource.api_version, bodies, metadata))


def _key(body: Body) -> list[str]:
    return [body["metadata"].get("namespace", ""), body["metadata"]["name"]]


def _make_token(version: int, after: list[str]) -> str:
    return base64.urlsafe_b64encode(json.dumps({"rv": version, "after": after}).encode()).decode()


def _token(text: str) -> tuple[int, list[str]]:
    try:
        token = json.loads(base64.urlsafe_b64decode(text))
        return int(token["rv"]), list(token["after"])
    except (ValueError, KeyError, TypeError):
        raise bad_request("invalid continue token: continue key is not valid") from None


def watch(state: State, resource: Resource, target: Target, request: Request) -> Answer:
    """Return a watch from a version; without one (or from 0) it begins with the present objects."""
    matches = matcher(resource, target, request)
    form = _form(request)
    include = request.query.get("includeObject", "Metadata")

    def render(body: Body) -> Body:
        if form == "Table":
            version = {"resourceVersion": body["metadata"]["resourceVersion"]}
            return table(state, resource, [body], version, include=include)
        return metadata_only(body) if form else resource.converted(body)

    since = request.query.get("resourceVersion") or "0"
    if not since.isdigit():
        raise bad_request(f"resourceVersion: Invalid value: {since!r}: strconv.ParseUint: invalid syntax")
    sends_initial = request.flag("sendInitialEvents")
    version = int(since)
    begins_empty = version != 0 and not sends_initial
    stream = Watch(
        state.store,
        resource,
        matches,
        render,
        version=version if begins_empty else state.store.version,
        timeout_s=float(request.query.get("timeoutSeconds") or 1800),
    )
    stream.has_bookmarks = request.flag("allowWatchBookmarks")
    if not begins_empty:
        bodies = [body for body in state.store.sorted(resource.group_plural, target.namespace) if matches(body)]
        stream.begin_with(bodies, marks_end=sends_initial)
    return Answer(watch=stream)
