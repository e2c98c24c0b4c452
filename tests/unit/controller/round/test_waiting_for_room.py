"""Unplaced replicas are not forgotten. Source: design#not-enough-room: they are tried again."""

from __future__ import annotations

from pathlib import Path

from tests.unit.controller.ticking import WEB, ticking


async def test_what_found_no_room_is_placed_as_soon_as_there_is_some(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 1, "m2": 1}) as scene:
        scene.web(replicas=3, cpu=2)
        await scene.until(lambda: any(found.code == "not-enough-capacity" for found in scene.vitals.snapshot.problems))
        await scene.rounds()
        assert scene.replicas() == {}
        scene.box["m2"].set_capacity("n1", cpu="8")
        await scene.until(lambda: scene.ready() == {"m2": 3})
        await scene.until(lambda: WEB in scene.journal.previous_placements())
        assert [target.cluster for target in scene.journal.previous_placements()[WEB].targets] == ["m2"]
        await scene.until(
            lambda: not any(found.code == "not-enough-capacity" for found in scene.vitals.snapshot.problems)
        )
