"""The interval at which the service looks for replicas without a node. Source: design#descheduler."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from reconciler.controller import timetable as ticks
from reconciler.scheduler import Proposal, propose
from tests.unit.controller.ticking import Ticking, ticking

ROOM = {"m1": 8, "m2": 8}
INTERVAL_S = 1_000_000
"""Far longer than a test lasts, however slow the machine is: time passes twenty times as fast here."""
SELDOM: Mapping[str, Any] = {
    "descheduling": {"interval": f"{INTERVAL_S}s", "unschedulableThreshold": "1s"},
    "drift": {"resync": "10000h"},
}


async def lose_room(scene: Ticking) -> None:
    """`web` runs in both clusters, and then a new pod of it waits for a node in m1."""
    scene.web(replicas=4)
    await scene.until(lambda: sum(scene.ready().values()) == 4 and len(scene.ready()) == 2)
    scene.box["m1"].set_capacity("n1", cpu="0")
    scene.web(replicas=4, image="nginx:2")
    await scene.until(lambda: any(not pod["spec"].get("nodeName") for pod in scene.box["m1"].state.each("Pod")))


async def test_replicas_without_a_node_move_at_the_next_look_and_not_before(tmp_path: Path) -> None:
    async with ticking(tmp_path, ROOM, settings=SELDOM) as scene:
        await lose_room(scene)
        for _ in range(3):
            scene.clock.jump(60)
            await scene.rounds(2)
        assert (scene.journal.constraints(), sorted(scene.replicas())) == ((), ["m1", "m2"])
        scene.clock.jump(INTERVAL_S)
        await scene.until(lambda: scene.ready() == {"m2": 4})


async def test_a_look_that_falls_due_during_a_round_is_taken_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds: list[bool] = []
    async with ticking(tmp_path, ROOM, settings=SELDOM) as scene:
        await lose_room(scene)

        def slow(*args: Any, deschedules: bool, **more: Any) -> Proposal:
            if not rounds:
                scene.clock.jump(INTERVAL_S)
            rounds.append(deschedules)
            return propose(*args, deschedules=deschedules, **more)

        monkeypatch.setattr(ticks, "propose", slow)
        await scene.until(lambda: scene.ready() == {"m2": 4})
    assert rounds[:2] == [False, True]


async def test_a_restart_does_not_begin_the_interval_anew(tmp_path: Path) -> None:
    async with ticking(tmp_path, ROOM, settings=SELDOM) as scene:
        await lose_room(scene)
        for _ in range(4):
            await scene.rounds()
            assert scene.journal.constraints() == ()
            await scene.stop()
            scene.clock.jump(INTERVAL_S * 0.3)
            scene.restart()
        await scene.until(lambda: scene.ready() == {"m2": 4})
