"""Embedded clusters with open clients, for tests of what is sent and what comes of it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace

from reconciler.api.fleet import Fleet, FleetSettings
from reconciler.api.ledger import JournalSnapshot
from reconciler.controller.cluster_reads.read_clusters import RoundReading, read
from reconciler.controller.once import Access
from reconciler.controller.round.apply_plan import ChangeResult, WriteContext, act
from reconciler.diff import Comparer
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.journal import Journal
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import MemberClusters, UserAgent, load_members
from reconciler.planner import Round, plan_round
from reconciler.policy import Claims
from reconciler.scheduler import Schedule
from reconciler.sim import ClusterSpec, FleetInABox, Request
from tests.fakes.clocks import QuickClock
from tests.fakes.worlds import fleet_of

FLEET = "test"


def comparer_of(name: str) -> Comparer:
    """The comparer of an empty fleet of this name at r1."""
    fleet = Fleet(revision="r1", settings=FleetSettings(name=name))
    schedule = Schedule(fleet=fleet, interpreters=BUILT_IN_KINDS, claims=Claims(), bindings={}, policies={})
    return Comparer(schedule, FleetSnapshot(fleet=fleet, interpreters=BUILT_IN_KINDS, now=QuickClock().now()))


class Open(NamedTuple):
    """Clusters m1 and m2 with their clients, and a journal."""

    box: FleetInABox
    members: MemberClusters
    journal: Journal

    def access(self, journal: Path, who: str = "") -> Access:
        """Return the options by which a command reaches the two, with a journal of its own."""
        return Access(
            kubeconfig=self.box.kubeconfig, journal=journal, clock=QuickClock(), interpreters=BUILT_IN_KINDS, who=who
        )

    async def plan(self, fleet: Fleet, known: JournalSnapshot | None = None) -> tuple[RoundReading, Round]:
        """A look at everything, and the round that follows from it."""
        known = known or JournalSnapshot(ledger=self.journal.ledger(), has_history=True)
        reading = await read(fleet, self.members, known, QuickClock(), BUILT_IN_KINDS)
        return reading, plan_round(reading.snapshot, reading.schedule)

    async def act(self, planned: Round) -> tuple[ChangeResult, ...]:
        acting = WriteContext(
            members=self.members,
            journal=self.journal,
            comparer=comparer_of(FLEET),
        )
        return await act(planned.plan, acting)

    async def apply(self, fleet: Fleet) -> tuple[ChangeResult, ...]:
        """Plan and act."""
        _, planned = await self.plan(fleet)
        return await self.act(planned)

    def live(self, cluster: str, name: str = "app", kind: str = "ConfigMap") -> dict[str, Any] | None:
        return self.box[cluster].state.get(kind, "demo", name)

    def by_hand(self, cluster: str, method: str, body: Any = None, name: str = "app") -> None:
        """Somebody else writes the ConfigMap."""
        path = f"/api/v1/namespaces/demo/configmaps/{name}"
        request = Request(method=method, path=path, query={}, body=body, accept="application/json",
                          content_type="application/merge-patch+json", user_agent="kubectl/v1")  # fmt: skip
        if method == "POST":
            request = replace(request, path=path.rsplit("/", 1)[0], content_type="application/json")
        answer = self.box[cluster].request(request)
        assert answer.status < 300, answer
        self.box[cluster].run_controllers()

    def verbs(self, cluster: str) -> list[str]:
        """Our writes there, accepted or not: `patch configmaps 201`."""
        return [
            f"{entry.verb} {entry.plural} {entry.code}"
            for entry in self.box[cluster].audit
            if "fleet-reconciler/" in entry.user_agent
        ]


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Open]:
    """Two clusters, their clients, an empty journal."""
    folder.mkdir(parents=True, exist_ok=True)
    async with FleetInABox([ClusterSpec(name=name) for name in ("m1", "m2")], folder) as box:
        configs = load_members(box.kubeconfig, fleet_of(clusters=tuple(box.names)).clusters.values())
        with Journal.open(folder / "journal.db") as journal:
            async with MemberClusters.open(configs, agent=UserAgent(FLEET), clock=QuickClock()) as members:
                yield Open(box, members, journal)
                await asyncio.sleep(0)
