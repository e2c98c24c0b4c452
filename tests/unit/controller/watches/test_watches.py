"""Watches on embedded clusters: each event is told, and a list after every gap."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK
from reconciler.controller.watches.handlers import WatchHandler
from reconciler.controller.watches.kind_watches import Watches
from reconciler.errors import MemberClusterError
from reconciler.kube import WatchEvent, load_members
from reconciler.kube.answers import Listing
from tests.fakes.clocks import QuickClock
from tests.fakes.members import Open, opened
from tests.fakes.waiting import until
from tests.fakes.worlds import config_map, fleet_of, policy

CONFIG_MAP = GVK("", "v1", "ConfigMap")
STORE = fleet_of(config_map(value="1"), policy("ConfigMap", "m1"), clusters=("m1", "m2"))
OURS = "fleet.reconciler/fleet in (test)"


class Told(WatchHandler):
    def __init__(self) -> None:
        self.lists: list[tuple[str, list[str]]] = []
        self.events: list[tuple[str, str]] = []
        self.troubles: list[str] = []
        self.watches = Watches(self, QuickClock())

    def listed(self, cluster: str, gvk: GVK, objects: tuple[LiveObject, ...]) -> None:
        self.lists.append((cluster, [found.identity.name for found in objects]))

    def object_changed(self, cluster: str, event: WatchEvent) -> None:
        self.events.append((event.type, event.object.identity.name))

    def trouble(self, cluster: str, error: MemberClusterError) -> None:
        self.troubles.append(cluster)

    def keep(self, scene: Open, *kinds: GVK) -> None:
        self.watches.keep(scene.members["m1"], frozenset(kinds), OURS)


async def test_a_list_comes_first_and_then_each_change(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        told = Told()
        told.keep(scene, CONFIG_MAP)
        await until(lambda: told.lists == [("m1", ["app"])])
        scene.by_hand("m1", "PATCH", {"data": {"value": "2"}})
        await until(lambda: told.events == [("MODIFIED", "app")])
        scene.by_hand("m1", "DELETE")
        await until(lambda: told.events[1:] == [("DELETED", "app")])
        await told.watches.close()


async def test_a_watch_does_not_keep_the_list_that_it_began_with(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        told = Told()
        told.keep(scene, CONFIG_MAP)
        await until(lambda: bool(told.lists))
        scene.by_hand("m1", "PATCH", {"data": {"value": "2"}})
        await until(lambda: bool(told.events))
        gc.collect()
        assert not [found for found in gc.get_objects() if isinstance(found, Listing)]
        await told.watches.close()


async def test_what_is_not_ours_is_not_watched(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        told = Told()
        told.keep(scene, CONFIG_MAP)
        await until(lambda: bool(told.lists))
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
        scene.by_hand("m1", "POST", body, name="other")
        scene.by_hand("m1", "PATCH", {"data": {"value": "2"}})
        await until(lambda: bool(told.events))
        assert told.events == [("MODIFIED", "app")]
        await told.watches.close()


async def test_a_watch_that_breaks_or_expires_begins_again_with_a_list(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        told = Told()
        told.keep(scene, CONFIG_MAP)
        await until(lambda: len(told.lists) == 1)
        scene.by_hand("m1", "PATCH", {"data": {"value": "2"}})
        scene.box["m1"].state.store.compact()
        scene.box.servers["m1"].break_connections()
        await until(lambda: len(told.lists) >= 2)
        scene.by_hand("m1", "DELETE")
        await until(lambda: ("DELETED", "app") in told.events)
        await told.watches.close()


async def test_trouble_is_told_and_ends_when_the_cluster_is_back(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        await scene.box.servers["m1"].stop()
        told = Told()
        told.keep(scene, CONFIG_MAP)
        await until(lambda: bool(told.troubles))
        assert told.lists == [], "no list is made up"
        await scene.box.servers["m1"].start()
        await until(lambda: told.lists == [("m1", ["app"])])
        await told.watches.close()


async def test_exactly_the_kinds_asked_for_are_watched(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        told = Told()
        told.keep(scene, CONFIG_MAP)
        told.keep(scene, CONFIG_MAP)
        await until(lambda: bool(told.lists))
        told.keep(scene, GVK("", "v1", "Secret"))
        await until(lambda: len(told.lists) == 2)
        scene.by_hand("m1", "DELETE")
        told.keep(scene, CONFIG_MAP)
        await until(lambda: len(told.lists) == 3)
        assert told.events == [], "nothing was watched meanwhile"
        assert [names for _, names in told.lists] == [["app"], [], []]
        told.watches.drop("m1")
        await told.watches.close()


async def test_a_cluster_that_is_reached_otherwise_is_watched_anew(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        told = Told()
        told.keep(scene, CONFIG_MAP)
        await until(lambda: len(told.lists) == 1)
        told.keep(scene, CONFIG_MAP)
        configs = load_members(scene.box.kubeconfig, STORE.clusters.values())
        anew = scene.members.reached_by({"m2": configs["m2"]}).reached_by(configs)
        told.keep(scene._replace(members=anew), CONFIG_MAP)
        await until(lambda: len(told.lists) == 2)
        scene.by_hand("m1", "PATCH", {"data": {"value": "2"}})
        await until(lambda: told.events == [("MODIFIED", "app")])
        await told.watches.close()


async def test_a_watch_that_is_not_allowed_is_told_with_the_right_that_is_missing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Source: design#missing-right."""
    async with opened(tmp_path) as scene:
        await scene.apply(STORE)
        scene.box["m1"].permits = lambda verb, *rest: verb != "watch"
        told = Told()
        told.keep(scene, CONFIG_MAP)
        await until(lambda: any("end as soon as they begin" in record.message for record in caplog.records))
        await told.watches.close()
    assert told.troubles == [], "the cluster answers"
    (found,) = (record for record in caplog.records if "end as soon as they begin" in record.message)
    assert "cannot watch configmaps at the cluster scope; 'reconciler doctor --rbac full'" in str(vars(found)["error"])
