"""A whole fleet of embedded clusters with a kubeconfig: for the demo, tutorials and fault tests."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self, TypeVar

from msgspec import Struct, field

from reconciler.sim.cluster import Cluster, NodeSpec
from reconciler.sim.controllers.owned import Settings
from reconciler.sim.faults import Faults
from reconciler.sim.server import ClusterServer

T = TypeVar("T")


class ClusterSpec(Struct, frozen=True, kw_only=True):
    """One cluster to start."""

    name: str
    nodes: tuple[NodeSpec, ...] = (NodeSpec(name="n1"),)
    settings: Settings = field(default_factory=Settings)


class FleetInABox:
    """Servers for some clusters in the running event loop. `async with FleetInABox(…) as box:` starts and stops them.

    `box[name]` is the model of a cluster, `box.servers[name]` its server. The kubeconfig has one context per cluster,
    named as the cluster.
    """

    def __init__(
        self,
        clusters: Sequence[ClusterSpec],
        folder: Path,
        *,
        seed: int = 0,
        now_s: float | None = None,
        speed: float | None = 1.0,
    ) -> None:
        """Describe the fleet; nothing listens yet. `speed` None: time passes only through `advance`.

        Without `now_s` a fleet that follows the clock begins now, one that does not at a fixed moment.
        """
        if now_s is None:
            now_s = time.time() if speed is not None else 1_750_000_000.0
        self.kubeconfig = folder / "kubeconfig"
        self.servers: dict[str, ClusterServer] = {}
        self._clusters: dict[str, Cluster] = {}
        self._speed = speed
        self._seed = seed
        for index, spec in enumerate(clusters):
            cluster = Cluster(spec.name, seed=seed * 1000 + index, now_s=now_s, settings=spec.settings)
            for node in spec.nodes:
                cluster.add_node(node)
            self._clusters[spec.name] = cluster

    def __getitem__(self, name: str) -> Cluster:
        """The model of a cluster."""
        return self._clusters[name]

    @property
    def names(self) -> list[str]:
        """Names of the clusters, as given."""
        return list(self._clusters)

    async def start(self) -> None:
        """Start every cluster and write the kubeconfig."""
        for index, (name, cluster) in enumerate(self._clusters.items()):
            faults = Faults(seed=self._seed * 1000 + index)
            self.servers[name] = ClusterServer(cluster, faults=faults, speed=self._speed)
            await self.servers[name].start()
        write_kubeconfig(self.kubeconfig, {name: server.url for name, server in self.servers.items()})

    async def stop(self) -> None:
        """Stop every cluster."""
        for server in self.servers.values():
            server.resume()
            await server.stop()

    async def __aenter__(self) -> Self:
        """Start."""
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Stop."""
        await self.stop()

    def advance(self, seconds: float) -> None:
        """Let the same time pass in every cluster."""
        for name in sorted(self._clusters):
            self._clusters[name].run_for(seconds)

    def replace(self, name: str, *, nodes: Sequence[NodeSpec] = (NodeSpec(name="n1"),)) -> None:
        """Let another, empty cluster answer under a name."""
        cluster = self._clusters[name]
        cluster.become_another(seed=self._seed * 1000 + 500 + len(cluster.audit))
        for node in nodes:
            cluster.add_node(node)


def write_kubeconfig(path: Path, urls: dict[str, str]) -> None:
    """Write a kubeconfig with one context per cluster, readable by its owner only; the first is current."""
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": url}} for name, url in urls.items()],
        "users": [{"name": name, "user": {}} for name in urls],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}} for name in urls],
        "current-context": next(iter(urls), ""),
    }
    path.touch(mode=0o600)
    path.write_text(json.dumps(config, indent=2) + "\n", encoding="utf-8")


class BackgroundFleet:
    """A fleet in a thread of its own, for callers that have no event loop. The models belong to that thread."""

    def __init__(self, box: FleetInABox, loop: asyncio.AbstractEventLoop) -> None:
        """Wrap a started fleet."""
        self.box = box
        self.kubeconfig = box.kubeconfig
        self._loop = loop

    def call(self, function: Callable[[FleetInABox], T]) -> T:
        """Run a function on the fleet in its thread and return its result."""

        async def run() -> T:
            return function(self.box)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result()

    def wait(self, function: Callable[[FleetInABox], Any]) -> None:
        """Run a coroutine function on the fleet (`lambda box: box.servers["m1"].stop()`) to its end."""

        async def run() -> None:
            await function(self.box)

        asyncio.run_coroutine_threadsafe(run(), self._loop).result()


@contextmanager
def background_fleet(
    clusters: Sequence[ClusterSpec],
    folder: Path,
    *,
    seed: int = 0,
    now_s: float | None = None,
    speed: float | None = 1.0,
) -> Iterator[BackgroundFleet]:
    """A started fleet in a thread; stopped at the end of the block."""
    started: Future[tuple[FleetInABox, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def serve() -> None:
        stopping = asyncio.Event()
        try:
            async with FleetInABox(clusters, folder, seed=seed, now_s=now_s, speed=speed) as box:
                started.set_result((box, asyncio.get_running_loop(), stopping))
                await stopping.wait()
        except OSError as error:
            started.set_exception(error)

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="fleet-in-a-box", daemon=True)
    thread.start()
    box, loop, stopping = started.result()
    try:
        yield BackgroundFleet(box, loop)
    finally:
        loop.call_soon_threadsafe(stopping.set)
        thread.join()
