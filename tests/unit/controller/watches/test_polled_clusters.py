"""A fleet that is polled, on embedded clusters: what it sees without a stream, when, and by which requests.

`SOON`: each cluster has its turn within a second of ours. `NEVER`: no turn comes during a test, so that what is seen
was not seen by one.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.controller.round.owner_record import holder_name
from reconciler.sim import Fault, FaultKind, NodeSpec, Request
from tests.fakes.hands import CONFIG_MAPS, ask
from tests.fakes.worlds import deployment, policy
from tests.unit.controller.test_loop import Running, running
from tests.unit.controller.watches.test_where_kinds_are_watched import put_copy

SOON: Any = {"mode": "poll", "resync": "20s"}
NEVER: Any = {"mode": "poll", "resync": "100h"}


class Asked:
    """The requests of each server since this began."""

    def __init__(self, scene: Running) -> None:
        self.by: dict[str, list[Request]] = {name: [] for name in scene.box.names}
        for name in scene.box.names:
            scene.box.servers[name].faults.order(Fault(kind=FaultKind.INTERNAL), when=partial(self._saw, name))

    def _saw(self, cluster: str, request: Request) -> bool:
        """Note it, and let no fault strike."""
        self.by[cluster].append(request)
        return False

    @property
    def watches(self) -> list[Request]:
        return [request for found in self.by.values() for request in found if "watch" in request.query]

    def of(self, cluster: str, plural: str = "configmaps") -> list[Request]:
        """Reads of objects of ours: the marks of who holds the fleet are left out."""
        return [
            request
            for request in self.by[cluster]
            if request.method == "GET" and f"/{plural}" in request.path and "fleet-system" not in request.path
        ]

    def clear(self) -> None:
        for found in self.by.values():
            found.clear()


def delete(scene: Running, cluster: str) -> None:
    ask(scene.box[cluster], "DELETE", f"{CONFIG_MAPS}/app")
    assert scene.value(cluster) is None


def is_list(request: Request) -> bool:
    return request.path.endswith("/configmaps") and request.method == "GET"


async def turned(scene: Running, asked: Asked, cluster: str = "m1", times: int = 2) -> None:
    """Return once the cluster was listed so often."""
    asked.clear()
    await scene.until(lambda: sum(map(is_list, asked.of(cluster))) >= times)


async def test_what_is_edited_or_deleted_is_put_back_within_a_resync_and_no_stream_is_opened(tmp_path: Path) -> None:
    async with running(tmp_path, drift=SOON) as scene:
        asked = Asked(scene)
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: scene.value("m1") == "1")
        delete(scene, "m2")
        await scene.until(lambda: scene.value("m2") == "1")
        assert scene.vitals.drifts["m1"] == 1
        assert asked.watches == []


async def test_where_nothing_changed_lists_of_metadata_from_memory_are_all_that_is_read(tmp_path: Path) -> None:
    async with running(tmp_path, drift=SOON) as scene:
        asked = Asked(scene)
        await turned(scene, asked)
        read = asked.of("m1")
        assert all(is_list(request) for request in read), [request.path for request in read]
        assert all("PartialObjectMetadataList" in request.accept for request in read)
        assert all(request.query.get("resourceVersion") == "0" for request in read)
        assert all("labelSelector" in request.query for request in read)


async def test_of_many_objects_only_the_one_that_changed_is_read_in_full(tmp_path: Path) -> None:
    async with running(tmp_path, drift=SOON) as scene:
        for number in range(6):
            scene.app("1", "m1", "m2", name=f"more-{number}")
        await scene.until(lambda: all(scene.value("m1", f"more-{number}") == "1" for number in range(6)))
        await scene.quiet()
        asked = Asked(scene)
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: scene.value("m1") == "1")
        await turned(scene, asked)
        whole = [r for r in asked.of("m1") if "PartialObjectMetadataList" not in r.accept]
        assert {request.path.rpartition("/")[2] for request in whole} <= {"app"}
        assert not [r for r in asked.of("m2") if "PartialObjectMetadataList" not in r.accept]


async def test_a_commit_is_written_at_once(tmp_path: Path) -> None:
    async with running(tmp_path, drift=NEVER) as scene:
        asked = Asked(scene)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2" and scene.value("m2") == "2")
        assert asked.watches == []


async def test_a_commit_changes_the_mode_in_a_running_service(tmp_path: Path) -> None:
    async with running(tmp_path, drift=NEVER) as scene:
        asked = Asked(scene)
        scene.settings["drift"] = {"mode": "watch", "resync": "100h"}
        scene.put()
        await scene.until(lambda: bool(asked.watches))
        await scene.quiet()
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: scene.value("m1") == "1")
        scene.settings["drift"] = SOON
        scene.put()
        await turned(scene, asked)
        asked.clear()
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: scene.value("m1") == "1")
        assert asked.watches == []


def health_of(scene: Running, cluster: str) -> dict[str, int]:
    return {word: count for word, count in scene.vitals.snapshot.clusters[cluster].healths.items() if count}


async def test_the_health_of_what_was_just_written_is_told_without_a_turn(tmp_path: Path) -> None:
    async with running(tmp_path, drift=NEVER) as scene:
        asked = Asked(scene)
        scene.box["m1"].remove_node("n1")
        scene.put(web=[deployment("web"), policy("Deployment", "m1", name="web")])
        await scene.until(lambda: health_of(scene, "m1").get("Progressing", 0) == 1)
        scene.box["m1"].add_node(NodeSpec(name="n2"))
        await scene.until(lambda: health_of(scene, "m1") == {"Healthy": 3})
        assert asked.watches == []


async def test_a_workload_moves_once_its_new_copies_serve(tmp_path: Path) -> None:
    def is_there(cluster: str) -> bool:
        return scene.box[cluster].state.get("Deployment", "demo", "web") is not None

    async with running(tmp_path, drift=NEVER) as scene:
        leaves: Any = {"preserveResourcesOnDeletion": False}
        scene.put(web=[deployment("web"), policy("Deployment", "m1", name="web", **leaves)])
        await scene.until(lambda: health_of(scene, "m1") == {"Healthy": 3})
        scene.box["m2"].remove_node("n1")
        scene.put(web=[deployment("web"), policy("Deployment", "m2", name="web", **leaves)])
        await scene.until(lambda: health_of(scene, "m2").get("Progressing", 0) == 1)
        await scene.quiet()
        assert is_there("m1"), "the new copy does not serve yet"
        scene.box["m2"].add_node(NodeSpec(name="n2"))
        await scene.until(lambda: not is_there("m1"))


@pytest.mark.parametrize(
    "kind", [FaultKind.EMPTY_LIST, FaultKind.PARTIAL_LIST, FaultKind.EXPIRED, FaultKind.TRUNCATED, FaultKind.INTERNAL]
)
async def test_a_list_that_fails_or_lacks_items_makes_nothing_absent(tmp_path: Path, kind: FaultKind) -> None:
    async with running(tmp_path, drift=SOON) as scene:
        for number in range(3):
            scene.app("1", "m1", "m2", name=f"more-{number}")
        await scene.until(lambda: all(scene.value("m2", f"more-{number}") == "1" for number in range(3)))
        await scene.quiet()
        before, asked = scene.writes(), Asked(scene)
        scene.box.servers["m1"].faults.order(Fault(kind=kind), when=is_list, times=6)
        await scene.until(lambda: len(scene.box.servers["m1"].faults.struck) == 6)
        await turned(scene, asked)
        await scene.quiet()
        assert scene.writes() == before
        await scene.until(lambda: scene.vitals.snapshot.clusters["m1"].is_up)


async def test_a_cluster_that_hangs_holds_up_no_turn_of_another_one(tmp_path: Path) -> None:
    async with running(tmp_path, drift=SOON) as scene:
        scene.box.servers["m2"].pause()
        for number in range(2):
            scene.by_hand("m1", f"theirs {number}")
            await scene.until(lambda: scene.value("m1") == "1")
        await scene.until(lambda: not scene.vitals.snapshot.clusters["m2"].is_up)
        scene.box.servers["m2"].resume()
        await scene.until(lambda: scene.vitals.snapshot.clusters["m2"].is_up)
        scene.by_hand("m2", "theirs")
        await scene.until(lambda: scene.value("m2") == "1")


async def test_another_cluster_under_the_name_is_not_read_and_not_written_to(tmp_path: Path) -> None:
    async with running(tmp_path, drift=SOON) as scene:
        system: Any = scene.box["m2"].state.get("Namespace", "", "kube-system")
        scene.box["m2"].state.put({**system, "metadata": {**system["metadata"], "uid": "of-another-cluster"}})
        await scene.until(lambda: not scene.vitals.snapshot.clusters["m2"].is_up)
        scene.by_hand("m2", "theirs")
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2")
        await scene.quiet()
        assert scene.value("m2") == "theirs"


async def test_another_cluster_is_not_written_to_before_its_turn_either(tmp_path: Path) -> None:
    async with running(tmp_path, drift=NEVER) as scene:
        system: Any = scene.box["m2"].state.get("Namespace", "", "kube-system")
        scene.box["m2"].state.put({**system, "metadata": {**system["metadata"], "uid": "of-another-cluster"}})
        path = "/api/v1/namespaces/fleet-system/configmaps/" + holder_name("test")
        ask(scene.box["m2"], "DELETE", path)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2")
        await scene.until(lambda: scene.vitals.changes["m2", "update", "failed"] > 0)
        assert scene.value("m2") == "1"


async def test_what_was_edited_while_the_service_was_down_is_put_back(tmp_path: Path) -> None:
    async with running(tmp_path, drift=NEVER) as scene:
        await scene.stop()
        scene.source.forget()
        scene.by_hand("m1", "theirs")
        scene.start(scene.parts)
        await scene.until(lambda: scene.value("m1") == "1")


async def test_what_carries_our_mark_and_was_never_applied_is_told(tmp_path: Path) -> None:
    async with running(tmp_path, drift=SOON) as scene:
        scene.app("1", "m1")
        await scene.until(lambda: scene.value("m2") is None)
        await scene.quiet()
        put_copy(scene, "m1", "m2")
        await scene.until(lambda: [found.code for found in scene.vitals.snapshot.problems] == ["not-deleted"])
        asked = Asked(scene)
        await turned(scene, asked, "m2")
        assert scene.value("m2") == "1"
        assert all("PartialObjectMetadataList" in request.accept for request in asked.of("m2")), "it was told once"


async def test_without_the_right_to_list_what_was_applied_is_read_by_name(tmp_path: Path) -> None:
    async with running(tmp_path, drift=SOON) as scene:
        faults = scene.box.servers["m1"].faults
        faults.order(Fault(kind=FaultKind.FORBIDDEN), when=is_list, times=10**6)
        for number in range(2):
            scene.by_hand("m1", f"theirs {number}")
            await scene.until(lambda: scene.value("m1") == "1")
        delete(scene, "m1")
        await scene.until(lambda: scene.value("m1") == "1")
        await scene.until(lambda: [found.code for found in scene.vitals.snapshot.problems] == ["right-missing"])
