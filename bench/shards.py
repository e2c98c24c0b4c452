"""One process beside several shards for the same fleet, in one run: start, a commit to all, one to a single cluster.

The clusters are light, and share one port; the Leases are in an embedded one. Every cluster gets thirty objects. Run by
hand: `python -m bench.shards 4 10 100 1000`, the shards first, then numbers of clusters; a quarter of an hour for a
thousand on two cores. On few cores the processes share what one has: what shards save is then memory and what a process
that ends takes along, not time.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, NamedTuple

import orjson
import yaml

from bench.many_clusters import sockets_of
from reconciler.daemon.round.hold import NAMESPACE
from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from reconciler.stages.shards import account_name
from tests.e2e.daemon_process import CLUSTER, Daemon
from tests.fakes.documents import config_map, policy
from tests.fakes.light_clusters import RunningClusters, light_clusters
from tests.soak.idle import sample
from tests.soak.large_fleet import Large, LargeFleet, held_mib, workload

OBJECTS: Final = 29
"""And the Namespace."""
MARKS: Final = 2
"""Of us in each cluster: a Namespace, and the ConfigMap that says who holds the fleet."""
WITHIN_S: Final = 3600.0
LOST_S: Final = 90.0
"""So long it is waited for that a lost cluster is told."""
IDLE_S: Final = 30.0
"""So long it is looked at while nothing happens, and after a cluster was lost."""
FLEET: Final = "large"
"""As `LargeFleet` calls it."""
HA: Final = {"cluster": "hub", "leaseDuration": "15s"}


class Figures(NamedTuple):
    """Of all processes together, but for `most_mib`: of the one that holds most. `idle`: of one core.

    `lost_s`: from the moment at which a cluster answers nothing any more until the log says so; `lost_cpu_s`: processor
    time from then on until a while after that, beyond what rest takes. `account_bytes`: of what the leader tells.
    """

    start_s: float
    start_cpu_s: float
    to_all_s: float
    to_one_s: float
    idle: float
    most_mib: float
    all_mib: float
    sockets: int
    lost_s: float
    lost_cpu_s: float
    account_bytes: int = 0
    killed_s: float | None = None
    """From the end of an applier, in the middle of a commit to all, until all is written."""


class Running:
    """A fleet with its processes, the leader or the only one first; of shards, one more than there are shards."""

    def __init__(self, folder: Path, clusters: int, shards: int, light: RunningClusters, hub: BackgroundFleet) -> None:
        self._hub = hub
        names = [f"s{number}" for number in range(shards)]
        spec = {"ha": {**HA, "shards": names}} if shards else {}
        self.large = LargeFleet(folder, Large(clusters, OBJECTS), light, **spec)
        self.store = self.large.store
        document = {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": "hub"}}
        self.store.write("clusters/hub.yaml", document)
        self.store.commit()
        kubeconfig = folder / "all.kubeconfig"
        kubeconfig.write_text(yaml.safe_dump(_joined(folder / "kubeconfig", hub.kubeconfig)))
        kubeconfig.chmod(0o600)
        roles = [(), *[("--role", "applier")] * (shards + 1)] if shards else [()]
        self.processes = [
            Daemon(self.store.folder, kubeconfig, folder / f"p{number}" / "journal.db", *words)
            for number, words in enumerate(roles)
        ]

    @property
    def running(self) -> list[Daemon]:
        """The processes that were not killed."""
        return [each for each in self.processes if each.is_running]

    def cpu_s(self) -> float:
        """Processor time of all of them so far."""
        return sum(sample(each.pid).cpu_s for each in self.running)

    def written(self, more: int, what: str = "write") -> Callable[[], float]:
        """How to wait until so many writes more were made; it returns the seconds since now.

        `what`: of these alone. Who takes over a cluster writes its mark, too.
        """
        begun_s, before = time.monotonic(), self.large.clusters.counts().get(what, 0)

        def wait() -> float:
            while self.large.clusters.counts().get(what, 0) < before + more:
                if time.monotonic() - begun_s > WITHIN_S:
                    raise TimeoutError([each.text()[-2000:] for each in self.processes])
                time.sleep(0.05)
            return time.monotonic() - begun_s

        return wait

    def says(self, words: str, sizes: list[int]) -> bool:
        """Whether a log has a line with the words beyond what it had."""
        for each, size in zip(self.processes, sizes, strict=True):
            with each.log.open("rb") as log:
                log.seek(size)
                if any(words in line for line in log.read().decode(errors="replace").splitlines()):
                    return True
        return False

    def lose(self, cluster: str) -> float:
        """Have a cluster answer nothing any more: after so many seconds the log says so; infinity: it does not."""
        sizes, begun_s = [each.log.stat().st_size for each in self.processes], time.monotonic()
        self.large.clusters.lose(cluster)
        while not self.says(f'"event": "ClusterUnreachable", "cluster": "{cluster}"', sizes):
            if time.monotonic() - begun_s > LOST_S:
                return float("inf")
            time.sleep(0.1)
        return time.monotonic() - begun_s

    def account_bytes(self) -> int:
        """How large the object is in which the leader tells the others what it decided."""
        name = account_name(FLEET)
        return self._hub.call(lambda box: len(orjson.dumps(box["hub"].get("ConfigMap", NAMESPACE, name))))

    def rest(self) -> None:
        """Wait until hardly anything is worked on for three seconds."""
        still = 0
        while still < 3:
            before_s = self.cpu_s()
            time.sleep(1.0)
            still = still + 1 if self.cpu_s() - before_s < 0.2 * len(self.running) else 0

    def release(self, image: str) -> Callable[[], float]:
        """A commit that changes one Deployment, which is everywhere."""
        wait = self.written(self.large.large.clusters, "write deployments")
        self.store.write("apps/app-0000.yaml", *workload(0, image))
        self.store.commit()
        return wait


def _joined(one: Path, other: Path) -> dict[str, Any]:
    found, more = (yaml.safe_load(path.read_text()) for path in (one, other))
    return {**found, **{key: found[key] + more[key] for key in ("clusters", "contexts", "users") if key in more}}


def figures(clusters: int, shards: int) -> Figures:
    """Start, measure, and end. `shards` 0: one process."""
    with (
        tempfile.TemporaryDirectory() as name,
        light_clusters() as light,
        background_fleet([ClusterSpec(name="hub")], Path(name)) as hub,
    ):
        running = Running(Path(name) / "fleet", clusters, shards, light, hub)
        try:
            return _measured(running, clusters)
        finally:
            for each in running.running:
                each.kill()


def _measured(running: Running, clusters: int) -> Figures:
    wait = running.written(running.large.large.copies + MARKS * clusters)
    for each in running.processes:
        each.start(MALLOC_ARENA_MAX="2")  # as the unit does
    start_s = wait()
    running.rest()
    start_cpu_s = running.cpu_s()
    to_all_s = running.release("2.0")()
    running.rest()
    wait = running.written(1)
    alone = policy("alone", "ConfigMap", "c000")
    running.store.write("alone.yaml", config_map("alone", value="1"), alone)
    running.store.commit()
    to_one_s = wait()
    running.rest()
    before_s, began_s = running.cpu_s(), time.monotonic()
    time.sleep(IDLE_S)
    idle = (running.cpu_s() - before_s) / (time.monotonic() - began_s)
    held = [held_mib(each.pid) for each in running.running]
    sockets = sum(sockets_of(each.pid) for each in running.running)
    account_bytes, killed_s, lost = 0, None, running.large.large.names[-1]
    if len(running.processes) > 1:
        account_bytes = running.account_bytes()
        busiest = max(running.running[1:], key=lambda each: sample(each.pid).cpu_s)
        wait = running.release("3.0")
        time.sleep(1.0)
        busiest.kill()
        killed_s = wait()
        running.rest()
        # The clusters of that one may be on their way to another.
        said = busiest.text()
        lost = next(name for name in reversed(running.large.large.names) if f'"{name}"' not in said)
    before_s, began_s = running.cpu_s(), time.monotonic()
    lost_s = running.lose(lost)
    time.sleep(IDLE_S)
    lost_cpu_s = running.cpu_s() - before_s - idle * (time.monotonic() - began_s)
    return Figures(
        *(start_s, start_cpu_s, to_all_s, to_one_s, idle, max(held), sum(held), sockets, lost_s, lost_cpu_s),
        *(account_bytes, killed_s),
    )


def main(shards: int, *numbers: int) -> None:
    """Print a table of both for each number of clusters."""
    columns = ("clusters", "processes", "start", "its CPU", "commit to all", "commit to one", "CPU at rest",
               "most memory", "all memory", "sockets", "lost: told, CPU", "account", "applier killed")  # fmt: skip
    print(f"| {' | '.join(columns)} |")
    print("|" + " --- |" * len(columns))
    for clusters in numbers:
        for count in (0, shards):
            print(f"| {clusters} {_row(figures(clusters, count), count)}", flush=True)


def _row(found: Figures, shards: int) -> str:
    who = f"leader and {shards} of {shards + 1} appliers" if shards else "one"
    spans = f"{found.start_s:.1f} s | {found.start_cpu_s:.1f} s | {found.to_all_s:.2f} s | {found.to_one_s:.2f} s"
    memory = f"{found.most_mib:.0f} MiB | {found.all_mib:.0f} MiB"
    lost = f"{found.lost_s:.1f} s, {found.lost_cpu_s:.1f} s"
    account = f"{found.account_bytes:,} B" if shards else ""
    killed = "" if found.killed_s is None else f"{found.killed_s:.0f} s"
    idle = f"{100 * found.idle:.2f} %"
    return f"| {who} | {spans} | {idle} | {memory} | {found.sockets} | {lost} | {account} | {killed} |"


if __name__ == "__main__":
    main(*(int(number) for number in sys.argv[1:]))
