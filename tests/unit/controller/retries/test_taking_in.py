"""Results of lanes are recorded: at once where it is cheap, and never late for what ends the service."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from reconciler.controller.inbox import Inbox
from reconciler.controller.retries.workers import ClusterWorkers
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.errors import FleetHeld
from tests.fakes.clocks import TestClock

NOW = "2026-11-21T10:00:00Z"


class Scene:
    """Lanes that go on until they are told to end, and a clock that stands."""

    def __init__(self, *clusters: str) -> None:
        self.clock = TestClock()
        self.lanes = ClusterWorkers(Inbox(), self.clock)
        self.ends = {name: asyncio.get_running_loop().create_future() for name in clusters}
        for name, end in self.ends.items():
            self.lanes.begin(name, self._writing(end), revision="r1", now=NOW, identities=frozenset())

    @staticmethod
    async def _writing(end: asyncio.Future[None]) -> AsyncIterator[list[ChangeResult]]:
        await end
        yield []

    async def ended(self, name: str, fault: Exception | None = None) -> None:
        end = self.ends[name]
        end.set_result(None) if fault is None else end.set_exception(fault)
        while not self.lanes.has_ended:
            await asyncio.sleep(0)

    def is_due(self) -> bool:
        return self.lanes.is_end_due

    def took(self, seconds: float) -> None:
        """Taking in took so long."""
        begun_s = self.clock.monotonic_s()
        self.clock.advance(seconds)
        self.lanes.collect()
        self.lanes.recorded(begun_s)


async def test_a_lane_that_ends_beside_others_is_taken_in_at_once_where_that_is_cheap() -> None:
    scene = Scene("m1", "m2")
    assert not scene.is_due()
    await scene.ended("m1")
    assert scene.is_due()
    await scene.lanes.close()


async def test_where_it_takes_long_it_is_put_off_by_ten_times_that() -> None:
    scene = Scene("m1", "m2", "m3")
    await scene.ended("m1")
    scene.took(0.5)
    await scene.ended("m2")
    assert not scene.is_due()
    assert scene.lanes.pause_s == 1.0
    scene.clock.advance(4.5)
    assert not scene.is_due()
    assert scene.lanes.pause_s == pytest.approx(0.5)
    scene.clock.advance(0.5)
    assert scene.is_due()
    await scene.lanes.close()


async def test_the_last_one_is_waited_for_by_nobody() -> None:
    scene = Scene("m1", "m2")
    await scene.ended("m1")
    scene.took(0.5)
    await scene.ended("m2")
    assert scene.is_due()


async def test_what_ends_the_service_is_told_at_once() -> None:
    scene = Scene("m1", "m2", "m3")
    await scene.ended("m1")
    scene.took(0.5)
    await scene.ended("m2", FleetHeld("by another journal"))
    assert scene.is_due()
    with pytest.raises(FleetHeld):
        scene.lanes.collect()
    await scene.lanes.close()
