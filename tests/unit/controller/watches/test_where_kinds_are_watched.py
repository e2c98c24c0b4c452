"""A kind is watched where it is placed, from its first object on; elsewhere a resync lists it. On embedded clusters.

Source: design#events-are-nudges. No resync is due by itself in these tests: what is seen without one, a watch told.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.unit.controller.test_loop import Running, running


def put_copy(scene: Running, source: str, target: str) -> None:
    """Restore an object of one cluster in another one, marks included, as a person may."""
    live: Any = scene.box[source].state.get("ConfigMap", "demo", "app")
    metadata = {key: live["metadata"][key] for key in ("name", "namespace", "labels", "annotations", "managedFields")}
    scene.box[target].state.put({**live, "metadata": metadata})


async def test_a_watch_begins_where_a_kind_comes_and_what_is_edited_there_is_taken_back(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1")
        await scene.until(lambda: scene.value("m1") == "1")
        scene.app("1", "m1", "m2")
        await scene.until(lambda: scene.value("m2") == "1")
        for number in range(2):
            scene.by_hand("m2", f"theirs {number}")
            await scene.until(lambda: scene.value("m2") == "1")


async def test_an_edit_where_the_last_copy_is_to_leave_is_no_reason_to_keep_it(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1", "m2")
        await scene.until(lambda: scene.value("m2") == "1")
        scene.app("1", "m1")
        await scene.until(lambda: scene.value("m2") is None)
        scene.by_hand("m1", "theirs")
        await scene.until(lambda: scene.value("m1") == "1")
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m2") == "2")
        scene.by_hand("m2", "theirs")
        await scene.until(lambda: scene.value("m2") == "2")


async def test_what_carries_our_mark_where_nothing_of_its_kind_is_placed_is_found_by_a_resync(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1")
        await scene.until(lambda: scene.value("m1") == "1")
        put_copy(scene, "m1", "m2")
        scene.loop.wake()
        await scene.until(lambda: [found.code for found in scene.vitals.snapshot.problems] == ["not-deleted"])
        assert scene.value("m2") == "1", "nobody applied it, so that nobody takes it away either"


async def test_a_cluster_with_nothing_of_ours_is_noticed_when_it_goes_away(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1")
        await scene.until(lambda: scene.value("m1") == "1")
        await scene.until(lambda: scene.vitals.snapshot.clusters["m2"].is_up)
        await scene.box.servers["m2"].stop()
        await scene.until(lambda: not scene.vitals.snapshot.clusters["m2"].is_up)
        await scene.box.servers["m2"].start()
        await scene.until(lambda: scene.vitals.snapshot.clusters["m2"].is_up)
