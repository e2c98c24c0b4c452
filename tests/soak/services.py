"""A service in this process, on the embedded clusters of a trial."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.kubeconfig import load_members
from reconciler.adapters.kube.members import Members, UserAgent
from reconciler.daemon.loop.loop import ControlLoop
from reconciler.daemon.loop.parts import Parts
from reconciler.daemon.loop.store_in_force import StoreInForce
from reconciler.daemon.observing.reading import remembered
from reconciler.daemon.round.hold import Holder
from reconciler.daemon.vitals.vitals import Vitals
from reconciler.interpreters.registry import BUILT_IN_KINDS
from reconciler.sim import FleetInABox
from tests.fakes.clocks import QuickClock
from tests.fakes.memory_source import MemorySource


@asynccontextmanager
async def service_on(
    box: FleetInABox, path: Path, source: MemorySource, vitals: Vitals
) -> AsyncIterator[asyncio.Task[None]]:
    """A service with the journal at `path`, which ends with the block. Its task, which is done when it ended itself."""
    clock, stop, agent = QuickClock(), asyncio.Event(), UserAgent("chaos")
    source.forget()
    with Journal.open(path) as journal:
        async with Members.open({}, agent=agent, clock=clock) as members:
            parts = Parts(
                source=source,
                store=StoreInForce(journal.good_blobs(), source),
                journal=journal,
                holder=Holder(journal, clock),
                opened=members,
                configs_of=lambda fleet: load_members(
                    box.kubeconfig, [cluster for _, cluster in sorted(fleet.clusters.items())]
                ),
                agent=agent,
                clock=clock,
                vitals=vitals,
                interpreters=BUILT_IN_KINDS,
            )
            running = asyncio.create_task(ControlLoop(parts).run(stop))
            try:
                yield running
            finally:
                stop.set()
                await running
                with Journal.open(journal.path, read_only=True) as reader:
                    assert remembered(journal) == remembered(reader), "what is kept in memory is not what is read"
