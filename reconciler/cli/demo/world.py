"""The world of the demo, in one folder: three embedded clusters, a fleet store, and the daemon that follows it."""

from __future__ import annotations

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.metadata import files
from pathlib import Path
from typing import Final

import pygit2
from msgspec import Struct
from pygit2.enums import DiffStatsFormat

from reconciler.api.clusters import Cluster
from reconciler.cli.cluster_access import commits_of
from reconciler.clock import BackOff, SystemClock
from reconciler.controller.once.planning import Access
from reconciler.controller.service.serve_fleet import Service, serve
from reconciler.controller.service.signals import Signals
from reconciler.controller.tasks import beside
from reconciler.controller.vitals.logs import TextLines
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import ConfigurationError
from reconciler.kube.connection.kubeconfig import load_members
from reconciler.kube.member_clusters import MemberClusters, UserAgent
from reconciler.kube.transport import TransportSettings
from reconciler.plugins import with_plugins
from reconciler.server.http_server import Listening, serving
from reconciler.sim import ClusterSpec, FleetInABox, NodeSpec, Settings

MAIN: Final = "main"
_BEGAN_S: Final = 1_767_225_600
"""The first commit's time. It is fixed, so that every demo has the same commit ids."""
_CHECKED_OUT: Final = Path(__file__).parents[3] / "examples/fleet-repo"
_INSTALLED: Final = "share/fleet-reconciler/fleet-repo/fleet.yaml"
GPU: Final = "nvidia.com/gpu"
_QUICK: Final = Settings(start_s=0.4, stop_s=0.2)
"""Pods are ready within half a second, so that nobody has to wait."""
_JOURNAL: Final = "journal.db"
_IMPATIENT: Final = TransportSettings(failures_back_off=BackOff(least_s=0.1, most_s=0.1))
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
    listening = Listening(address="127.0.0.1:0")
    async with (
        FleetInABox(CLUSTERS, folder) as box,
        serving(listening, vitals, clock, journal=journal, commits=commits, stop=signals.stop) as page,
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


def example_store() -> Path:
    """The example store: that of the source tree, else the one that was installed with the package.

    Raises:
        ConfigurationError: neither is there.
    """
    if _CHECKED_OUT.is_dir():
        return _CHECKED_OUT
    for file in files("fleet-reconciler") or ():
        if file.as_posix().endswith(_INSTALLED):
            return Path(str(file.locate())).resolve().parent
    raise ConfigurationError("the example store was not installed along; run the demo in a source tree")


class DemoRepository:
    """A work tree with a branch `main` that only moves forward."""

    def __init__(self, folder: Path) -> None:
        """Copy the example store into the folder and commit all of it."""
        shutil.copytree(example_store(), folder)
        self.folder = folder
        self._commits = 0
        self._repository = pygit2.init_repository(str(folder), initial_head=MAIN)
        self._commit("HEAD", "Begin with the example store", "Mei", [])

    def read(self, path: str) -> str:
        """The text of a file."""
        return (self.folder / path).read_text(encoding="utf-8")

    def propose(self, branch: str, path: str, text: str, subject: str, *, author: str) -> str:
        """Write one file and commit it on a new branch from `main`, which is checked out then; the commit id."""
        base = self._repository.branches.local[MAIN].peel(pygit2.Commit)
        self._repository.branches.local.create(branch, base)
        self._repository.set_head(f"refs/heads/{branch}")
        (self.folder / path).write_text(text, encoding="utf-8")
        return self._commit("HEAD", subject, author, [base.id])

    def merge(self, branch: str) -> None:
        """Fast-forward `main` to the branch, and check it out."""
        reference = self._repository.branches.local[branch]
        self._repository.branches.local[MAIN].set_target(reference.target)
        self._repository.set_head(f"refs/heads/{MAIN}")
        reference.delete()

    def patch(self, branch: str) -> str:
        """Return the output of `git diff -U2 main BRANCH`."""
        return str(self._diff(branch).patch or "")

    def stat(self, branch: str) -> str:
        """Return the output of `git diff --stat main BRANCH`."""
        return str(self._diff(branch).stats.format(DiffStatsFormat.FULL, 80))

    @property
    def revision(self) -> str:
        """The commit that `main` leads to."""
        return str(self._repository.branches.local[MAIN].target)

    def _diff(self, branch: str) -> pygit2.Diff:
        main, other = (self._repository.branches.local[name].peel(pygit2.Commit) for name in (MAIN, branch))
        return self._repository.diff(main, other, context_lines=2)

    def _commit(self, reference: str, subject: str, author: str, parents: list[pygit2.Oid]) -> str:
        index = self._repository.index
        index.add_all()
        index.write()
        who = pygit2.Signature(author, f"{author.lower()}@example.com", _BEGAN_S + 3600 * self._commits, 0)
        self._commits += 1
        made = self._repository.create_commit(reference, who, who, f"{subject}\n", index.write_tree(), parents)
        return str(made)
