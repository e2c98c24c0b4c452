"""A change in one cluster is read and written there: requests counted at the servers. Source: ADR 15."""

from __future__ import annotations

from collections import Counter
from functools import partial
from pathlib import Path

from reconciler.sim import Fault, FaultKind, Request, is_write
from reconciler.state import Lag
from tests.fakes.hands import CONFIG_MAPS, ask
from tests.fakes.worlds import config_map, policy
from tests.unit.controller.test_loop import Running, running

COUNT = 24
"""More than are read one by one in a namespace."""


class Reads:
    def __init__(self, scene: Running) -> None:
        self.of: Counter[str] = Counter()
        for name in scene.box.names:
            faults = scene.box.servers[name].faults
            faults.order(Fault(kind=FaultKind.INTERNAL), when=partial(self._saw, name))

    def _saw(self, cluster: str, request: Request) -> bool:
        """Count, and let no fault strike."""
        is_object = "configmaps" in request.path and "fleet-system" not in request.path
        if request.method == "GET" and is_object and "watch" not in request.query:
            self.of[cluster] += 1
        return False


def many(scene: Running, *clusters: str) -> None:
    """So many ConfigMaps in these clusters; in all without any."""
    chosen = policy("ConfigMap", *clusters, name="many", preserveResourcesOnDeletion=False)
    scene.put(many=[*(config_map(f"c{number}", value="1") for number in range(COUNT)), chosen])


def are_there(scene: Running, cluster: str) -> bool:
    return all(scene.value(cluster, f"c{number}") == "1" for number in range(COUNT))


def edit(scene: Running, cluster: str, name: str) -> None:
    ask(scene.box[cluster], "PATCH", f"{CONFIG_MAPS}/{name}", {"data": {"value": "by hand"}})


async def test_what_is_edited_in_one_cluster_is_read_there_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        many(scene, "m1", "m2")
        await scene.until(lambda: are_there(scene, "m1") and are_there(scene, "m2"))
        await scene.quiet()
        reads = Reads(scene)
        for number in range(COUNT):
            edit(scene, "m1", f"c{number}")
        await scene.until(lambda: are_there(scene, "m1"))
        await scene.quiet()
        assert reads.of["m2"] == 0
        assert reads.of["m1"] <= 2 * COUNT


async def test_a_cluster_that_is_back_is_listed_and_no_other_one(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        many(scene, "m1", "m2")
        await scene.until(lambda: are_there(scene, "m1") and are_there(scene, "m2"))
        await scene.quiet()
        reads = Reads(scene)
        await scene.box.servers["m2"].stop()
        await scene.until(lambda: not scene.vitals.snapshot.clusters["m2"].is_up)
        edit(scene, "m2", "c1")
        await scene.box.servers["m2"].start()
        await scene.until(lambda: are_there(scene, "m2") and scene.vitals.snapshot.clusters["m2"].is_up)
        await scene.quiet()
        assert reads.of["m1"] == 0
        assert 0 < reads.of["m2"] <= COUNT
        assert scene.vitals.snapshot.clusters["m2"].syncs[Lag.SYNCED] > COUNT


async def test_a_cluster_that_joins_is_filled_without_a_look_at_the_others(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.left_out = {"m2"}
        many(scene)
        await scene.until(lambda: are_there(scene, "m1"))
        await scene.quiet()
        assert scene.value("m2", "c1") is None
        reads = Reads(scene)
        scene.left_out = set()
        many(scene)
        await scene.until(lambda: are_there(scene, "m2"))
        await scene.quiet()
        assert reads.of["m1"] == 0


async def test_a_write_that_failed_in_one_cluster_is_tried_again_there_alone(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        reads = Reads(scene)
        faults = scene.box.servers["m1"].faults
        faults.order(Fault(kind=FaultKind.INTERNAL), when=is_write, times=3)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m2") == "2")
        before = reads.of["m2"]
        await scene.until(lambda: scene.value("m1") == "2")
        await scene.quiet()
        assert reads.of["m2"] == before


async def test_a_first_start_with_nothing_to_delete_looks_once_as_any_other(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        many(scene, "m1", "m2")
        await scene.until(lambda: are_there(scene, "m1") and are_there(scene, "m2"))
        await scene.quiet()
        counted = []
        for is_first in (False, True):
            await scene.stop()
            if is_first:
                rows = [row for found in scene.journal.ledger().values() for row in found.values()]
                scene.journal.reset()
                scene.journal.record_applied(rows)
            reads, rounds = Reads(scene), scene.vitals.rounds
            many(scene, "m1", "m2")  # a loop reads what is new
            scene.start(scene.parts)
            await scene.until(lambda rounds=rounds: scene.vitals.rounds > rounds)  # type: ignore[misc]
            await scene.quiet()
            counted.append(dict(reads.of))
        assert scene.journal.complete_rounds() == 1
        assert counted[0] == counted[1]
