"""Reads: lists, metadata, tables, discovery, schemas, access, watches."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from reconciler.errors import BadAnswer, ClusterUnreachable, KindNotServed, ListExpired, ObjectNotFound
from reconciler.kube import Bookmark, WatchEvent, kube_requests, served_kinds
from tests.contract.conftest import Connect
from tests.contract.kube_objects import (
    CONFIG_MAP,
    DEPLOYMENT,
    MANAGER,
    NAMESPACE,
    WIDGET,
    WIDGET_DEFINITION,
    config_map,
    deployment,
    widget,
)
from tests.present import present
from tests.real_clusters import RealCluster

ROOT_CA = "kube-root-ca.crt"
"""A ConfigMap that a controller puts into every namespace, some time after it was made."""


async def test_version_and_identity_tell_what_kubectl_tells(member: Connect, cluster: RealCluster) -> None:
    async with member() as it:
        assert (await it.version()) in cluster.kubectl("version")
        assert await it.identity() == cluster.get("namespace", "kube-system")["metadata"]["uid"]


async def test_a_list_of_many_pages_has_every_object_once(
    member: Connect, cluster: RealCluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_requests, "LIST_PAGE", 3)
    names = [f"c{index}" for index in range(10)]
    cluster.apply(*({**config_map(name), "metadata": {"name": name, "namespace": namespace}} for name in names))
    async with member() as it:
        listing = await it.list_objects(CONFIG_MAP, namespace=namespace)
        found = [live.identity.name for live in listing.objects]
        assert sorted(set(found) - {ROOT_CA}) == names
        assert len(found) == len(set(found))
        assert all(live.body["kind"] == "ConfigMap" and live.body["apiVersion"] == "v1" for live in listing.objects)
        table = await it.table((await it.discover()).kinds[CONFIG_MAP], namespace=namespace)
        assert sorted({row.name for row in table.rows} - {ROOT_CA}) == names


async def test_metadata_lists_hold_no_content(member: Connect, cluster: RealCluster, namespace: str) -> None:
    cluster.apply({**config_map("x", a="b"), "metadata": {"name": "x", "namespace": namespace, "labels": {"a": "x"}}})
    async with member() as it:
        # The one object alone: a controller puts another into the namespace, maybe between the two lists.
        whole = await it.list_objects(CONFIG_MAP, namespace=namespace, label_selector="a=x")
        listing = await it.list_metadata(CONFIG_MAP, namespace=namespace, label_selector="a=x")
    assert [(live.identity, live.uid, live.resource_version) for live in listing.objects] == [
        (live.identity, live.uid, live.resource_version) for live in whole.objects
    ]
    assert all("data" not in live.body for live in listing.objects)


async def test_a_custom_kind_is_found_as_soon_as_it_is_served(
    member: Connect, cluster: RealCluster, namespace: str
) -> None:
    cluster.kubectl("delete", "crd", "widgets.contract.example", "--ignore-not-found")
    async with member() as it:
        await it.discover(refresh=True)
        with pytest.raises(KindNotServed):
            await it.list_objects(WIDGET)
        cluster.apply(WIDGET_DEFINITION)
        cluster.kubectl("wait", "crd/widgets.contract.example", "--for=condition=Established", "--timeout=90s")
        made = await it.create(WIDGET, namespace, "w", widget("w", 3), manager=MANAGER)
        listing = await it.list_objects(WIDGET, namespace=namespace)
        assert [live.uid for live in listing.objects] == [made.uid]
        kind = present((await it.discover()).find("wd"))
        table = await it.table(kind, namespace=namespace)
        assert [column.name for column in table.columns] == ["Name", "Size"]
        assert [row.cells for row in table.rows] == [("w", 3)]


async def test_discovery_knows_names_scopes_and_preferred_versions(member: Connect) -> None:
    async with member() as it:
        discovery = await it.discover()
    assert {name: found and found.gvk for name in ("deploy", "Deployment", "deployments.apps", "deployments.v1.apps")
            for found in [discovery.find(name)]} == dict.fromkeys(
        ("deploy", "Deployment", "deployments.apps", "deployments.v1.apps"), DEPLOYMENT)  # fmt: skip
    assert discovery.find("nothing") is None
    assert discovery.find("deployments.batch") is None
    assert (discovery.served()[NAMESPACE], discovery.served()[CONFIG_MAP]) == (False, True)
    assert present(discovery.preferred("autoscaling", "HorizontalPodAutoscaler")).gvk.version == "v2"
    assert discovery.find("events") is not None
    assert discovery.find("events").gvk.group == ""  # type: ignore[union-attr] # the line above has it


async def test_the_older_form_of_discovery_is_refused_with_its_cause(
    member: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(served_kinds, "AGGREGATED_DISCOVERY", kube_requests.JSON)
    async with member() as it:
        with pytest.raises(BadAnswer, match=r"answered APIVersions and APIGroupList .* older than Kubernetes 1\.27"):
            await it.discover()


async def test_openapi_describes_how_list_items_are_matched(member: Connect) -> None:
    async with member() as it:
        document = await it.openapi("apps/v1")
        with pytest.raises(KindNotServed):
            await it.openapi("nobody.example/v1")
    containers = document["components"]["schemas"]["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-list-map-keys"] == ["name"]


async def test_a_table_is_what_kubectl_prints(member: Connect, cluster: RealCluster, namespace: str) -> None:
    cluster.apply({**deployment("web", 0), "metadata": {"name": "web", "namespace": namespace}})
    async with member() as it:
        kind = (await it.discover()).kinds[DEPLOYMENT]
        table = await it.table(kind, namespace=namespace)
        one = await it.table(kind, namespace=namespace, name="web")
        with pytest.raises(ObjectNotFound):
            await it.table(kind, namespace=namespace, name="absent")
    printed = cluster.kubectl("get", "deploy", "-n", namespace).splitlines()
    shown = [column.name.upper() for column in table.columns if column.priority == 0]
    assert printed[0].split() == shown
    assert [str(cell) for cell in table.rows[0].cells[: len(shown) - 1]] == printed[1].split()[:-1]
    assert [row.name for row in one.rows] == ["web"]
    assert table.rows[0].namespace == namespace


async def test_access_is_asked_and_not_guessed(member: Connect, namespace: str) -> None:
    async with member() as it:
        assert await it.allows("patch", "apps", "deployments")
        assert await it.allows("delete", "", "namespaces")


async def test_a_watch_tells_every_change_after_the_list(member: Connect, namespace: str) -> None:
    selector = f"ns={namespace}"

    async with member() as it:
        listing = await it.list_objects(CONFIG_MAP, label_selector=selector)
        body = config_map("x", a="1")
        body["metadata"]["labels"] = {"ns": namespace}
        seen = []
        async with aclosing(
            it.watch(CONFIG_MAP, label_selector=selector, resource_version=listing.resource_version)
        ) as events:
            made = await it.create(CONFIG_MAP, namespace, "x", body, manager=MANAGER)
            await it.apply(
                CONFIG_MAP, namespace, "x", {**body, "data": {"a": "2"}}, manager=MANAGER, force=True, uid=made.uid
            )
            await it.delete(CONFIG_MAP, namespace, "x", uid=made.uid)
            async with asyncio.timeout(180):
                async for event in events:
                    if isinstance(event, WatchEvent):
                        seen.append((event.type, event.object.uid, event.object.body["data"]["a"]))
                    if len(seen) == 3:
                        break
    assert seen == [("ADDED", made.uid, "1"), ("MODIFIED", made.uid, "2"), ("DELETED", made.uid, "2")]


async def test_a_watch_of_metadata_holds_no_content(member: Connect, cluster: RealCluster, namespace: str) -> None:
    metadata = {"name": "x", "namespace": namespace, "labels": {"ns": namespace}}
    cluster.apply({**config_map("x", a="1"), "metadata": metadata})
    async with (
        member() as it,
        asyncio.timeout(180),
        aclosing(it.watch(CONFIG_MAP, label_selector=f"ns={namespace}")) as events,
    ):
        event = await anext(events)
    assert isinstance(event, WatchEvent)
    assert event.type == "ADDED"
    assert event.object.identity.name == "x"


async def test_watches_are_told_by_bookmarks_from_where_the_next_ones_go_on(
    member: Connect, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kube_requests, "WATCH_SECONDS", 8)
    async with member() as it, asyncio.timeout(180):
        bookmarks: list[Bookmark] = []
        for attempt in range(4):  # A busy machine may begin to watch too late.
            listing = await it.list_objects(CONFIG_MAP, namespace=namespace)

            async def watch(since: str = listing.resource_version) -> list[Bookmark]:
                # The selector holds for nothing, so that only bookmarks come.
                events = it.watch(CONFIG_MAP, label_selector="no=one", resource_version=since)
                return [event async for event in events if isinstance(event, Bookmark)]

            # A bookmark is due two seconds before the end, give or take two, and only when something was written since
            # the watch began. Of a single write half of the watches tell nothing, and on a busy machine all.
            watches = [asyncio.create_task(watch()) for _ in range(12)]
            name = f"x{attempt}"
            made = await it.create(CONFIG_MAP, namespace, name, config_map(name), manager=MANAGER)
            writes = 0
            while (await asyncio.wait(watches, timeout=0.5))[1]:
                writes += 1
                more = f"{name}-{writes}"
                await it.create(CONFIG_MAP, namespace, more, config_map(more), manager=MANAGER)
            bookmarks = [bookmark for found in await asyncio.gather(*watches) for bookmark in found]
            told = {int(bookmark.resource_version) >= int(made.resource_version) for bookmark in bookmarks}
            if told:
                assert told == {True}
                break
        assert bookmarks
        monkeypatch.setattr(kube_requests, "WATCH_SECONDS", 1)
        async for _ in it.watch(CONFIG_MAP, resource_version=bookmarks[0].resource_version):
            pass


async def test_a_watch_from_before_the_api_servers_memory_has_expired(member: Connect, cluster: RealCluster) -> None:
    async with member() as it, asyncio.timeout(60):
        await it.version()
        cluster.stop()
        with pytest.raises(ClusterUnreachable):
            await it.version()
        cluster.start()
        with pytest.raises(ListExpired):
            async for _ in it.watch(NAMESPACE, resource_version="1"):
                pass
