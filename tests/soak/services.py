"""A service in this process, on the embedded clusters of a trial."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple, Self

from reconciler.containment import INTERNAL_ERROR
from reconciler.controller.cluster_reads.read_clusters import remembered
from reconciler.controller.loop import ControlLoop
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.once import Access
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.store_in_force import StoreInForce
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.journal import Journal
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import MemberClusters, UserAgent
from reconciler.sim import FleetInABox
from tests.fakes.clocks import QuickClock
from tests.fakes.memory_source import MemorySource


class Service(NamedTuple):
    """A running service: its task, which is done when it ended itself, and its loop."""

    task: asyncio.Task[None]
    loop: ControlLoop


class FaultsLogged(logging.Handler):
    """Collects what is logged of faults of the program while its block runs."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line that tells of one."""
        if getattr(record, "err_code", "") == INTERNAL_ERROR:
            self.lines.append(self.format(record))

    async def __aenter__(self) -> Self:
        logging.getLogger("reconciler").addHandler(self)
        return self

    async def __aexit__(self, *_: object) -> None:
        logging.getLogger("reconciler").removeHandler(self)


@asynccontextmanager
async def service_on(box: FleetInABox, path: Path, source: MemorySource, vitals: Vitals) -> AsyncIterator[Service]:
    """A service with the journal at `path`, which ends with the block."""
    clock, stop, agent = QuickClock(), asyncio.Event(), UserAgent("chaos")
    source.forget()
    with Journal.open(path) as journal:
        async with MemberClusters.open({}, agent=agent, clock=clock) as members:
            parts = LoopParts(
                source=source,
                store=StoreInForce(journal.good_blobs(), source),
                journal=journal,
                holder=OwnershipLock(journal, clock),
                opened=members,
                access=Access(kubeconfig=box.kubeconfig, clock=clock, interpreters=BUILT_IN_KINDS),
                agent=agent,
                vitals=vitals,
            )
            loop = ControlLoop(parts)
            running = asyncio.create_task(loop.run(stop))
            try:
                yield Service(running, loop)
            finally:
                stop.set()
                await running
                with Journal.open(journal.path, read_only=True) as reader:
                    assert remembered(journal) == remembered(reader), "what is kept in memory is not what is read"
