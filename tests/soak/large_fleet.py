"""A fleet of many clusters with many objects, and the memory that a service of its own process takes for it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import ACK
from tests.fakes.light_clusters import RunningClusters, light_clusters
from tests.soak.idle import MIB, sample

NAMESPACE = "demo"


class Large(NamedTuple):
    """So many clusters, each with so many objects: a third Deployments, ConfigMaps and Services each."""

    clusters: int
    objects: int

    @property
    def copies(self) -> int:
        """In all clusters together, the Namespace in each of them with them."""
        return self.clusters * (self.objects + 1)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"c{number:03}" for number in range(self.clusters))


def write_store(store: GitRepository, large: Large) -> None:
    """A file for each workload, and a policy that sends everything everywhere."""
    selectors = [
        {"apiVersion": version, "kind": kind}
        for version, kind in (("apps/v1", "Deployment"), ("v1", "ConfigMap"), ("v1", "Service"))
    ]
    policy = {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": {"name": "all", "namespace": NAMESPACE},
              "spec": {"resourceSelectors": selectors, "placement": {}}}  # fmt: skip
    store.write("policy.yaml", policy)
    for number in range(0, large.objects, 3):
        found = workload(number)[: large.objects - number]
        text = yaml.dump_all(found, Dumper=yaml.CSafeDumper)
        store.write_text(f"apps/app-{number:04}.yaml", text)


def workload(number: int, image: str = "1.0") -> list[dict[str, Any]]:
    """A Deployment, its ConfigMap and its Service."""
    name = f"app-{number:04}"
    metadata = {"name": name, "namespace": NAMESPACE, "labels": {"app": name, "team": f"team-{number % 7}"}}
    container = {
        "name": "main", "image": f"registry.example.com/shop/{name}:{image}", "ports": [{"containerPort": 8080}],
        "env": [{"name": f"SETTING_{n}", "value": f"value {n} of {name}"} for n in range(8)],
        "resources": {"requests": {"cpu": "100m", "memory": "128Mi"}, "limits": {"memory": "256Mi"}},
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 10},
    }  # fmt: skip
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [container]}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    return [
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata,
         "data": {"settings.yaml": f"# of {name}\n" + "".join(f"key-{n}: value-{n}\n" for n in range(40))}},
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata,
         "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]}},
    ]  # fmt: skip


class LargeFleet:
    """The clusters, the store and the service."""

    def __init__(self, folder: Path, large: Large, clusters: RunningClusters, *arguments: str, **spec: Any) -> None:
        self.large, self.clusters = large, clusters
        self.store = GitRepository(folder / "store", "large", large.names, **spec)
        write_store(self.store, large)
        self.store.commit()
        kubeconfig = clusters.kubeconfig(large.names, folder / "kubeconfig")
        self.daemon = Daemon(self.store.folder, kubeconfig, folder / "state/journal.db", *arguments)

    def wait_written(self, writes: int, timeout_s: float) -> None:
        """Return once so many writes were made."""
        deadline = time.monotonic() + timeout_s
        while (counts := self.clusters.counts()).get("write", 0) < writes:
            assert time.monotonic() < deadline, f"{counts}; it said {self.daemon.text()[-2000:]}"
            assert self.daemon.is_running, self.daemon.text()[-2000:]
            time.sleep(0.2)

    def wait_at_rest(self, timeout_s: float) -> None:
        """Return once nothing was asked and nothing was worked on for two seconds."""
        deadline, still_s, before = time.monotonic() + timeout_s, 0.0, (-1.0, dict[str, int]())
        while still_s < 2.0:
            assert time.monotonic() < deadline, self.daemon.text()[-2000:]
            now = sample(self.daemon.pid).cpu_s, self.clusters.counts()
            is_still = now[0] - before[0] < 0.15 and now[1] == before[1]
            still_s, before = (still_s + 0.5 if is_still else 0.0), now
            time.sleep(0.5)


@contextmanager
def large_fleet(folder: Path, large: Large, *arguments: str) -> Iterator[LargeFleet]:
    """All of it; the service is not started yet. `arguments`: more of its options."""
    with light_clusters() as clusters:
        fleet = LargeFleet(folder, large, clusters, *arguments)
        with fleet.daemon:
            yield fleet


def most_mib(pid: int) -> float:
    """The most that the process ever held. Source: proc_pid_status(5), VmHWM."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = next(line for line in lines if line.startswith("VmHWM:"))
    return int(found.split()[1]) / 1024


def held_mib(pid: int) -> float:
    """Return its present memory."""
    return sample(pid).rss / MIB


class Taken(NamedTuple):
    """MiB before so many objects came, at the peak, and at rest with them."""

    objects: int
    before_mib: float
    most_mib: float
    rest_mib: float

    @property
    def copy_kib(self) -> float:
        """KiB for each of them, at the peak."""
        return (self.most_mib - self.before_mib) * 1024 / self.objects

    def __str__(self) -> str:
        return (
            f"{self.objects:,} objects: {self.before_mib:.0f} MiB before, {self.most_mib:.0f} at the peak, "
            f"{self.rest_mib:.0f} at rest, {self.copy_kib:.1f} KiB an object"
        )


def first_objects(fleet: LargeFleet, large: Large, timeout_s: float = 120) -> Taken:
    """Return the memory for a commit that brings objects to nearly empty clusters."""
    few, daemon = fleet.large, fleet.daemon
    daemon.start(MALLOC_ARENA_MAX="2")  # as the unit does
    fleet.wait_written(few.copies, timeout_s)
    fleet.wait_at_rest(timeout_s)
    before_mib = held_mib(daemon.pid)
    write_store(fleet.store, large)
    fleet.store.commit()
    fleet.wait_written(large.copies, timeout_s)
    fleet.wait_at_rest(timeout_s)
    return Taken(large.copies - few.copies, before_mib, most_mib(daemon.pid), held_mib(daemon.pid))
