from __future__ import annotations

import asyncio

import pytest

from reconciler.errors import ClusterUnreachable, ConfigurationError, CredentialsRejected
from reconciler.kube import MemberCluster, MemberClusters, MemberConfig, UserAgent
from tests.fakes.scripted_server import CUT, ScriptedServer, reply
from tests.fakes.waiting import until

VERSION = reply(200, {"gitVersion": "v1.36.3"})


async def test_one_failing_cluster_costs_no_other_its_answer() -> None:
    async with ScriptedServer(VERSION) as good, ScriptedServer(CUT) as bad, ScriptedServer(reply(401)) as locked:
        configs: dict[str, MemberConfig | ConfigurationError] = {
            "good": MemberConfig(name="good", server=good.url),
            "bad": MemberConfig(name="bad", server=bad.url),
            "locked": MemberConfig(name="locked", server=locked.url),
            "unknown": ConfigurationError("cluster unknown: no context"),
        }
        async with MemberClusters.open(configs, agent=UserAgent("f")) as members:
            assert list(members) == ["bad", "good", "locked"]
            answers = await members.each(MemberCluster.version)
    assert answers["good"] == "v1.36.3"
    assert isinstance(answers["bad"], ClusterUnreachable)
    assert isinstance(answers["locked"], CredentialsRejected)
    assert answers["unknown"] is configs["unknown"]


async def test_a_mistake_of_ours_is_not_taken_for_a_fault_of_a_cluster() -> None:
    async def wrong(member: MemberCluster) -> str:
        raise AssertionError("a bug")

    async with MemberClusters.open({"m": MemberConfig(name="m", server="http://x")}, agent=UserAgent("f")) as members:
        with pytest.raises(AssertionError, match="a bug"):
            await members.each(wrong)


async def test_the_user_agent_follows_the_commit_and_cannot_be_broken_out_of() -> None:
    agent = UserAgent("unnamed")
    async with ScriptedServer(VERSION) as server:
        configs = {"m1": MemberConfig(name="m1", server=server.url)}
        async with MemberClusters.open(configs, agent=agent) as members:
            agent.take_up("shop", "abc")
            await members["m1"].version()
            agent.take_up("shop", "x)\r\nX-Evil: 1")
            await members["m1"].version()
    sent = [asked.headers["user-agent"].partition(" ")[2] for asked in server.asked]
    assert sent == ["(fleet=shop; commit=abc)", "(fleet=shop; commit=x___X-Evil:_1)"]


async def test_many_clusters_are_asked_at_once_within_the_bound_of_all() -> None:
    async with ScriptedServer(VERSION) as server:
        configs = {f"m{index}": MemberConfig(name=f"m{index}", server=server.url) for index in range(100)}
        server.gate = asyncio.Event()
        async with MemberClusters.open(configs, agent=UserAgent("f")) as members, asyncio.timeout(60):
            asking = asyncio.create_task(members.each(MemberCluster.version))
            await until(lambda: server.in_flight >= 64)
            assert server.in_flight_most == 64
            server.gate.set()
            answers = await asking
    assert set(answers.values()) == {"v1.36.3"}


async def test_an_update_keeps_what_is_unchanged_and_drops_what_is_gone() -> None:
    m1, m2, m3 = (MemberConfig(name=f"m{index}", server=f"http://{index}.example") for index in (1, 2, 3))
    async with MemberClusters.open({"m1": m1, "m2": m2}, agent=UserAgent("f")) as before:
        moved = MemberConfig(name="m2", server="http://elsewhere.example")
        after = before.reached_by({"m3": m3, "m2": moved, "m1": m1, "bad": ConfigurationError("no")})
        assert list(after) == ["m1", "m2", "m3"]
        assert after["m1"] is before["m1"]
        assert after["m2"] is not before["m2"]
        assert list(after.failed) == ["bad"]
        last = after.reached_by({"m3": m3})
        assert list(last) == ["m3"]
        assert last.failed == {}
        assert list(before) == ["m1", "m2"], "whoever holds it finds what was there"
