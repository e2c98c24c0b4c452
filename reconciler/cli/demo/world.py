"""The world of the demo, in one folder: three embedded clusters, a fleet store, and the daemon that follows it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from reconciler.api.clusters import Cluster
from reconciler.cli.cluster_access import commits_of
from reconciler.cli.demo.repository import MAIN, DemoRepository
from reconciler.clock import BackOff, SystemClock
from reconciler.controller.once.planning import Access
from reconciler.controller.service.serve_fleet import Service, serve
from reconciler.controller.service.signals import Signals
from reconciler.controller.tasks import beside
from reconciler.controller.vitals.logs import TextLines
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.kube.connection.bounds import BreakerSettings
from reconciler.kube.connection.kubeconfig import load_members
from reconciler.kube.member_clusters import MemberClusters, UserAgent
from reconciler.kube.transport import TransportSettings
from reconciler.plugins import with_plugins
from reconciler.server.http_server import Listening, serving
from reconciler.sim import ClusterSpec, FleetInABox, NodeSpec, Settings

GPU: Final = "nvidia.com/gpu"
_QUICK: Final = Settings(start_s=0.4, stop_s=0.2)
"""Pods are ready within half a second, so that nobody has to wait."""
_JOURNAL: Final = "journal.db"
_IMPATIENT: Final = TransportSettings(breaker=BreakerSettings(back_off=BackOff(least_s=0.1, most_s=0.1)))
"""The onlooker asks a silent cluster again at once; the daemon has its usual patience."""
CLUSTERS: Final = (
    ClusterSpec(name="hangzhou", nodes=tuple(NodeSpec(name=f"hz-{i}", cpu="8") for i in (1, 2)), settings=_QUICK),
    ClusterSpec(name="beijing", nodes=tuple(NodeSpec(name=f"bj-{i}", cpu="8") for i in (1, 2)), settings=_QUICK),
    ClusterSpec(
        name="idc", nodes=(NodeSpec(name="idc-1", cpu="16", memory="32Gi", extended=((GPU, "1"),)),), settings=_QUICK
    ),
)


class DemoWorld(Struct, frozen=True, kw_only=True):
    """The running parts of the demo. `members`: access to the clusters for the audience, apart from the daemon's."""

    folder: Path
    repository: DemoRepository
    box: FleetInABox
    members: MemberClusters
    status_page: str
    may_start: asyncio.Event

    @property
    def kubeconfig(self) -> Path:
        """A kubeconfig with a context a cluster."""
        return self.box.kubeconfig

    @property
    def journal(self) -> Path:
        """The daemon's journal."""
        return self.folder / _JOURNAL

    @property
    def log(self) -> Path:
        """The daemon's log."""
        return self.folder / "daemon.log"

    def start_daemon(self) -> None:
        """From now on the daemon follows the store."""
        self.may_start.set()


@asynccontextmanager
async def demo_world(folder: Path) -> AsyncIterator[DemoWorld]:
    """A world below the folder. The daemon ends with the block; where it fails, the block is cancelled."""
    vitals, clock, signals = Vitals(), SystemClock(), Signals()
    repository = await asyncio.to_thread(DemoRepository, folder / "fleet")
    journal = folder / _JOURNAL
    commits = commits_of(str(repository.folder), beside=journal)
    async with (
        FleetInABox(CLUSTERS, folder) as box,
        serving(Listening(address="127.0.0.1:0"), vitals, clock, journal=journal, commits=commits) as page,
    ):
        configs = load_members(box.kubeconfig, [Cluster(name=name) for name in box.names])
        async with MemberClusters.open(configs, agent=UserAgent("demo"), settings=_IMPATIENT) as members:
            world = DemoWorld(
                folder=folder,
                repository=repository,
                box=box,
                members=members,
                status_page=page,
                may_start=asyncio.Event(),
            )
            with _log_file(world.log):
                daemon = asyncio.Event()
                async with beside({"daemon": _reconcile(world, vitals, signals, daemon)}):
                    try:
                        yield world
                    finally:
                        signals.stop.set()
                        world.may_start.set()
                        await daemon.wait()


async def _reconcile(world: DemoWorld, vitals: Vitals, signals: Signals, ended: asyncio.Event) -> None:
    """`reconciler run FLEET --rev main`, in this process. `ended` is set at its end."""
    store = str(world.repository.folder)
    access = Access(interpreters=with_plugins(), kubeconfig=world.kubeconfig, journal=world.journal, store=store)
    try:
        await world.may_start.wait()
        await serve(Service(store=store, rev=MAIN, as_directory=False, access=access), vitals, signals)
    finally:
        ended.set()


@contextmanager
def _log_file(path: Path) -> Iterator[None]:
    """Write the process's log to a file while the block runs."""
    root, ours = logging.getLogger(), logging.getLogger("reconciler")
    handler = logging.FileHandler(path, encoding="utf-8")
    handler.setFormatter(TextLines())
    root.addHandler(handler)
    before = ours.level
    ours.setLevel(logging.INFO)
    try:
        yield
    finally:
        ours.setLevel(before)
        root.removeHandler(handler)
        handler.close()
