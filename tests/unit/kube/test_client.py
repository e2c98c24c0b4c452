from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from reconciler.api.refs import GVK
from reconciler.errors import (
    AnswerTooLarge,
    BadAnswer,
    CredentialsRejected,
    KindNotRead,
    KindNotServed,
    ListExpired,
    MemberClusterError,
)
from reconciler.kube import MemberCluster, MemberClusters, MemberConfig, TransportSettings, UserAgent
from reconciler.kube.kube_requests import WRITE_DEADLINE_S
from reconciler.kube.member_clusters import DEFAULT_SETTINGS
from tests.fakes.clocks import TestClock
from tests.fakes.scripted_server import Asked, ScriptedServer, reply, status

POD = GVK("", "v1", "Pod")
WIDGET = GVK("x.example", "v1", "Widget")
Answers = Callable[[str, dict[str, str]], bytes]


def kind(name: str, plural: str, scope: str = "Namespaced") -> dict[str, Any]:
    verbs = ["get", "list", "patch", "delete", "watch", "create"]
    return {
        "resource": plural,
        "responseKind": {"group": "", "version": "", "kind": name},
        "scope": scope,
        "verbs": verbs,
    }


def discovery(**groups: list[dict[str, Any]]) -> bytes:
    items = [
        {"metadata": {"name": group.replace("_", ".")} if group != "core" else {}, "versions": [{"version": "v1", **v}]}
        for group, resources in groups.items()
        for v in [{"resources": resources, "freshness": "Current"}]
    ]
    return reply(200, {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})


CORE = discovery(core=[kind("Pod", "pods"), kind("Node", "nodes", "Cluster")])
NO_GROUPS = discovery()


@asynccontextmanager
async def member_with(
    answers: Answers, settings: TransportSettings = DEFAULT_SETTINGS
) -> AsyncIterator[tuple[MemberCluster, list[Asked]]]:
    """A member whose server answers discovery with the core kinds, and all else as `answers(path, query)` says."""

    def answer(asked: Asked) -> bytes:
        parts = urlsplit(asked.target)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        built_in = {"/api": CORE, "/apis": NO_GROUPS}
        return answers(parts.path, query) or built_in.get(parts.path) or reply(404, b"404 page not found")

    async with ScriptedServer(by_target=answer) as server:
        server.patience_s = WRITE_DEADLINE_S
        configs = {"m1": MemberConfig(name="m1", server=server.url)}
        async with MemberClusters.open(configs, agent=UserAgent("f"), clock=TestClock(), settings=settings) as members:
            yield members["m1"], server.asked


def pod(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "demo"}, "spec": {"containers": []}}


def pods(*names: str, token: str = "", remaining: int = 0, version: str = "7") -> bytes:
    metadata = {"resourceVersion": version, "continue": token}
    if remaining:
        metadata["remainingItemCount"] = remaining  # type: ignore[assignment] # an int among strings
    return reply(200, {"apiVersion": "v1", "kind": "PodList", "metadata": metadata, "items": [pod(n) for n in names]})


EXPIRED = reply(410, status(410, "Expired", "The provided continue parameter is too old"))


async def test_a_list_that_expires_on_the_way_begins_anew_in_one_piece() -> None:
    def answers(path: str, query: dict[str, str]) -> bytes:
        if path != "/api/v1/pods":
            return b""
        if query.get("continue"):
            return EXPIRED
        return pods("a", token="t", remaining=2) if query.get("limit") else pods("b", "c", "d", version="9")

    async with member_with(answers) as (member, _):
        listing = await member.list_objects(POD)
        assert [live.identity.name for live in listing.objects] == ["b", "c", "d"]
        assert listing.resource_version == "9"
        assert [found.metadata.name for found in await member.pods()] == ["b", "c", "d"]


async def test_a_list_that_expires_at_once_is_an_error() -> None:
    async with member_with(lambda path, query: EXPIRED if path == "/api/v1/pods" else b"") as (member, _):
        with pytest.raises(ListExpired):
            await member.list_objects(POD)


async def test_a_list_without_end_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.kube.client.PAGES_MAX", 5)
    endless = pods("a", token="t")
    async with member_with(lambda path, query: endless if path == "/api/v1/pods" else b"") as (member, _):
        with pytest.raises(BadAnswer, match="more than 5 pages"):
            await member.list_objects(POD)


@pytest.mark.parametrize(
    "second",
    [reply(500, status(500, "InternalError")), reply(200, b"<html>"), reply(200, {}), reply(200, b"", promised=10)],
    ids=["error", "HTML", "empty object", "cut off"],
)
async def test_a_list_whose_second_page_fails_gives_nothing(second: bytes) -> None:
    def answers(path: str, query: dict[str, str]) -> bytes:
        if path != "/api/v1/pods":
            return b""
        return second if query.get("continue") else pods("a", token="t")

    async with member_with(answers) as (member, _):
        for ask in (member.list_objects(POD), member.pods(), member.list_metadata(POD)):
            with pytest.raises(Exception, match="m1: "):
                await ask


