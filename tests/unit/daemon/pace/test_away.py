from __future__ import annotations

import random
from pathlib import Path

from reconciler.daemon.pace.away import Away
from tests.fakes.members import opened

LATER_S = 1000.0


class Steady(random.Random):
    """Jitter that adds nothing."""

    def uniform(self, a: float, b: float) -> float:
        return b


async def test_a_cluster_is_asked_only_when_it_was_missing_and_its_pause_is_over(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Away(Steady())
        assert not await absent.came_back(scene.members, {}, LATER_S)
        absent.was_not_read("m1", 0)
        assert not await absent.came_back(scene.members, {}, 0.5)
        assert await absent.came_back(scene.members, {}, 1)
        absent.was_read("m1")
        assert not await absent.came_back(scene.members, {}, LATER_S)


async def test_each_failure_in_a_row_doubles_the_pause(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Away(Steady())
        absent.was_not_read("m1", 0)
        await scene.box.servers["m1"].stop()
        assert not await absent.came_back(scene.members, {}, 1)
        await scene.box.servers["m1"].start()
        assert not await absent.came_back(scene.members, {}, 2.9)
        assert await absent.came_back(scene.members, {}, 3)


async def test_another_cluster_under_the_name_is_no_comeback(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Away(Steady())
        absent.was_not_read("m1", 0)
        assert not await absent.came_back(scene.members, {"m1": "another uid"}, LATER_S)


async def test_a_second_name_of_a_cluster_that_is_there_is_no_comeback(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Away(Steady())
        absent.was_not_read("m1", 0)
        uid = await scene.members["m1"].identity()
        assert not await absent.came_back(scene.members, {"m2": uid}, LATER_S)
        assert await absent.came_back(scene.members, {"gone": uid}, 2 * LATER_S)


async def test_clusters_that_left_the_fleet_are_forgotten(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Away(Steady())
        absent.was_not_read("m1", 0)
        absent.keep(frozenset({"m2"}))
        assert not await absent.came_back(scene.members, {}, LATER_S)
