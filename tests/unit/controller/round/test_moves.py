"""Moves in the control loop, on embedded clusters: the loop's rounds and what it hears between them.

Source: design#moves; design#purge-modes.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.ledger import SuspensionRecord
from reconciler.controller import loop
from reconciler.controller.event_handler import EventHandler
from reconciler.controller.round.dry_runs import dry_run
from reconciler.kube import WatchEvent
from reconciler.planner import Round
from tests.fakes.hands import ask
from tests.unit.controller.ticking import WEB, Ticking, ticking

ROOM = {"m1": 8, "m2": 8}


def on(*clusters: str, **more: Any) -> dict[str, Any]:
    return {"replicas": 2, "policy": {"division": "duplicated", "affinity": list(clusters), **more}}


async def looked(scene: Ticking, times: int = 3) -> None:
    """Return after so many rounds over everything."""
    for _ in range(times):
        scene.wake()
        await scene.rounds(1)


def established(scene: Ticking) -> dict[str, int | None]:
    return {name: rows[WEB].established for name, rows in scene.journal.ledger().items() if WEB in rows}


async def test_a_copy_stays_until_the_new_one_is_up_over_rounds_commits_and_restarts(tmp_path: Path) -> None:
    async with ticking(tmp_path, ROOM, never_ready="m2") as scene:
        scene.web(**on("m1"))
        await scene.until(lambda: scene.ready() == {"m1": 2})
        scene.web(**on("m2"))
        await scene.until(lambda: "m2" in scene.replicas())
        for wanted in (on("m2"), on("m1", "m2"), on("m2")):
            scene.web(**wanted)
            await looked(scene)
            assert scene.ready() == {"m1": 2, "m2": 0}
        await scene.stop()
        scene.restart()
        await looked(scene)
        assert scene.ready() == {"m1": 2, "m2": 0}


async def test_what_begins_to_serve_between_two_rounds_is_known(tmp_path: Path) -> None:
    async with ticking(tmp_path, ROOM) as scene:
        scene.web(**on("m1", "m2"))
        await scene.until(lambda: established(scene) == {"m1": 2, "m2": 2})
        scene.set_well("m2", is_well=False)
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 0})
        scene.web(**{**on("m1", "m2"), "replicas": 1})
        await scene.until(lambda: scene.replicas() == {"m1": 1, "m2": 1})


def in_the_way(scene: Ticking) -> None:
    """Somebody else has a Deployment of that name in m2."""
    pods = {"metadata": {"labels": {"app": "theirs"}}, "spec": {"containers": [{"name": "main", "image": "theirs:1"}]}}
    body = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "demo"},
        "spec": {"replicas": 0, "selector": {"matchLabels": {"app": "theirs"}}, "template": pods},
    }  # fmt: skip
    for path, sent in (
        ("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "demo"}}),
        ("/apis/apps/v1/namespaces/demo/deployments", body),
    ):
        ask(scene.box["m2"], "POST", path, sent)


@pytest.mark.parametrize("obstacle", ["suspended there", "suspended by a person", "in the way"])
async def test_immediately_the_copy_that_serves_in_part_stays_where_nothing_can_be_written(
    tmp_path: Path, obstacle: str
) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 4}) as scene:
        terms = {"decisionConditions": {"tolerationSeconds": 1}, "purgeMode": "Immediately"}
        scene.web(replicas=2, policy={"division": "duplicated", "only": 1, "failover": terms})
        await scene.until(lambda: scene.ready() == {"m1": 2})
        if obstacle == "in the way":
            in_the_way(scene)
        elif obstacle == "suspended there":
            rule = scene.files["rule"]
            scene.put(rule=rule + "  suspension: {dispatchingOnClusters: {clusterNames: [m2]}}\n")
        else:
            scene.journal.suspend(SuspensionRecord(scope="cluster m2"))
        await looked(scene)
        scene.set_well("m1", is_well=False)
        await scene.until(lambda: scene.ready().get("m1") == 0)
        await looked(scene)
        scene.clock.jump(60)
        await looked(scene, 5)
        assert "m1" in scene.replicas()


async def test_a_move_that_makes_no_progress_is_reported_after_ten_minutes(tmp_path: Path) -> None:
    async with ticking(tmp_path, ROOM, never_ready="m2") as scene:
        scene.web(**on("m1"))
        await scene.until(lambda: scene.ready() == {"m1": 2})
        scene.web(**on("m2"))
        await scene.until(lambda: "m2" in scene.replicas())

        def reported() -> list[str]:
            return [found.message for found in scene.vitals.snapshot.problems if found.code == "move-stalled"]

        await looked(scene)
        assert reported() == []
        await scene.stop()
        scene.restart()
        await looked(scene)
        await scene.quiet()
        scene.clock.jump(700)
        await scene.until(lambda: bool(reported()))
        assert "waits for m2 healthy" in reported()[0]
        assert scene.ready()["m1"] == 2
        scene.web(**on("m1"))
        await scene.until(lambda: "m2" not in scene.replicas() and not reported())


async def test_a_copy_that_begins_to_serve_while_a_round_is_at_work_ends_the_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hear, ask = EventHandler.object_changed, dry_run
    heard = asyncio.Event()

    def told(judge: EventHandler, cluster: str, event: WatchEvent) -> None:
        hear(judge, cluster, event)
        if cluster == "m2" and event.object.body.get("status", {}).get("availableReplicas") == 2:
            heard.set()

    monkeypatch.setattr(EventHandler, "object_changed", told)
    async with ticking(tmp_path, ROOM) as scene:
        scene.web(**on("m1", "m2"))
        await scene.until(lambda: established(scene) == {"m1": 2, "m2": 2})
        scene.set_well("m2", is_well=False)
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 0})
        heard.clear()

        async def slowly(planned: Round, *args: Any, **more: Any) -> Round:
            if planned.plan.changes and not heard.is_set():
                scene.set_well("m2", is_well=True)
                await asyncio.wait_for(heard.wait(), 60)
            return await ask(planned, *args, **more)

        monkeypatch.setattr(loop, "dry_run", slowly)
        scene.web(**on("m2"))
        await scene.until(lambda: scene.ready() == {"m2": 2})
