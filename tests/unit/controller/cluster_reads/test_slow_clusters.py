"""Clusters that take long to answer, beside ones that do not. Source: design#promise-7; ADR 14."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

from reconciler.api.clusters import Absent, Cluster, Member, NotRead, Read, Unknown
from reconciler.api.refs import GVK, ResourceRef
from reconciler.clock import SystemClock
from reconciler.controller.cluster_reads.members import ReadRequest, read_member
from reconciler.controller.cluster_reads.slow_clusters import LateReadings
from reconciler.controller.inbox import ClusterChanged, Inbox
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import MemberClusters, UserAgent, load_members
from reconciler.sim import ClusterSpec, FleetInABox

CONFIG_MAP = GVK("", "v1", "ConfigMap")
A, B = (ResourceRef(CONFIG_MAP, "demo", name) for name in ("a", "b"))
SLOW_S = 2.0
NAMES = ("m1", "m2", "m3")
READ_ONE = partial(read_member, fleet_names=("test",), interpreters=BUILT_IN_KINDS)


class Scene:
    """Three clusters, and what was sent for the next round."""

    def __init__(self, box: FleetInABox, members: MemberClusters) -> None:
        self.box, self.members = box, members
        self.inbox = Inbox()
        self.late = LateReadings(self.inbox)

    async def came(self, *refs: ResourceRef) -> None:
        """Return once exactly these have to be looked at, and nothing else."""
        events = await self.inbox.batch(20, SystemClock())
        assert events == (ClusterChanged("m2", frozenset(ref.identity for ref in refs)),)

    async def read(self, *refs: ResourceRef) -> tuple[dict[str, Member], float]:
        """The members, and how long the round waited for them."""
        began_s = time.monotonic()
        interest = {name: ReadRequest(wanted=frozenset(refs)) for name in NAMES}
        found = await self.late.read(self.members, interest, READ_ONE, connected=len(NAMES))
        return found, time.monotonic() - began_s


@asynccontextmanager
async def slow(folder: Path, cluster: str = "m2") -> AsyncIterator[Scene]:
    """Take what is served as known; from now on each answer of one cluster takes its time."""
    async with FleetInABox([ClusterSpec(name=name) for name in NAMES], folder) as box:
        configs = load_members(box.kubeconfig, [Cluster(name=name) for name in NAMES])
        async with MemberClusters.open(configs, agent=UserAgent("test")) as members:
            scene = Scene(box, members)
            await scene.read(A)
            box.servers[cluster].faults.latency_s = (SLOW_S, SLOW_S)
            try:
                yield scene
            finally:
                await scene.late.close()


async def test_the_others_are_read_without_it_and_its_answer_is_for_the_next_round(tmp_path: Path) -> None:
    async with slow(tmp_path) as scene:
        found, took_s = await scene.read(A)
        assert took_s < SLOW_S
        assert {name: found[name].live(A.identity) for name in ("m1", "m3")} == {"m1": Absent(), "m3": Absent()}  # type: ignore[union-attr]
        assert isinstance(m2 := found["m2"], Read)
        assert m2.live(A.identity) == Unknown(why="")
        assert m2.served, "a kind is not taken for one that is not served"
        assert not scene.inbox.has_work
        await scene.came(A)
        found, took_s = await scene.read(A)
        assert took_s < SLOW_S
        assert isinstance(m2 := found["m2"], Read)
        assert m2.live(A.identity) == Absent()
        assert not m2.under_way


async def test_what_is_wanted_meanwhile_is_read_after_it(tmp_path: Path) -> None:
    async with slow(tmp_path) as scene:
        await scene.read(A)
        found, took_s = await scene.read(A, B)
        assert took_s < SLOW_S
        assert isinstance(m2 := found["m2"], Read)
        assert m2.under_way == {A.identity, B.identity}
        await scene.came(A, B)
        found, _ = await scene.read(A, B)
        assert isinstance(m2 := found["m2"], Read)
        assert m2.live(A.identity) == Absent()
        assert m2.under_way == {B.identity}
        # What was asked for again may have changed since that answer began.
        await scene.came(A)


async def test_one_that_never_answers_is_not_read_when_its_time_is_up(tmp_path: Path) -> None:
    async with slow(tmp_path) as scene:
        scene.box.servers["m2"].pause()
        _, took_s = await scene.read(A)
        assert took_s < SLOW_S
        await scene.came(A)
        found, _ = await scene.read(A)
        assert isinstance(found["m2"], NotRead)


async def test_the_only_cluster_is_waited_for(tmp_path: Path) -> None:
    async with slow(tmp_path) as scene:
        only = {"m2": scene.members["m2"]}
        interest = {"m2": ReadRequest(wanted=frozenset({A}))}
        found = await scene.late.read(only, interest, READ_ONE, connected=1)
        assert isinstance(m2 := found["m2"], Read)
        assert m2.live(A.identity) == Absent()


async def test_a_round_that_concerns_the_slow_one_alone_is_over_before_it_answers(tmp_path: Path) -> None:
    """Or a commit to all others would wait for it."""
    async with slow(tmp_path) as scene:
        only, interest = {"m2": scene.members["m2"]}, {"m2": ReadRequest(wanted=frozenset({A}))}
        found = await scene.late.read(only, interest, READ_ONE, connected=len(NAMES))
        assert not scene.inbox.has_work, "it has answered"
        assert isinstance(m2 := found["m2"], Read)
        assert m2.under_way == {A.identity}
        await scene.came(A)
        found = await scene.late.read(only, interest, READ_ONE, connected=len(NAMES))
        assert isinstance(m2 := found["m2"], Read)
        assert m2.live(A.identity) == Absent()


async def test_a_round_over_everything_waits_and_forgets_what_was_late(tmp_path: Path) -> None:
    async with slow(tmp_path) as scene:
        await scene.read(A)
        interest = {name: ReadRequest(kinds=frozenset({CONFIG_MAP})) for name in NAMES}
        found = await scene.late.read_all(scene.members, interest, READ_ONE)
        assert all(isinstance(member, Read) and ("", "ConfigMap") in member.kinds for member in found.values())
        await asyncio.sleep(0)
        assert not scene.inbox.has_work


async def test_an_answer_shows_a_round_nothing_that_it_does_not_look_at(tmp_path: Path) -> None:
    async with slow(tmp_path) as scene:
        for name in ("a", "b"):
            metadata = {"name": name, "namespace": "demo", "uid": name, "resourceVersion": "1"}
            scene.box["m2"].state.put({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
        await scene.read(A, B)
        await scene.came(A, B)
        found, _ = await scene.read(A)
        assert isinstance(m2 := found["m2"], Read)
        assert m2.objects.keys() == {A.identity}
