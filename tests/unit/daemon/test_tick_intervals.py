"""How often the service looks for replicas without a node. Source: design, row "descheduler"."""

from __future__ import annotations

from pathlib import Path

from tests.unit.daemon.ticking import ticking

HOURLY = {"descheduling": {"interval": "1h", "unschedulableThreshold": "1s"}}


async def test_replicas_without_a_node_move_at_the_next_look_and_not_before(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 8}, settings=HOURLY) as scene:
        scene.web(replicas=4)
        await scene.until(lambda: sum(scene.ready().values()) == 4 and len(scene.ready()) == 2)
        scene.box["m1"].set_capacity("n1", cpu="0")
        scene.web(replicas=4, image="nginx:2")
        for _ in range(3):
            scene.clock.jump(60)
            await scene.rounds()
        assert (scene.journal.constraints(), sorted(scene.replicas())) == ((), ["m1", "m2"])
        scene.clock.jump(3600)
        await scene.until(lambda: scene.ready() == {"m2": 4})


async def test_a_restart_does_not_begin_the_interval_anew(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 8}, settings=HOURLY) as scene:
        scene.web(replicas=4)
        await scene.until(lambda: sum(scene.ready().values()) == 4 and len(scene.ready()) == 2)
        scene.box["m1"].set_capacity("n1", cpu="0")
        scene.web(replicas=4, image="nginx:2")
        for _ in range(4):
            await scene.rounds()
            assert scene.journal.constraints() == ()
            await scene.stop()
            scene.clock.jump(1000)
            scene.restart()
        await scene.until(lambda: scene.ready() == {"m2": 4})
