"""A change in one cluster asks that cluster alone, whatever hangs beside it: requests by verb and cluster.

Source: ADR 15; design#promise-7.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.journal import Journal
from reconciler.kube import MemberClusters, UserAgent
from reconciler.sim import ClusterSpec, Fault, FaultKind, FleetInABox, Request
from tests.fakes.clocks import QuickClock
from tests.unit.controller.test_loop import Running

NAMES = ("m1", "m2", "m3", "m4")
HUNG = ("m3", "m4")
ASKED_S = 40
"""So long it is counted after each commit: longer than any pause of what is asked now and then."""


def verb_of(asked: Request) -> str:
    if asked.method != "GET":
        return "write"
    if "watch" in asked.query:
        return "watch"
    is_list = asked.path.rsplit("/", 1)[-1] in ("configmaps", "namespaces")
    return "list" if is_list else "get"


class Counted:
    """A loop on four clusters, two of which hang, and what each was asked since it was looked up last."""

    def __init__(self, scene: Running) -> None:
        self.scene = scene
        self._asked: defaultdict[str, Counter[str]] = defaultdict(Counter)
        for name, server in scene.box.servers.items():
            server.faults.order(Fault(kind=FaultKind.INTERNAL), when=self._counts(name))

    def _counts(self, name: str) -> Callable[[Request], bool]:
        def count(asked: Request) -> bool:
            self._asked[name][verb_of(asked)] += 1
            return False

        return count

    async def since(self) -> dict[str, dict[str, int]]:
        """By cluster and verb, once nothing is written any more and everything that is asked now and then was."""
        await self.scene.quiet()
        await QuickClock().sleep(ASKED_S)
        found = {name: dict(verbs) for name, verbs in sorted(self._asked.items()) if name not in HUNG or verbs}
        self._asked.clear()
        return found


@asynccontextmanager
async def beside_hanging(folder: Path, *, from_the_start: bool) -> AsyncIterator[Counted]:
    clock, agent = QuickClock(), UserAgent("test")
    async with FleetInABox([ClusterSpec(name=name) for name in NAMES], folder, speed=20.0) as box:
        with Journal.open(folder / "journal.db") as journal:
            async with MemberClusters.open({}, agent=agent, clock=clock) as members:
                scene = Running(box, journal, Vitals())
                scene.settings = {"drift": {"resync": "100h"}}
                counted = Counted(scene)
                hung = [box.servers[name] for name in HUNG]
                for server in hung if from_the_start else ():
                    server.pause()
                scene.app("1", *NAMES, name="every")
                scene.app("1", "m1", name="one")
                scene.start(scene.parts_of(members, agent, clock))
                there = NAMES[:2] if from_the_start else NAMES
                try:
                    await scene.until(lambda: all(scene.value(name, "every") == "1" for name in there))
                    await scene.until(lambda: scene.value("m1", "one") == "1")
                    await scene.quiet()
                    for server in hung:
                        server.pause()
                    await counted.since()
                    yield counted
                finally:
                    await scene.stop()


@pytest.mark.parametrize("from_the_start", [True, False])
async def test_a_commit_and_a_cluster_that_is_back_concern_those_alone(tmp_path: Path, from_the_start: bool) -> None:
    async with beside_hanging(tmp_path, from_the_start=from_the_start) as counted:
        scene = counted.scene
        scene.app("2", *NAMES, name="every")
        await scene.until(lambda: scene.value("m1", "every") == "2")
        assert await counted.since() == {name: {"get": 2, "write": 1} for name in ("m1", "m2")}, "a commit to all"
        scene.app("2", "m1", name="one")
        await scene.until(lambda: scene.value("m1", "one") == "2")
        assert await counted.since() == {"m1": {"get": 2, "write": 1}}, "a commit to one"
        scene.app("3", "m1", "m3", name="one")
        await scene.until(lambda: scene.value("m1", "one") == "3")
        assert set(await counted.since()) == {"m1"}, "a commit that waits in another one"
        scene.box.servers["m3"].resume()
        await scene.until(lambda: scene.value("m3", "one") == "3")
        asked = await counted.since()
        assert asked.keys() <= {"m1", "m3"}, "one is back"
        assert "list" not in asked.get("m1", {})
        scene.box.servers["m4"].resume()
        await scene.until(lambda: scene.value("m4", "every") == "2")
        asked = await counted.since()
        # Where the fleet has never been seen whole, this is the round after which deletions may go.
        assert ("list" in asked.get("m1", {})) is from_the_start