async def test_a_kind_that_is_missed_is_looked_for_once_more() -> None:
    served: list[dict[str, Any]] = []

    def answers(path: str, query: dict[str, str]) -> bytes:
        return discovery(x_example=served) if path == "/apis" else b""

    async with member_with(answers) as (member, asked):
        with pytest.raises(KindNotServed):
            await member.get(WIDGET, "demo", "w")
        served.append(kind("Widget", "widgets"))
        with pytest.raises(KindNotServed):  # The kind is known now; that its path answers 404 is another matter.
            await member.get(WIDGET, "demo", "w")
        assert "/apis/x.example/v1/namespaces/demo/widgets/w" in [each.target for each in asked]


async def test_an_extension_server_that_is_down_makes_its_kinds_unknown_not_absent() -> None:
    stale = {"metadata": {"name": "x.example"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
    answer = reply(200, {"kind": "APIGroupDiscoveryList", "items": [stale]})
    async with member_with(lambda path, query: answer if path == "/apis" else b"") as (member, _):
        with pytest.raises(KindNotRead, match=r"x\.example/v1"):
            await member.get(WIDGET, "demo", "w")


KUBE_SYSTEM = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u"}}
NO_WEBHOOK = status(500, "InternalError", "conversion webhook for x.example/v1, Kind=Widget failed: no such host")
FAILURES: dict[str, bytes] = {
    "a conversion webhook that fails": reply(500, NO_WEBHOOK),
    "an extension API server that is down": reply(503, b"service unavailable"),
    "a gateway": reply(502, b"bad gateway"),
    "406": reply(406, status(406, "NotAcceptable")),
    "415": reply(415, status(415, "UnsupportedMediaType")),
    "a page of a proxy": reply(200, b"<html></html>"),
    "a bad request": reply(400, status(400, "BadRequest")),
}


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("is_there", [True, False], ids=["cluster answers", "cluster fails too"])
async def test_a_failure_is_of_its_kind_where_the_cluster_answers_otherwise(failure: bytes, is_there: bool) -> None:
    def answers(path: str, query: dict[str, str]) -> bytes:
        if path == "/apis":
            return discovery(x_example=[kind("Widget", "widgets")])
        if path == "/api":
            return b""
        if path.endswith("/kube-system") and is_there:
            return reply(200, KUBE_SYSTEM)
        return pods("a") if path.endswith("/pods") and is_there else failure

    async with member_with(answers) as (member, _):
        for _ in range(5):
            with pytest.raises(MemberClusterError) as got:
                await member.get(WIDGET, "demo", "w")
            with pytest.raises(MemberClusterError) as listed:
                await member.list_objects(WIDGET)
            assert [isinstance(found.value, KindNotRead) for found in (got, listed)] == [is_there, is_there]
            if is_there:
                assert "Widget (x.example/v1) cannot be read" in got.value.message
                assert len(await member.pods()) == 1, "the kind that fails does not have the cluster left alone"


@pytest.mark.parametrize(("answered", "is_of_kind"), [(0, False), (401, True)])
async def test_credentials_that_could_not_be_had_are_no_fault_of_a_kind(answered: int, *, is_of_kind: bool) -> None:
    """Nothing was sent. An extension API server may well refuse credentials that the cluster takes."""
    rejected = CredentialsRejected("m1", "the exec plugin failed", status=answered)
    async with member_with(lambda path, query: reply(200, KUBE_SYSTEM)) as (member, _):
        fault = await member.fault_of(WIDGET, rejected)
    assert (fault is rejected, isinstance(fault, KindNotRead)) == (not is_of_kind, is_of_kind)


async def test_a_kind_that_is_served_elsewhere_by_now_is_asked_for_there() -> None:
    served = [kind("Widget", "widgets")]

    def answers(path: str, query: dict[str, str]) -> bytes:
        if path == "/apis":
            return discovery(x_example=served)
        if path == f"/apis/x.example/v1/{served[0]['resource']}/w":
            live = {"apiVersion": "x.example/v1", "kind": "Widget", "metadata": {"name": "w", "uid": "u"}}
            return reply(200, live)
        return b"" if path == "/api" else reply(404, b"404 page not found")

    async with member_with(answers) as (member, _):
        with pytest.raises(KindNotServed, match="although discovery still lists it"):
            await member.get(WIDGET, "demo", "w")
        served[0] = kind("Widget", "gadgets", scope="Cluster")
        assert (await member.get(WIDGET, "demo", "w")).uid == "u"
        with pytest.raises(KindNotServed, match="it serves version v1, which the store has to name"):
            await member.get(GVK("x.example", "v2", "Widget"), "demo", "w")


async def test_unchanged_discovery_is_not_sent_again() -> None:
    seen: list[str] = []

    def answer(asked: Asked) -> bytes:
        seen.append(asked.headers.get("if-none-match", ""))
        if seen[-1] == '"e1"':
            return reply(304)
        body = CORE if asked.target == "/api" else NO_GROUPS
        return body.replace(b"\r\n\r\n", b'\r\nETag: "e1"\r\n\r\n', 1)

    async with ScriptedServer(by_target=answer) as server:
        configs = {"m1": MemberConfig(name="m1", server=server.url)}
        async with MemberClusters.open(configs, agent=UserAgent("f")) as members:
            first = await members["m1"].discover()
            again = await members["m1"].discover(refresh=True)
    assert seen == ["", "", '"e1"', '"e1"']
    assert first == again
    assert POD in again.kinds


@pytest.mark.parametrize("body", [b"<html>", b"{}", json.dumps({"kind": "Status"}).encode()])
async def test_discovery_that_is_something_else_is_an_error_not_an_empty_cluster(body: bytes) -> None:
    async with member_with(lambda path, query: reply(200, body)) as (member, _):
        with pytest.raises(BadAnswer):
            await member.discover()
        with pytest.raises(BadAnswer):
            await member.version()
        with pytest.raises(BadAnswer):
            await member.identity()


async def test_a_review_without_a_verdict_is_no_permission() -> None:
    review = reply(201, {"kind": "SelfSubjectAccessReview", "status": {}})
    async with member_with(lambda path, query: review if "accessreviews" in path else b"") as (member, _):
        with pytest.raises(BadAnswer):
            await member.allows("delete", "", "pods")


async def test_deleting_without_saying_which_object_is_a_programming_error() -> None:
    async with member_with(lambda path, query: b"") as (member, asked):
        with pytest.raises(AssertionError):
            await member.delete(POD, "demo", "p", uid="")
        assert asked == []


async def test_a_delete_carries_its_precondition_in_the_body() -> None:
    gone = reply(200, {"kind": "Status", "status": "Success"})
    async with member_with(lambda path, query: gone if path.endswith("/p") else b"") as (member, asked):
        await member.delete(POD, "demo", "p", uid="u")
    assert json.loads(asked[-1].body) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u"},
        "propagationPolicy": "Background",
        "dryRun": [],
    }


async def test_a_create_never_writes_into_the_body_it_is_given() -> None:
    made = reply(201, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "demo"}})
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    async with member_with(lambda path, query: made if path.endswith("/p") else b"") as (member, asked):
        await member.create(POD, "demo", "p", body, manager="m")
        await member.apply(POD, "demo", "p", body, manager="m", force=True, uid="u")
    assert body == {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    assert json.loads(asked[-2].body)["metadata"] == {"name": "p", "resourceVersion": "1"}
    assert json.loads(asked[-1].body)["metadata"] == {"name": "p", "uid": "u"}


def _large_pages(page_max: int) -> Answers:
    """A list of 100 pods of which a page may hold so many before it is too large for us."""

    def answers(path: str, query: dict[str, str]) -> bytes:
        if path != "/api/v1/pods":
            return b""
        begin, limit = int(query.get("continue", "0")), int(query["limit"])
        names = [f"p{number}" for number in range(begin, min(begin + limit, 100))]
        more = begin + limit < 100
        found = pods(*names, token=str(begin + limit) if more else "")
        return found if len(names) <= page_max else reply(200, b"x" * 20_000)

    return answers


LIMITS = TransportSettings(body_max_bytes=10_000, body_small_bytes=1000)


async def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones() -> None:
    async with member_with(_large_pages(50), LIMITS) as (member, asked):
        listing = await member.list_objects(POD)
    assert [live.identity.name for live in listing.objects] == [f"p{number}" for number in range(100)]
    limits = [parse_qs(urlsplit(found.target).query)["limit"] for found in asked if "/pods" in found.target]
    assert limits == [["500"], ["50"], ["50"]]


async def test_an_answer_that_is_too_large_however_little_is_asked_for_is_an_error() -> None:
    async with member_with(_large_pages(0), LIMITS) as (member, asked):
        with pytest.raises(AnswerTooLarge, match="m1: the answer is larger than 10,000 bytes"):
            await member.list_objects(POD)
    assert sum("/pods" in found.target for found in asked) == 4


async def test_lists_under_way_hold_no_more_than_a_cluster_may_make_us_hold() -> None:
    def endless(path: str, query: dict[str, str]) -> bytes:
        return pods("p", token="more") if path == "/api/v1/pods" else b""

    size = len(pods("p", token="more").partition(b"\r\n\r\n")[2])
    async with member_with(endless, TransportSettings(lists_max_bytes=100 * size)) as (member, asked):
        for _ in range(2):  # What a list held is given back at its end.
            with pytest.raises(AnswerTooLarge, match="the lists that are read at once"):
                await member.list_objects(POD)
    assert sum("/pods" in found.target for found in asked) == 202
