"""The loop on embedded clusters with nodes and workloads, and a clock that can jump: for tests of ticks."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from reconciler.api.ledger import EvictionRecord
from reconciler.api.refs import Identity
from reconciler.clock import rfc3339
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.journal import Journal, SharedOrdersTable
from reconciler.kube import MemberClusters, UserAgent
from reconciler.sim import ClusterSpec, FleetInABox, NodeSpec, Settings
from tests.fakes.clocks import SPEED, QuickClock
from tests.tick_cases import Case, policy, template
from tests.unit.controller.test_loop import Running

WEB = Identity("apps", "Deployment", "demo", "web")
NEVER_READY = Settings(start_s=1e9)
ROUNDS = 4
"""So many looks at the clusters are several."""


class JumpingClock(QuickClock):
    """Quick time of day, too, that can be set forward. Counts how often it was asked: once a round."""

    def __init__(self) -> None:
        self._begun_s, self._begun = time.time(), time.monotonic()
        self._ahead_s = 0.0
        self.asked = 0

    def now(self) -> str:
        self.asked += 1
        return self.later(0)

    def later(self, seconds: float) -> str:
        return rfc3339(self._begun_s + (time.monotonic() - self._begun) * SPEED + self._ahead_s + seconds)

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self._ahead_s

    def jump(self, seconds: float) -> None:
        self._ahead_s += seconds


class Ticking(Running):
    """Clusters m1 and m2, and a workload `web`, described as in the case tables of ticks."""

    clock: JumpingClock

    def web(self, **case: Any) -> None:
        """The workload and its policy as they are from now on."""
        self.put(web=[template("web", case)], rule=[self._policy(case)])

    def _policy(self, case: Case) -> dict[str, Any]:
        found = policy("web", case)
        found["spec"]["preserveResourcesOnDeletion"] = case.get("policy", {}).get("keep", False)
        return found

    def replicas(self) -> dict[str, int]:
        """Return what the clusters that have it are asked for."""
        live = {name: self.box[name].state.get("Deployment", "demo", "web") for name in self.box.names}
        return {name: body["spec"]["replicas"] for name, body in live.items() if body is not None}

    def ready(self) -> dict[str, int]:
        live = {name: self.box[name].state.get("Deployment", "demo", "web") for name in self.box.names}
        return {name: body["status"].get("readyReplicas", 0) for name, body in live.items() if body is not None}

    def set_well(self, cluster: str, *, is_well: bool) -> None:
        """The pods on the one node there are ready, or not."""
        self.box[cluster].set_node_ready("n1", is_ready=is_well)

    def is_known_ill(self) -> bool:
        """Return whether it is recorded since when the workload has been unhealthy."""
        return bool(self.ill_since())

    def ill_since(self) -> dict[str, str]:
        """The timers of what is unhealthy. Others, as of when the service last looked for something, go on."""
        return {name: since for name, since in self.journal.timers().items() if name.startswith("unhealthy ")}

    def excluded(self) -> list[str]:
        return [found.cluster for found in self.journal.constraints()]

    async def rounds(self, number: int = ROUNDS) -> None:
        """Return when so many more looks were taken."""
        last = self.clock.asked + number
        await self.until(lambda: self.clock.asked >= last)

    def evict(self, cluster: str, seconds: float = 600) -> None:
        """A person's order, written beside the daemon, which is told as it is when the journal changed."""
        order = EvictionRecord(
            identity=WEB, cluster=cluster, since=self.clock.later(0), until=self.clock.later(seconds), who="li@host"
        )
        with SharedOrdersTable(self.path) as book:
            book.evict(order)
        self.wake()

    def readmit(self, cluster: str) -> None:
        with SharedOrdersTable(self.path) as book:
            assert book.readmit(WEB, cluster)
        self.wake()

    def wake(self) -> None:
        self.loop.wake()

    def restart(self) -> None:
        """Another loop that knows what the journal knows; the last one has been stopped."""
        self.source.forget()
        self.start(self.parts)

    path: Path


@asynccontextmanager
async def ticking(
    folder: Path, nodes: Mapping[str, int], never_ready: str = "", settings: Mapping[str, Any] | None = None
) -> AsyncIterator[Ticking]:
    """The loop works until the block ends. `nodes`: cluster to the CPUs of its one node; `never_ready`: a cluster.

    No resync makes up for what nobody noticed.
    """
    clock, agent, vitals = JumpingClock(), UserAgent("test"), Vitals()
    specs = [
        ClusterSpec(
            name=name,
            nodes=(NodeSpec(name="n1", cpu=str(cpus)),),
            settings=NEVER_READY if name == never_ready else Settings(),
        )
        for name, cpus in nodes.items()
    ]
    async with FleetInABox(specs, folder, speed=SPEED) as box:
        with Journal.open(folder / "journal.db") as journal:
            async with MemberClusters.open({}, agent=agent, clock=clock) as members:
                scene = Ticking(box, journal, vitals)
                scene.clock, scene.path = clock, folder / "journal.db"
                scene.settings = {"descheduling": {"interval": "5s", "unschedulableThreshold": "1s"},
                                  "drift": {"resync": "100h"}, **(settings or {})}  # fmt: skip
                parts = scene.parts_of(members, agent, clock)
                scene.put()
                scene.start(parts)
                try:
                    yield scene
                finally:
                    await scene.stop()


class Watcher:
    """A look for other writers of a journal, from a connection of its own."""

    def __init__(self, path: Path) -> None:
        self._connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)

    @property
    def version(self) -> int:
        (found,) = self._connection.execute("PRAGMA data_version").fetchone()
        return int(found)

    def close(self) -> None:
        self._connection.close()
