"""One member cluster: the requests of `kube_requests`, answered with values of the model.

Every method raises exceptions from `errors.py` only, and none returns an empty result for something that failed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconciler.adapters.fail_points import reach
from reconciler.adapters.kube import requests
from reconciler.adapters.kube.answers import (
    AccessReview,
    Listing,
    Page,
    Version,
    as_live_object,
    json_object,
    listing,
    live_object,
    page,
    reading,
    struct,
)
from reconciler.adapters.kube.discovery import Discovery, ServedKind
from reconciler.adapters.kube.discovery_cache import DiscoveryCache
from reconciler.adapters.kube.errors import clean
from reconciler.adapters.kube.requests import ListQuery, Request, Resource, Target
from reconciler.adapters.kube.shapes.pods import NodeList, NodeObject, Pod, PodList
from reconciler.adapters.kube.table import Table, table
from reconciler.adapters.kube.transport import Answer, Transport
from reconciler.adapters.kube.watch import Bookmark, LineCutter, WatchEvent, watch_event
from reconciler.errors import AnswerTooLarge, BadAnswer, InvalidObject, ListExpired, NotLeading
from reconciler.model.observation import LiveObject
from reconciler.model.refs import GVK
from reconciler.model.tree import JsonObject, dig


class HasToken(Protocol):
    """A page: its token leads to the next one and is empty on the last."""

    @property
    def token(self) -> str:
        """The continue token."""


PAGES_MAX = 4000
"""Two million objects: a list that goes on longer is no answer that we could use."""

_P = TypeVar("_P", bound=HasToken)
_S = TypeVar("_S", bound=Struct)
_NAMESPACE = GVK("", "v1", "Namespace")
_KUBE_SYSTEM = Target(
    resource=Resource(group_version="v1", plural="namespaces", kind="Namespace", namespaced=False),
    namespace="",
    name="kube-system",
)
_PODS = Resource(group_version="v1", plural="pods", kind="Pod", namespaced=True)
_NODES = Resource(group_version="v1", plural="nodes", kind="Node", namespaced=False)


def always() -> float:
    """For whoever may write at any time."""
    return float("inf")


class MemberCluster:
    """The API server of one member. Its methods may be called concurrently; the transport bounds them."""

    def __init__(
        self, transport: Transport, user_agent: Callable[[], str], writing_left_s: Callable[[], float] = always
    ) -> None:
        """Nothing is asked before the first call. `writing_left_s`: so long a write may take that begins now."""
        self.name = transport.name
        self._writing_left_s = writing_left_s
        self._transport = transport
        self._user_agent = user_agent
        self._discovery = DiscoveryCache(self.name, self._send)

    @property
    def answers(self) -> int:
        """How often anything but a watch was heard of the cluster. It counts on while it answers."""
        return self._transport.answers

    async def __aenter__(self) -> MemberCluster:
        """The cluster itself; connections belong to the pool."""
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Nothing of its own is left open."""

    async def version(self) -> str:
        """The API server's version, e.g. `v1.36.3`."""
        answer = await self._send(requests.read("/version"))
        return self._read(answer, Version, "version").git_version

    async def identity(self, *, is_anew: bool = False) -> str:
        """The uid of kube-system, which tells clusters apart.

        `is_anew`: over a new connection, also while the cluster is left alone, to see if one that was away is back.
        What is asked from then on is asked over new connections too.
        """
        request = replace(requests.get(_KUBE_SYSTEM), is_anew=is_anew)
        uid = self._object(await self._send(request), _NAMESPACE, _KUBE_SYSTEM).uid
        if not uid:
            raise BadAnswer(self.name, "namespace kube-system has no uid")
        return uid

    async def current_version(self, gvk: GVK, *, namespace: str = "", name: str = "") -> str:
        """The version of an object, or of the kind as a whole, read through to etcd over a new connection.

        Raises:
            KindNotServed, ObjectNotFound: there is nothing that has one.
        """
        served = await self._served(gvk)
        if name:
            found = replace(requests.get(self._named(served, namespace, name)), is_anew=True)
            return self._object(await self._send(found), gvk, self._named(served, namespace, name)).resource_version
        nothing = ListQuery(field_selector="metadata.name=-")
        asked = requests.list_page(served.resource, nothing, limit=1, accept=requests.METADATA_LIST)
        answer = await self._send(replace(asked, is_anew=True))
        with reading(self.name, f"list of {gvk.kind}"):
            return listing(self.name, [page(self.name, answer.body, "meta.k8s.io/v1", gvk.kind)], gvk).resource_version

    async def discover(self, *, refresh: bool = False) -> Discovery:
        """What is served. Remembered until `refresh`, which costs two conditional requests when nothing changed."""
        return await self._discovery.discover(refresh=refresh)

    async def openapi(self, group_version: str) -> JsonObject:
        """The OpenAPI v3 document of a group version (`v1`, `apps/v1`); KindNotServed when there is none."""
        answer = await self._send(requests.read(f"/openapi/v3{requests.api_root(group_version)}"))
        with reading(self.name, "OpenAPI document"):
            document = json_object(self.name, answer.body, "OpenAPI document")
        if not isinstance(dig(document, "components", "schemas"), dict):
            raise BadAnswer(self.name, f"the OpenAPI document of {group_version} has no components.schemas")
        return document

    async def list_objects(
        self, gvk: GVK, *, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> Listing:
        """All objects of the kind that match, whole."""
        query = ListQuery(namespace=namespace, label_selector=label_selector, field_selector=field_selector)
        return await self._list(gvk, query, accept=requests.JSON, api_version=gvk.api_version)

    async def list_metadata(
        self,
        gvk: GVK,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        is_cached: bool = False,
    ) -> Listing:
        """All objects of the kind that match, with nothing but their metadata in the body.

        `is_cached`: the API server may answer with what it has in memory, which costs it least and may be of a moment
        ago, so that nothing is absent or unchanged by it for sure.
        """
        query = ListQuery(
            namespace=namespace, label_selector=label_selector, field_selector=field_selector, is_cached=is_cached
        )
        return await self._list(gvk, query, accept=requests.METADATA_LIST, api_version="meta.k8s.io/v1")

    async def get(self, gvk: GVK, namespace: str, name: str) -> LiveObject:
        """The object. ObjectNotFound is a proven absence; KindNotServed is not about the object."""
        target = await self._target(gvk, namespace, name)
        return self._object(await self._send(requests.get(target)), gvk, target)

    async def create(
        self, gvk: GVK, namespace: str, name: str, body: JsonObject, *, manager: str, dry_run: bool = False
    ) -> LiveObject:
        """The object that server-side apply made; AlreadyExists when anything of that name is there."""
        target = await self._target(gvk, namespace, name)
        request = requests.create(target, body, manager=manager, dry_run=dry_run)
        return self._object(await self._send(request), gvk, target)

    async def apply(  # noqa: PLR0913 - the parts of one request, by name
        self,
        gvk: GVK,
        namespace: str,
        name: str,
        body: JsonObject,
        *,
        manager: str,
        force: bool,
        uid: str = "",
        resource_version: str = "",
        dry_run: bool = False,
    ) -> LiveObject:
        """The object after a server-side apply.

        With a uid, WriteConflict when that object is gone or another one; with a resourceVersion, when it has changed.
        """
        target = await self._target(gvk, namespace, name)
        request = requests.apply(
            target, body, manager=manager, force=force, uid=uid, resource_version=resource_version, dry_run=dry_run
        )
        return self._object(await self._send(request), gvk, target)

    async def json_patch(
        self,
        gvk: GVK,
        namespace: str,
        name: str,
        operations: Sequence[JsonObject],
        *,
        manager: str = "",
        dry_run: bool = False,
    ) -> LiveObject:
        """The object after an RFC 6902 patch; WriteConflict when a `test` fails or a path is missing."""
        target = await self._target(gvk, namespace, name)
        request = requests.json_patch(target, operations, manager=manager, dry_run=dry_run)
        return self._object(await self._send(request), gvk, target)

    async def delete(
        self,
        gvk: GVK,
        namespace: str,
        name: str,
        *,
        uid: str,
        resource_version: str = "",
        propagation: str = "Background",
        dry_run: bool = False,
    ) -> LiveObject | None:
        """What is left of the object while finalizers run, None when it is gone.

        WriteConflict when the uid or the resourceVersion is another one; ObjectNotFound when there is none.
        """
        assert uid, f"deleting {gvk.kind} {namespace}/{name} needs the uid of the object that is meant"
        target = await self._target(gvk, namespace, name)
        request = requests.delete(
            target, uid=uid, resource_version=resource_version, propagation=propagation, dry_run=dry_run
        )
        sent = await self._send(request)
        with reading(self.name, gvk.kind):
            answer = json_object(self.name, sent.body, gvk.kind)
            return None if answer.get("kind") == "Status" else as_live_object(self.name, answer, gvk)

    async def watch(
        self,
        gvk: GVK,
        *,
        namespace: str = "",
        label_selector: str = "",
        resource_version: str = "",
        metadata_only: bool = False,
    ) -> AsyncGenerator[WatchEvent | Bookmark, None]:
        """Changes after `resource_version` until the API server ends the watch (some minutes).

        Without a resourceVersion the existing objects come first as ADDED. ListExpired: list again. Use it inside
        `contextlib.aclosing`, so that leaving it early ends the request.
        """
        served = await self._served(gvk)
        request = requests.watch(
            served.resource,
            ListQuery(namespace=namespace, label_selector=label_selector),
            resource_version=resource_version,
            metadata_only=metadata_only,
            seconds=requests.WATCH_SECONDS,
        )
        cutter = LineCutter(self.name)
        async with self._transport.stream(request, self._user_agent()) as stream:
            async for chunk in stream.iter_any():
                for line in cutter.feed(chunk):
                    with reading(self.name, "watch event"):
                        event = watch_event(self.name, line, gvk, request)
                    yield event

    async def table(self, kind: ServedKind, *, namespace: str = "", name: str = "", label_selector: str = "") -> Table:
        """What `kubectl get` prints of the kind; one object when a name is given, else ObjectNotFound."""
        if name:
            path = self._named(kind, namespace, name).path
            answer = await self._send(Request(method="GET", path=path, accept=requests.TABLE))
            with reading(self.name, "Table"):
                return table(self.name, answer.body)
        query = ListQuery(namespace=namespace, label_selector=label_selector)
        pages = await self._pages(kind.resource, query, partial(table, self.name), accept=requests.TABLE)
        return replace(pages[-1], rows=tuple(row for page_ in pages for row in page_.rows))

    async def may(self, verb: str, gvk: GVK, namespace: str = "") -> bool:
        """Whether our credentials allow the verb on the kind, in all namespaces when none is named."""
        served = await self._served(gvk)
        return await self.allows(verb, gvk.group, served.plural, namespace=namespace)

    async def allows(self, verb: str, group: str, plural: str, *, namespace: str = "", name: str = "") -> bool:
        """Whether our credentials allow the verb on a resource type, whether it is served or not.

        Without a namespace: in all of them. Without a name: for every object.
        """
        answer = await self._send(requests.access_review(verb, group, plural, namespace=namespace, name=name))
        return self._read(answer, AccessReview, "SelfSubjectAccessReview").status.allowed

    async def nodes(self) -> tuple[NodeObject, ...]:
        """All nodes, with what capacity needs."""
        pages = await self._pages(_NODES, ListQuery(), lambda body: struct(self.name, body, NodeList, "list of Nodes"))
        return tuple(node for page_ in pages for node in page_.items)

    async def pods(self, *, namespace: str = "", label_selector: str = "") -> tuple[Pod, ...]:
        """All pods that match, with what capacity and scheduling need."""
        query = ListQuery(namespace=namespace, label_selector=label_selector)
        pages = await self._pages(_PODS, query, lambda body: struct(self.name, body, PodList, "list of Pods"))
        return tuple(pod for page_ in pages for pod in page_.items)

    async def _list(self, gvk: GVK, query: ListQuery, *, accept: str, api_version: str) -> Listing:
        served = await self._served(gvk)
        trees = self._transport.trees

        def parse(body: bytes) -> Page:
            return page(self.name, body, api_version, gvk.kind, trees)

        with trees.reading():
            pages = await self._pages(served.resource, query, parse, accept=accept)
        with reading(self.name, f"list of {gvk.kind}"):
            return listing(self.name, pages, gvk)

    async def _pages(
        self, resource: Resource, query: ListQuery, parse: Callable[[bytes], _P], *, accept: str = requests.JSON
    ) -> list[_P]:
        """Every page of one list, as of one resourceVersion.

        Where the token runs out on the way, the list begins anew and is asked for in one piece, which cannot expire.
        A page that is too large to be read is asked for again in smaller ones, which an API server that answers from
        memory may not make.
        """
        pages: list[_P] = []
        token, limit = "", requests.LIST_PAGE
        with self._transport.lists.share() as take:
            while len(pages) < PAGES_MAX:
                request = requests.list_page(resource, query, limit=limit, token=token, accept=accept)
                try:
                    answer = await self._send(request)
                except AnswerTooLarge:
                    if limit == 1:
                        raise
                    limit, query = max(1, limit // 10), replace(query, is_cached=False)
                    continue
                except ListExpired:
                    if not token:
                        raise
                    answer = await self._send(requests.list_page(resource, query, limit=0, accept=accept))
                    pages.clear()
                take(len(answer.body))
                with reading(self.name, f"list of {resource.plural}"):
                    pages.append(parse(answer.body))
                token = pages[-1].token
                if not token:
                    return pages
        raise BadAnswer(self.name, f"the list of {resource.plural} has more than {PAGES_MAX} pages")

    async def _send(self, request: Request) -> Answer:
        if request.purpose is requests.Purpose.READ:
            return await self._transport.send(request, self._user_agent())
        reach(f"before a write to a member: {request.purpose} {request.kind}")
        left_s = self._writing_left_s()
        if left_s <= 0:
            raise NotLeading(self.name, "this process does not lead now; whoever does makes the change")
        if left_s < request.deadline_s:
            request = replace(request, deadline_s=left_s)
        answer = await self._transport.send(request, self._user_agent())
        reach(f"after a write to a member: {request.purpose} {request.kind}")
        return answer

    def _object(self, answer: Answer, gvk: GVK, target: Target) -> LiveObject:
        """The object that was asked for, and no other one."""
        with reading(self.name, gvk.kind):
            found = live_object(self.name, answer.body, gvk)
        if (found.identity.name, found.identity.namespace) != (target.name, target.namespace):
            raise BadAnswer(self.name, clean(f"it was asked for {gvk.kind} {target.name}, and sent {found.identity}"))
        return found

    def _read(self, answer: Answer, shape: type[_S], what: str) -> _S:
        with reading(self.name, what):
            return struct(self.name, answer.body, shape, what)

    async def _served(self, gvk: GVK) -> ServedKind:
        return await self._discovery.served(gvk)

    async def _target(self, gvk: GVK, namespace: str, name: str) -> Target:
        return self._named(await self._served(gvk), namespace, name)

    def _named(self, kind: ServedKind, namespace: str, name: str) -> Target:
        """The target, whose namespace and name come from files of strangers and end up in a path."""
        is_named = requests.is_path_segment(name) and (not kind.namespaced or requests.is_path_segment(namespace))
        if not is_named:
            wants = "a namespace and a name" if kind.namespaced else "a name"
            raise InvalidObject(self.name, f"{kind.gvk.kind} needs {wants} that fit into a path: {namespace}/{name}")
        return Target(resource=kind.resource, namespace=namespace if kind.namespaced else "", name=name)
