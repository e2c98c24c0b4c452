"""Lasting conditions go on while a broken file freezes their object: in status, log, history and metrics.

Over rounds and restarts. Source: design#broken-input; design#history; design#promise-3.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.fakes.worlds import config_map
from tests.unit.controller.test_history_told import restarted, round_over_everything, told
from tests.unit.controller.test_loop import BROKEN, Running, events_of, running
from tests.unit.controller.vitals.test_states import by_hand, shown, troubles


async def an_object_in_the_way(scene: Running) -> None:
    """Somebody else's `other` in m1."""
    by_hand(scene, "POST", "", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}})
    scene.app("1", "m1", "m2", name="other")
    await scene.until(lambda: shown(scene, "m1") == {"synced": 2, "refused": 1} and shown(scene, "m2") == {"synced": 3})


async def frozen(scene: Running, cluster: str = "m1") -> None:
    """An unrelated file is no YAML any more, and nobody knows what it said before, so that it may speak of anything."""
    advanced = len(told(scene, "advanced"))
    scene.put(unrelated=[config_map("unrelated")])
    await scene.until(lambda: len(told(scene, "advanced")) > advanced)
    store = scene.parts.store
    store._good.pop("unrelated.yaml")
    store._remembered["unrelated.yaml"] = "a blob that is lost"
    scene.put(unrelated=BROKEN)
    await scene.until(lambda: bool(told(scene, "store-broken")))
    await scene.until(lambda: shown(scene, cluster).get("frozen", 0) > 0)


async def mended(scene: Running) -> None:
    scene.put(unrelated=None)
    await scene.until(lambda: bool(told(scene, "store-mended")) and "frozen" not in shown(scene, "m1"))
    await round_over_everything(scene)


async def test_an_object_is_in_the_way_while_an_unrelated_file_is_broken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "reconciler")
    async with running(tmp_path) as scene:
        await an_object_in_the_way(scene)
        await frozen(scene)
        await round_over_everything(scene)
        assert shown(scene, "m1") == {"frozen": 3}
        said = {state: why for cluster, state, why in troubles(scene) if "other" in why and cluster == "m1"}
        assert said["frozen"].startswith("frozen: unrelated.yaml:")
        assert "last known: refused, ConfigMap demo/other exists" in said["frozen"]
        await restarted(scene)
        await round_over_everything(scene)
        assert not told(scene, "way-is-free")
        assert "WayIsFree" not in events_of(caplog)
        await mended(scene)
        assert shown(scene, "m1") == {"synced": 2, "refused": 1}
        assert len(told(scene, "object-refused")) == events_of(caplog).count("ObjectRefused") == 1
        assert not told(scene, "way-is-free")
        by_hand(scene, "DELETE", "/other")
        scene.app("2", "m1", "m2", name="other")
        await scene.until(lambda: shown(scene, "m1") == {"synced": 3})
        assert len(told(scene, "way-is-free")) == events_of(caplog).count("WayIsFree") == 1
        (begun,), (over,) = told(scene, "frozen"), told(scene, "freeze-over")
        assert "unrelated.yaml" in begun.data["why"]
        assert (begun.data["clusters"], over.data["since"]) == (["m1", "m2"], begun.time)
        assert events_of(caplog).count("Frozen") == events_of(caplog).count("FreezeOver") == 1


async def test_a_held_deletion_is_held_while_an_unrelated_file_is_broken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "reconciler")
    async with running(tmp_path, guards={"maxDeletes": 0}) as scene:
        scene.app("1", "m1", "m2", name="other")
        await scene.until(lambda: shown(scene, "m1") == shown(scene, "m2") == {"synced": 3})
        scene.put(other=None)
        await scene.until(lambda: shown(scene, "m1") == shown(scene, "m2") == {"synced": 2, "held": 1})
        await round_over_everything(scene)
        since = scene.journal.losses().held_since
        assert since.keys() == {"m1", "m2"}
        await frozen(scene)
        await round_over_everything(scene)
        # What was lost before counts for as long as that is held, which a freeze does not end.
        assert scene.journal.losses().held_since == since
        document: Any = scene.journal.state()
        assert [(one["cluster"], one["resource"]["name"]) for one in document["held"]] == [
            ("m1", "other"),
            ("m2", "other"),
        ]
        assert scene.vitals.snapshot.held["guard"] == 2
        await restarted(scene)
        await round_over_everything(scene)
        await mended(scene)
        await scene.until(lambda: shown(scene, "m1") == {"synced": 2, "held": 1})
        assert [event.subject for event in told(scene, "held")] == ["cluster m1", "cluster m2"]
        assert not told(scene, "hold-over")
        assert events_of(caplog).count("ChangeHeld") == 2
        assert "HoldOver" not in events_of(caplog)


async def test_what_was_known_is_known_still_when_a_cluster_was_away_as_a_file_broke(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "reconciler")
    async with running(tmp_path) as scene:
        await an_object_in_the_way(scene)
        await scene.box.servers["m1"].stop()
        await scene.until(lambda: bool(told(scene, "cluster-away")))
        await frozen(scene, "m2")
        await scene.box.servers["m1"].start()
        await scene.until(lambda: bool(told(scene, "cluster-back")) and shown(scene, "m1") == {"frozen": 3})
        said = [why for cluster, _, why in troubles(scene) if "other" in why and cluster == "m1"]
        assert any("last known: refused, ConfigMap demo/other exists" in why for why in said)
        await mended(scene)
        assert shown(scene, "m1") == {"synced": 2, "refused": 1}
        assert len(told(scene, "object-refused")) == events_of(caplog).count("ObjectRefused") == 1
        assert not told(scene, "way-is-free")
        assert events_of(caplog).count("ClusterUnreachable") == events_of(caplog).count("ClusterRecovered") == 1


async def test_the_table_of_policies_says_what_is_known_of_what_is_frozen(tmp_path: Path) -> None:
    def row(scene: Running) -> dict[str, Any]:
        document: Any = scene.journal.state()
        return {key: value for key, value in document["policies"][0].items() if key != "policy"}

    async with running(tmp_path) as scene:
        before = row(scene)
        assert (before["resources"], before["clusters"]) == (1, ["m1", "m2"])
        await frozen(scene)
        assert row(scene) == {**before, "frozen": 1}
        await restarted(scene)
        assert row(scene) == {**before, "frozen": 1}
        await mended(scene)
        assert row(scene) == before
