"""One member cluster: the requests of `kube_requests`, answered with values of the model.

Every method raises exceptions from `errors.py` only, and none returns an empty result for something that failed.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject
from reconciler.api.content import JsonObject, dig
from reconciler.api.refs import GVK
from reconciler.errors import (
    AnswerTooLarge,
    BadAnswer,
    InvalidObject,
    ListExpired,
    MemberClusterError,
    NotLeading,
    ObjectNotFound,
)
from reconciler.fail_points import reach
from reconciler.kube import kube_requests as requests
from reconciler.kube.answers import (
    AccessReview,
    Listing,
    Page,
    PrintedTable,
    Version,
    as_live_object,
    json_object,
    listing,
    live_object,
    page,
    reading_answer,
    struct,
    table,
)
from reconciler.kube.discovery import Discovery
from reconciler.kube.kube_requests import ListQuery, Request, ServedKind, Target
from reconciler.kube.pod_shapes import NodeList, NodeObject, Pod, PodList
from reconciler.kube.refusal_errors import clean
from reconciler.kube.served_kinds import Kinds
from reconciler.kube.transport import Answer, Transport
from reconciler.kube.watch_stream import Bookmark, WatchEvent, lines_of, watch_event

PRESENCE_DEADLINE_S = 5.0
"""Time limit for a cluster to prove that it answers, after a failed request about one of its kinds."""

_T = TypeVar("_T")
_S = TypeVar("_S", bound=Struct)
_P = TypeVar("_P", Page, PrintedTable, PodList, NodeList)
PAGES_MAX: Final = 4000
"""Two million objects: a longer list is unusable."""
_NAMESPACE = GVK("", "v1", "Namespace")
_KUBE_SYSTEM = Target(
    kind=ServedKind(gvk=_NAMESPACE, plural="namespaces", namespaced=False), namespace="", name="kube-system"
)
_ITSELF = replace(requests.get(_KUBE_SYSTEM), part="")
"""A request about the cluster as such: it needs etcd and our credentials, and no foreign API server."""
_POD = ServedKind(gvk=GVK("", "v1", "Pod"), plural="pods", namespaced=True)
_NODE = ServedKind(gvk=GVK("", "v1", "Node"), plural="nodes", namespaced=False)


def always() -> float:
    """Return no limit, for writers without one."""
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
        self._kinds = Kinds(self.name, self._send, self._presence)

    @property
    def answers(self) -> int:
        """Return the number of answers of the cluster, except to watches. It grows while the cluster answers."""
        return self._transport.answers

    async def log_in(self) -> None:
        """Wait for an exec plugin, however long it takes within its deadline."""
        await self._transport.credentials.log_in()

    async def version(self) -> str:
        """Return the API server's version, e.g. `v1.36.3`."""
        return self._read(await self._send(requests.read("/version")), Version, "version").git_version

    async def identity(self, *, is_anew: bool = False) -> str:
        """Return the uid of kube-system, the cluster's identity. `is_anew`: over a new connection, past the breaker."""
        request = replace(_ITSELF, is_anew=is_anew)
        uid = self._object(await self._send(request), _NAMESPACE, _KUBE_SYSTEM).uid
        if not uid:
            raise BadAnswer(self.name, "namespace kube-system has no uid")
        return uid

    async def current_version(self, gvk: GVK, *, namespace: str = "", name: str = "") -> str:
        """Return the version of an object or kind, read through to etcd. Raises KindNotServed, ObjectNotFound."""
        served = await self._kinds.served(gvk)
        if name:
            fresh = replace(requests.get(self._with_name(served, namespace, name)), is_anew=True)
            return self._object(await self._send(fresh), gvk, self._with_name(served, namespace, name)).resource_version
        nothing = ListQuery(field_selector="metadata.name=-")
        page_request = requests.list_page(served, nothing, limit=1, accept=requests.METADATA_LIST)
        answer = await self._send(replace(page_request, is_anew=True))
        with reading_answer(self.name, f"list of {gvk.kind}"):
            return listing(self.name, [page(self.name, answer.body, "meta.k8s.io/v1", gvk.kind)], gvk).resource_version

    async def _presence(self) -> None:
        self._object(await self._send(replace(_ITSELF, deadline_s=PRESENCE_DEADLINE_S)), _NAMESPACE, _KUBE_SYSTEM)

    async def fault_of(self, gvk: GVK, error: MemberClusterError) -> MemberClusterError:
        """Return the error of a request about a kind: a KindFault if the cluster answers otherwise."""
        return await self._kinds.fault_of(gvk, error)

    async def discover(self, *, refresh: bool = False) -> Discovery:
        """Return the served kinds. Cached until `refresh`: two conditional requests when nothing changed."""
        return await self._kinds.discover(refresh=refresh)

    async def openapi(self, group_version: str) -> JsonObject:
        """Return the OpenAPI v3 document of a group version (`v1`, `apps/v1`); KindNotServed without one."""
        path = f"/openapi/v3{requests.api_root(group_version)}"
        answer = await self._send(requests.read(path, part=path))
        with reading_answer(self.name, "OpenAPI document"):
            document = json_object(self.name, answer.body, "OpenAPI document")
        if not isinstance(dig(document, "components", "schemas"), dict):
            raise BadAnswer(self.name, f"the OpenAPI document of {group_version} has no components.schemas")
        return document

    async def list_objects(
        self, gvk: GVK, *, namespace: str = "", label_selector: str = "", field_selector: str = ""
    ) -> Listing:
        """Return all objects of the kind that match, whole."""
        query = ListQuery(namespace=namespace, label_selector=label_selector, field_selector=field_selector)
        return await self._list(gvk, query, accept=requests.JSON, api_version=gvk.api_version)

    async def list_metadata(
        self, gvk: GVK, *, namespace: str = "", label_selector: str = "", is_cached: bool = False
    ) -> Listing:
        """Return matching objects, metadata alone. `is_cached`: perhaps old, so nothing is proven absent."""
        query = ListQuery(namespace=namespace, label_selector=label_selector, is_cached=is_cached)
        return await self._list(gvk, query, accept=requests.METADATA_LIST, api_version="meta.k8s.io/v1")

    async def get(self, gvk: GVK, namespace: str, name: str) -> LiveObject:
        """Return the object. ObjectNotFound is a proven absence; a KindFault is not about the object."""
        return await self._kinds.read(gvk, partial(self._one, namespace, name, requests.get))

    async def find(self, gvk: GVK, namespace: str, name: str) -> LiveObject | None:
        """Return the object; None: it is proven absent. Else as `get`."""
        try:
            return await self.get(gvk, namespace, name)
        except ObjectNotFound:
            return None

    async def create(self, gvk: GVK, namespace: str, name: str, body: JsonObject, *, manager: str) -> LiveObject:
        """Return the object that server-side apply made; AlreadyExists when anything of that name is there."""
        make = partial(requests.create, body=body, manager=manager)
        return await self._kinds.where_served(gvk, partial(self._one, namespace, name, make))

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
        """Return the object after a server-side apply; WriteConflict if uid or resourceVersion differ."""
        make = partial(requests.apply, body=body, manager=manager, force=force, uid=uid, dry_run=dry_run)
        make = partial(make, resource_version=resource_version)
        return await self._kinds.where_served(gvk, partial(self._one, namespace, name, make))

    async def json_patch(
        self, gvk: GVK, namespace: str, name: str, operations: Sequence[JsonObject], *, manager: str = ""
    ) -> LiveObject:
        """Return the object after an RFC 6902 patch; WriteConflict when a `test` fails or a path is missing."""
        make = partial(requests.json_patch, operations=operations, manager=manager)
        return await self._kinds.where_served(gvk, partial(self._one, namespace, name, make))

    async def delete(self, gvk: GVK, namespace: str, name: str, *, uid: str) -> LiveObject | None:
        """Delete the object of this uid, else WriteConflict; return it while finalizers run, None when gone."""
        assert uid, f"deleting {gvk.kind} {namespace}/{name} needs the uid of the object that is meant"

        async def send_delete(served: ServedKind) -> LiveObject | None:
            sent = await self._send(requests.delete(self._with_name(served, namespace, name), uid=uid))
            with reading_answer(self.name, gvk.kind):
                answer = json_object(self.name, sent.body, gvk.kind)
                return None if answer.get("kind") == "Status" else as_live_object(self.name, answer, gvk)

        return await self._kinds.where_served(gvk, send_delete)

    async def watch(
        self, gvk: GVK, *, namespace: str = "", label_selector: str = "", resource_version: str = ""
    ) -> AsyncGenerator[WatchEvent | Bookmark, None]:
        """Changes after `resource_version` until the API server ends the watch (some minutes).

        Without a resourceVersion the existing objects come first as ADDED. ListExpired: list again. Use it inside
        `contextlib.aclosing`, so that leaving it early ends the request.
        """
        served = await self._kinds.served(gvk)
        request = requests.watch(
            served,
            ListQuery(namespace=namespace, label_selector=label_selector),
            resource_version=resource_version,
            seconds=requests.WATCH_SECONDS,
        )
        async with self._kinds.one_kind(gvk), self._transport.stream(request, self._user_agent()) as stream:
            async for line in lines_of(self.name, stream):
                with reading_answer(self.name, "watch event"):
                    event = watch_event(self.name, line, gvk, request)
                yield event

    async def table(
        self, kind: ServedKind, *, namespace: str = "", name: str = "", label_selector: str = ""
    ) -> PrintedTable:
        """Return the table of `kubectl get` for the kind; for one object when a name is given, else ObjectNotFound."""
        async with self._kinds.one_kind(kind.gvk):
            if name:
                target = self._with_name(kind, namespace, name)
                answer = await self._send(replace(requests.get(target), accept=requests.TABLE))
                with reading_answer(self.name, "Table"):
                    return table(self.name, answer.body)
            query = ListQuery(namespace=namespace, label_selector=label_selector)
            pages = await self._pages(kind, query, partial(table, self.name), accept=requests.TABLE)
        return replace(pages[-1], rows=tuple(row for page_ in pages for row in page_.rows))

    async def allows(self, verb: str, group: str, plural: str, *, name: str = "") -> bool:
        """Return whether our credentials allow the verb in all namespaces, served or not; no name: all objects."""
        answer = await self._send(requests.access_review(verb, group, plural, name=name))
        return self._read(answer, AccessReview, "SelfSubjectAccessReview").status.allowed

    async def first_objects(
        self, gvk: GVK, limit: int, *, namespace: str, label_selector: str = "", field_selector: str = ""
    ) -> tuple[LiveObject, ...]:
        """Return at most so many matching objects of a namespace: one page, which proves nothing absent."""
        query = ListQuery(namespace=namespace, label_selector=label_selector, field_selector=field_selector)

        async def read_page(served: ServedKind) -> tuple[LiveObject, ...]:
            answer = await self._send(requests.list_page(served, query, limit=limit))
            with reading_answer(self.name, f"list of {gvk.kind}"):
                return listing(self.name, [page(self.name, answer.body, gvk.api_version, gvk.kind)], gvk).objects

        return await self._kinds.read(gvk, read_page)

    async def pod_log(
        self, namespace: str, name: str, container: str, *, lines: int, bytes_max: int, is_previous: bool
    ) -> str:
        """Return the last lines of a container's log. `is_previous`: of the run before the present one."""
        target = self._with_name(_POD, namespace, name)
        answer = await self._send(requests.pod_log(target, container, lines, bytes_max, is_previous=is_previous))
        return answer.body[-bytes_max:].decode(errors="replace")

    async def nodes(self) -> tuple[NodeObject, ...]:
        """Return all nodes, with the fields that capacity needs."""
        async with self._kinds.one_kind(_NODE.gvk):
            pages = await self._pages(
                _NODE, ListQuery(), lambda body: struct(self.name, body, NodeList, "list of Nodes")
            )
        return tuple(node for page_ in pages for node in page_.items)

    async def pods(self, *, namespace: str = "") -> tuple[Pod, ...]:
        """Return all matching pods, with the fields that capacity and scheduling need."""
        query = ListQuery(namespace=namespace)
        async with self._kinds.one_kind(_POD.gvk):
            pages = await self._pages(_POD, query, lambda body: struct(self.name, body, PodList, "list of Pods"))
        return tuple(pod for page_ in pages for pod in page_.items)

    async def _pages(
        self, kind: ServedKind, query: ListQuery, parse: Callable[[bytes], _P], *, accept: str = requests.JSON
    ) -> list[_P]:
        """Return every page of one list, as of one resourceVersion.

        If the token expires on the way, the list is read again in one piece, which cannot expire. A page that is too
        large to be read is asked for again in smaller ones, which an API server that answers from memory may not make.
        """
        pages: list[_P] = []
        token, limit = "", requests.LIST_PAGE
        with self._transport.lists.share(self.name) as take:
            while len(pages) < PAGES_MAX:
                request = requests.list_page(kind, query, limit=limit, token=token, accept=accept)
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
                    answer = await self._send(requests.list_page(kind, query, limit=0, accept=accept))
                    pages.clear()
                take(len(answer.body))
                with reading_answer(self.name, f"list of {kind.plural}"):
                    pages.append(parse(answer.body))
                token = pages[-1].token
                if not token:
                    return pages
        raise BadAnswer(self.name, f"the list of {kind.plural} has more than {PAGES_MAX} pages")

    async def _list(self, gvk: GVK, query: ListQuery, *, accept: str, api_version: str) -> Listing:
        trees = self._transport.trees

        def parse(body: bytes) -> Page:
            return page(self.name, body, api_version, gvk.kind, trees)

        async def read_pages(served: ServedKind) -> Listing:
            with trees.list_under_way():
                pages = await self._pages(served, query, parse, accept=accept)
            with reading_answer(self.name, f"list of {gvk.kind}"):
                return listing(self.name, pages, gvk)

        return await self._kinds.read(gvk, read_pages)

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

    async def _one(self, namespace: str, name: str, make: Callable[[Target], Request], kind: ServedKind) -> LiveObject:
        target = self._with_name(kind, namespace, name)
        return self._object(await self._send(make(target)), kind.gvk, target)

    def _object(self, answer: Answer, gvk: GVK, target: Target) -> LiveObject:
        with reading_answer(self.name, gvk.kind):
            live = live_object(self.name, answer.body, gvk)
        if (live.identity.name, live.identity.namespace) != (target.name, target.namespace):
            raise BadAnswer(self.name, clean(f"it was asked for {gvk.kind} {target.name}, and sent {live.identity}"))
        return live

    def _read(self, answer: Answer, shape: type[_S], what: str) -> _S:
        with reading_answer(self.name, what):
            return struct(self.name, answer.body, shape, what)

    def _with_name(self, kind: ServedKind, namespace: str, name: str) -> Target:
        """Return the target, whose namespace and name come from files of strangers and end up in a path."""
        is_named = requests.is_path_segment(name) and (not kind.namespaced or requests.is_path_segment(namespace))
        if not is_named:
            wants = "a namespace and a name" if kind.namespaced else "a name"
            raise InvalidObject(self.name, f"{kind.gvk.kind} needs {wants} that fit into a path: {namespace}/{name}")
        return Target(kind=kind, namespace=namespace if kind.namespaced else "", name=name)
