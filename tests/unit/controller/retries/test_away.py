from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import pytest

from reconciler.controller.retries.kind_faults import UnreachableClusters
from reconciler.errors import ClusterUnreachable
from reconciler.kube import MemberClusters, MemberConfig, UserAgent
from tests.fakes.clocks import TestClock
from tests.fakes.members import opened
from tests.fakes.scripted_server import ScriptedServer, reply

LATER_S = 1000.0


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[tuple[ScriptedServer, MemberClusters]]:
    """Cluster m1, whose server answers always the same."""
    async with ScriptedServer(answer) as server:
        config = MemberConfig(name="m1", server=server.url)
        async with MemberClusters.open({"m1": config}, agent=UserAgent("f")) as members:
            yield server, members


class _Silent:
    """A cluster that does not answer, and counts how often it is asked."""

    asked = 0
    why = "no answer"

    async def identity(self, *, is_anew: bool) -> str:
        self.asked += 1
        raise ClusterUnreachable("m", self.why)


class Asker:
    """Clusters that were away, on a clock that stands still until told."""

    def __init__(self) -> None:
        self.clock = TestClock()
        self.away = UnreachableClusters(self.clock, lambda: 0.0)
        self.reachable: dict[str, str] = {}

    async def reconnected(self, members: MemberClusters, uids: Mapping[str, str], now_s: float) -> list[str]:
        self.clock.advance(now_s - self.clock.monotonic_s())
        return await self.away.reconnected(members, uids, self.reachable)


async def test_a_cluster_is_asked_only_when_it_was_missing_and_its_pause_is_over(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Asker()
        assert not await absent.reconnected(scene.members, {}, LATER_S)
        absent.away.was_not_read("m1")
        assert not await absent.reconnected(scene.members, {}, LATER_S + 0.5)
        assert await absent.reconnected(scene.members, {}, LATER_S + 1)
        absent.away.queue.forget("m1")
        assert not await absent.reconnected(scene.members, {}, 2 * LATER_S)


async def test_the_reason_of_a_cluster_that_is_back_is_forgotten(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Asker()
        absent.away.was_not_read("m1")
        assert await absent.reconnected(scene.members, {}, LATER_S)
        absent.away.queue.forget("m1")
        await absent.reconnected(scene.members, {}, 2 * LATER_S)
        assert not absent.away._reasons


async def test_each_failure_in_a_row_doubles_the_pause(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Asker()
        absent.away.was_not_read("m1")
        await scene.box.servers["m1"].stop()
        assert not await absent.reconnected(scene.members, {}, 1)
        await scene.box.servers["m1"].start()
        assert not await absent.reconnected(scene.members, {}, 2.9)
        assert await absent.reconnected(scene.members, {}, 3)


async def test_another_cluster_under_the_name_is_no_comeback(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Asker()
        absent.away.was_not_read("m1")
        assert not await absent.reconnected(scene.members, {"m1": "another uid"}, LATER_S)


async def test_a_second_name_of_a_cluster_that_is_there_is_no_comeback(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Asker()
        absent.away.was_not_read("m1")
        uid = await scene.members["m1"].identity()
        assert not await absent.reconnected(scene.members, {"m2": uid}, LATER_S)
        assert await absent.reconnected(scene.members, {"gone": uid}, 2 * LATER_S)


async def test_one_that_fails_for_another_reason_than_the_one_shown_is_looked_at_once() -> None:
    """Its certificate is refused, say, once it is up again: the reason leads to the remedy."""
    absent, silent = Asker(), _Silent()
    members = cast("MemberClusters", {"m1": silent})
    absent.away.was_not_read("m1")
    absent.reachable["m1"] = "no answer; it is left alone for a while"
    assert not await absent.reconnected(members, {}, LATER_S)
    silent.why = "certificate verify failed"
    assert await absent.reconnected(members, {}, 2 * LATER_S) == ["m1"]
    assert not await absent.reconnected(members, {}, 3 * LATER_S)


async def test_clusters_that_left_the_fleet_are_forgotten(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Asker()
        absent.away.was_not_read("m1")
        absent.away.queue.keep(frozenset({"m2"}))
        assert not await absent.reconnected(scene.members, {}, LATER_S)


async def test_one_that_hangs_is_no_reason_to_ask_another_one_later(tmp_path: Path) -> None:
    async with opened(tmp_path) as scene:
        absent = Asker()
        for name in ("m1", "m2"):
            absent.away.was_not_read(name)
        scene.box.servers["m1"].pause()
        assert await absent.reconnected(scene.members, {}, 1) == ["m2"]
        scene.box.servers["m1"].resume()
        assert await absent.reconnected(scene.members, {}, 1) == ["m1"], "what was asked is answered late"
        await absent.away.close()


async def test_after_days_a_cluster_is_still_asked_every_few_seconds() -> None:
    absent, now_s = Asker(), 0.0
    absent.away.was_not_read("m1")
    async with answering(reply(404)) as (server, members):
        for _ in range(30):
            asked, now_s = len(server.asked), now_s + 8
            await absent.reconnected(members, {}, now_s)
            assert len(server.asked) > asked


async def test_where_hundreds_are_away_no_more_than_so_many_are_asked_in_a_second() -> None:
    absent = Asker()
    for number in range(1000):
        absent.away.was_not_read(f"m{number}")
    silent = _Silent()
    members = cast("MemberClusters", {f"m{number}": silent for number in range(1000)})
    for second in range(1, 120):
        asked = silent.asked
        await absent.reconnected(members, {}, second)
        assert silent.asked - asked <= 1000 / 50 + 1
    assert silent.asked > 1000


async def test_it_is_asked_over_a_new_connection_and_so_is_what_follows() -> None:
    """Those from before may be open on our side alone, and the breaker be open too."""
    uid = reply(200, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "kube-system", "uid": "u1"}})
    async with answering(uid) as (server, members):
        await asyncio.gather(*(members["m1"].identity() for _ in range(5)))
        server.half_open = server.connections
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await members["m1"].identity()
            members["m1"]._transport.reading.failed("", "no answer")
        assert members["m1"]._transport.reading.is_open()
        absent = Asker()
        absent.away.was_not_read("m1")
        assert await absent.reconnected(members, {"m1": "u1"}, 1) == ["m1"]
        assert await members["m1"].identity() == "u1", "neither a dead connection nor the breaker is in the way"
