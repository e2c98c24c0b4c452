"""Reports of objects in trouble: page, metrics, status and log the same, and never Synced.

Source: design#fights; design#foreign-objects; design#promise-3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.ledger import SuspensionRecord
from reconciler.controller.retries.conflicts import UNDONE_MAX
from tests.fakes.hands import CONFIG_MAPS, ask
from tests.unit.controller.test_loop import Running, events_of, running


def shown(scene: Running, cluster: str) -> dict[str, int]:
    """The counts of a cluster as the page has them, where `status` has the same ones; else nothing."""
    document: Any = scene.journal.state() or {}
    stored = next((found for found in document.get("clusters", ()) if found["name"] == cluster), None)
    vital = scene.vitals.snapshot.clusters.get(cluster)
    if (
        stored is None
        or vital is None
        or dict(vital.syncs) != stored["objects"]
        or dict(vital.healths) != stored["health"]
    ):
        return {}
    return {state: count for state, count in stored["objects"].items() if count}


def troubles(scene: Running) -> list[tuple[str, str, str]]:
    document: Any = scene.journal.state() or {}
    return [(found["cluster"], found["state"], found["why"]) for found in document.get("troubles", ())]


def by_hand(scene: Running, method: str, name: str, body: dict[str, Any] | None = None) -> None:
    """A person makes or deletes a ConfigMap in m1."""
    ask(scene.box["m1"], method, f"{CONFIG_MAPS}{name}", body)


async def test_what_is_fought_over_is_so_as_long_as_we_hold_back(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as scene:
        for number in range(UNDONE_MAX):
            scene.by_hand("m1", f"x{number}")
            await scene.until(lambda: scene.value("m1") == "1")
        await scene.until(lambda: "FightDetected" in events_of(caplog))
        await scene.until(lambda: shown(scene, "m1").get("fought") == 1)
        scene.by_hand("m1", "undone again")
        await scene.quiet()
        assert scene.value("m1") == "undone again"
        assert shown(scene, "m1") == {"synced": 1, "fought": 1}
        ((cluster, state, why),) = troubles(scene)
        assert (cluster, state) == ("m1", "fought")
        assert why.startswith("kubectl keeps undoing our changes of data.value; it is left alone until ")
        assert scene.vitals.fights["m1"] == 1
        assert shown(scene, "m2") == {"synced": 2}


async def test_a_foreign_object_in_the_way_is_refused_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "reconciler")
    async with running(tmp_path) as scene:
        by_hand(scene, "POST", "", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}})
        scene.app("1", "m1", "m2", name="other")
        await scene.until(lambda: shown(scene, "m1") == {"synced": 2, "refused": 1})
        await scene.until(lambda: shown(scene, "m2") == {"synced": 3})
        (told,) = [record for record in caplog.records if getattr(record, "event", "") == "ObjectRefused"]
        assert (told.cluster, told.obj, told.err_code) == ("m1", "ConfigMap demo/other", "object-not-ours")  # type: ignore[attr-defined] # the fields of a log line
        by_hand(scene, "DELETE", "/other")
        scene.app("2", "m1", "m2", name="other")
        await scene.until(lambda: shown(scene, "m1") == {"synced": 3})
        assert events_of(caplog).count("WayIsFree") == 1


async def test_nothing_is_known_of_a_cluster_that_is_away(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        assert shown(scene, "m2") == {"synced": 2}
        await scene.box.servers["m2"].stop()
        await scene.until(lambda: shown(scene, "m2") == {"unknown": 2})
        document: Any = scene.journal.state()
        (away,) = [found for found in document["clusters"] if found["name"] == "m2"]
        assert (away["up"], bool(away["why"]), bool(away["lastSuccess"])) == (False, True, True)
        assert shown(scene, "m1") == {"synced": 2}
        await scene.box.servers["m2"].start()
        await scene.until(lambda: shown(scene, "m2") == {"synced": 2})


async def test_what_a_removed_cluster_holds_is_shown_as_left(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.left_out = {"m2"}
        scene.app("1", "m1")
        await scene.until(lambda: shown(scene, "m2") == {"left": 2})
        assert scene.vitals.snapshot.clusters["m2"].is_left
        assert scene.value("m2") == "1"
        scene.left_out = set()
        scene.app("1", "m1", "m2")
        await scene.until(lambda: shown(scene, "m2") == {"synced": 2})


async def test_what_is_suspended_is_held(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.journal.suspend(SuspensionRecord(scope="cluster m1", reason="freeze", who="li@host"))
        scene.app("2", "m1", "m2")
        await scene.until(lambda: shown(scene, "m1") == {"synced": 1, "held": 1})
        await scene.until(lambda: scene.value("m2") == "2" and shown(scene, "m2") == {"synced": 2})
        assert scene.vitals.snapshot.held["suspended"] == 1
        assert scene.value("m1") == "1"
