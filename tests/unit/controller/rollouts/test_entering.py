"""A beginning is written into clusters; nobody waits for one that keeps its answer. Source: ADR 14, ADR 18."""

from __future__ import annotations

import asyncio
from typing import Any, cast

from reconciler.api.rollout_progress import Record
from reconciler.controller.inbox import Inbox, RolloutEntered
from reconciler.controller.rollouts.requests import Begun, Entering
from reconciler.errors import MemberClusterError
from reconciler.kube import MemberCluster
from tests.fakes.clocks import TestClock

FIRST = {"all": Record(revision="r1", begun_at="2026-11-21T10:00:00Z")}
SECOND = {"all": Record(revision="r2", begun_at="2026-11-21T10:05:00Z")}
MEMBERS = cast("dict[str, MemberCluster]", {"m1": "m1", "m2": "m2"})


class Clusters:
    def __init__(self) -> None:
        self.asked: list[tuple[str, Begun]] = []
        self.answers: dict[str, asyncio.Future[MemberClusterError | None]] = {}
        self.inbox = Inbox()

    async def enter(self, member: MemberCluster, fleet: str, begun: Begun) -> MemberClusterError | None:
        name = cast("str", member)
        self.asked.append((name, begun))
        self.answers[name] = asyncio.get_running_loop().create_future()
        return await self.answers[name]


def entering_of(clusters: Clusters, clock: Any) -> Entering:
    return Entering(clusters.enter, clock, 0.01, clusters.inbox)


async def test_nobody_waits_for_one_that_keeps_its_answer() -> None:
    clusters = Clusters()
    entering = entering_of(clusters, TestClock())
    asking = asyncio.ensure_future(entering.enter("f", MEMBERS, {"m1": FIRST, "m2": FIRST}))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clusters.answers["m1"].set_result(None)
    assert await asking == {"m1": FIRST}
    assert entering.not_ready() == {"m2": "it does not answer"}
    assert await entering.enter("f", MEMBERS, {"m2": FIRST}) == {}
    assert [name for name, _ in clusters.asked] == ["m1", "m2"], "it is asked once"
    clusters.answers["m2"].set_result(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert entering.has_ended
    assert clusters.inbox.take() == (RolloutEntered("m1"), RolloutEntered("m2"))
    assert not entering.not_ready()
    assert await entering.enter("f", MEMBERS, {"m2": FIRST}) == {"m2": FIRST}
    assert not entering.has_ended


async def test_one_that_refuses_is_tried_after_a_pause_that_grows() -> None:
    clusters, clock = Clusters(), TestClock()
    entering = entering_of(clusters, clock)
    for pause_s in (2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0):
        asking = asyncio.ensure_future(entering.enter("f", MEMBERS, {"m1": FIRST}))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        clusters.answers["m1"].set_result(MemberClusterError("m1", "forbidden"))
        assert await asking == {}
        assert entering.not_ready() == {"m1": "m1: forbidden"}
        assert entering.queue.next_s == clock.monotonic_s() + pause_s
        clock.advance(pause_s)
        assert not entering.not_ready()
        assert entering.queue.next_s == float("inf"), "it is due, and waited for no longer"


async def test_what_has_been_superseded_is_forgotten_when_it_is_answered() -> None:
    clusters = Clusters()
    entering = entering_of(clusters, TestClock())
    assert await entering.enter("f", MEMBERS, {"m1": FIRST}) == {}
    assert await entering.enter("f", MEMBERS, {"m1": SECOND}) == {}, "the answer about the first one comes first"
    clusters.answers["m1"].set_result(None)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    entering.drop_ended()
    assert not entering.has_ended
    asking = asyncio.ensure_future(entering.enter("f", MEMBERS, {"m1": SECOND}))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    clusters.answers["m1"].set_result(None)
    assert await asking == {"m1": SECOND}


async def test_the_end_waits_for_nobody() -> None:
    clusters = Clusters()
    entering = entering_of(clusters, TestClock())
    assert await entering.enter("f", MEMBERS, {"m1": FIRST}) == {}
    await entering.close()
    assert clusters.answers["m1"].cancelled()
