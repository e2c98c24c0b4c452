"""The memory of the service after so many commits, and after many more."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from reconciler.sim import BackgroundFleet, ClusterSpec, FleetInABox, background_fleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import config_map, policy
from tests.real_clusters import wait_until
from tests.soak.idle import MIB, sample

CLUSTERS = ("m1", "m2", "m3")


class Growth(NamedTuple):
    """Resident MiB after the first commits, after the last one, and ten times on the way."""

    commits: int
    first_mib: float
    last_mib: float
    course_mib: tuple[float, ...]

    @property
    def growth_mib(self) -> float:
        return self.last_mib - self.first_mib

    def __str__(self) -> str:
        return f"{self.commits} commits: RSS {', '.join(f'{mib:.1f}' for mib in self.course_mib)} MiB"


def growth_over(folder: Path, *, first: int, last: int) -> Growth:
    """Follow so many commits, each of which reaches the clusters before the next one."""
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], folder) as fleet:
        store = GitRepository(folder / "store", "growth", CLUSTERS)
        for number in range(10):
            store.write(f"app-{number}-policy.yaml", policy(f"app-{number}", "ConfigMap", *CLUSTERS))
            store.write(f"app-{number}.yaml", config_map(f"app-{number}", a="0"))
        with Daemon(store.folder, fleet.kubeconfig, folder / "state/journal.db") as daemon:
            daemon.start(MALLOC_ARENA_MAX="2")  # as the unit does
            for number in range(1, first + 1):
                _commit(fleet, store, daemon, number)
            course = [sample(daemon.pid).rss / MIB]
            for number in range(first + 1, last + 1):
                _commit(fleet, store, daemon, number)
                if (number - first) % max((last - first) // 10, 1) == 0:
                    course.append(sample(daemon.pid).rss / MIB)
            return Growth(last - first, course[0], sample(daemon.pid).rss / MIB, tuple(course))


def _commit(fleet: BackgroundFleet, store: GitRepository, daemon: Daemon, number: int) -> None:
    name = f"app-{number % 10}"
    store.write(f"{name}.yaml", config_map(name, a=str(number)))
    store.commit()

    def is_there(box: FleetInABox) -> bool:
        live = (box[cluster].state.get("ConfigMap", "demo", name) for cluster in CLUSTERS)
        return all(found is not None and found["data"] == {"a": str(number)} for found in live)

    wait_until(lambda: fleet.call(is_there), f"commit {number}; {daemon.text()[-1500:]}")
