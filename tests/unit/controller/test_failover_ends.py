"""The effect of an exclusion's end. Source: design#end-of-an-exclusion: it takes nothing from its successors."""

from __future__ import annotations

from pathlib import Path

from tests.unit.controller.ticking import ticking


async def test_the_end_of_an_exclusion_takes_nothing_from_where_it_went(tmp_path: Path) -> None:
    """Divided by free room: m1 has more of it, is well again, and gets nothing back."""
    async with ticking(tmp_path, {"m1": 8, "m2": 4}) as scene:
        terms = {"division": "aggregated", "failover": {"decisionConditions": {"tolerationSeconds": 1}}}
        scene.web(replicas=2, policy=terms)
        await scene.until(lambda: scene.ready() == {"m1": 2})
        scene.set_well("m1", is_well=False)
        await scene.until(lambda: scene.ready() == {"m2": 2})
        scene.set_well("m1", is_well=True)
        (exclusion,) = scene.journal.constraints()
        scene.clock.jump(700)
        await scene.rounds()
        assert exclusion.until < scene.clock.later(0)
        assert scene.replicas() == {"m2": 2}


async def test_where_a_placement_has_no_memory_the_end_of_an_exclusion_brings_replicas_back(tmp_path: Path) -> None:
    async with ticking(tmp_path, {"m1": 8, "m2": 8}) as scene:
        failover = {"purgeMode": "Immediately", "decisionConditions": {"tolerationSeconds": 1}}
        scene.web(replicas=4, policy={"division": "static", "failover": failover})
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 2})
        scene.set_well("m1", is_well=False)
        await scene.until(lambda: scene.ready() == {"m2": 4})
        scene.set_well("m1", is_well=True)
        scene.clock.jump(700)
        await scene.until(lambda: scene.ready() == {"m1": 2, "m2": 2})
