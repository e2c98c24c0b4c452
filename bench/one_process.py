"""One process with many clusters: a start, commits, a cluster that goes and comes back, ten that hang.

The clusters are light and share one port. For each step: seconds until it is done, processor time of the service, and
requests by verb, in the clusters that it concerns and in all others together. Run by hand:
`python -m bench.one_process 100x1000 1000x5`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final, NamedTuple

from tests.fakes.documents import config_map, policy
from tests.fakes.light_clusters import light_clusters
from tests.soak.idle import sample
from tests.soak.large_fleet import Large, LargeFleet, held_mib, most_mib, workload

WITHIN_S: Final = 3600.0
IDLE_S: Final = 60.0
HANGING: Final = 10
TOLD_S: Final = 200.0
"""A watch is believed for 150 s: a cluster that is silent with its watches open is noticed by then."""


class Step(NamedTuple):
    """One step: its name, seconds until it was done, processor seconds until all was at rest, and requests."""

    name: str
    wall_s: float
    cpu_s: float
    there: Counter[str]
    elsewhere: Counter[str]

    def row(self) -> str:
        """Return the step as a row of the table."""
        asked = [", ".join(f"{found[verb]:,} {verb}" for verb in ("read", "watch", "write") if found[verb]) or "none"
                 for found in (self.there, self.elsewhere)]  # fmt: skip
        return f"| {self.name} | {self.wall_s:.2f} s | {self.cpu_s:.2f} s | {asked[0]} | {asked[1]} |"


class Bench:
    """A fleet on light clusters, and what each step costs."""

    def __init__(self, fleet: LargeFleet) -> None:
        self.fleet = fleet
        self.clusters, self.daemon, self.store = fleet.clusters, fleet.daemon, fleet.store

    def step(self, name: str, concerned: Collection[str], begin: Callable[[], Callable[[], None]]) -> Step:
        """Measure from `begin` until what it returns has waited, and the requests until all is at rest again."""
        before, cpu_s, begun_s = self.clusters.asked(), sample(self.daemon.pid).cpu_s, time.monotonic()
        wait = begin()
        wait()
        wall_s = time.monotonic() - begun_s
        self.fleet.wait_at_rest(WITHIN_S)
        found = {cluster: asked - before.get(cluster, Counter()) for cluster, asked in self.clusters.asked().items()}
        there = sum((found[one] for one in concerned if one in found), Counter[str]())
        others = sum((asked for one, asked in found.items() if one not in concerned), Counter[str]())
        return Step(name, wall_s, sample(self.daemon.pid).cpu_s - cpu_s, there, others)

    def written(self, more: int) -> Callable[[], None]:
        """Return how to wait until so many writes more were made."""
        goal = self.clusters.counts().get("write", 0) + more
        return lambda: self.fleet.wait_written(goal, WITHIN_S)

    def commit_to(self, cluster: str, name: str) -> Callable[[], None]:
        """Commit a ConfigMap that goes to one cluster."""
        wait = self.written(1)
        self.store.write(f"{name}.yaml", config_map(name, value="1"), policy(name, "ConfigMap", cluster))
        self.store.commit()
        return wait

    def commit_to_all(self, image: str) -> Callable[[], None]:
        """Commit another image of a Deployment that is everywhere."""
        wait = self.written(self.fleet.large.clusters)
        self.store.write("apps/app-0000.yaml", *workload(0, image)[: self.fleet.large.objects])
        self.store.commit()
        return wait

    def says(self, event: str, clusters: Collection[str]) -> Callable[[], None]:
        """Return how to wait until the log has a line of the event for each of these clusters, from now on."""
        size = len(self.daemon.text())

        def wait() -> None:
            deadline = time.monotonic() + TOLD_S
            left = set(clusters)
            while left:
                lines = [line for line in self.daemon.text()[size:].splitlines() if f'"{event}"' in line]
                left = {name for name in left if not any(f'"{name}"' in line for line in lines)}
                if time.monotonic() > deadline:
                    print(f"no {event} of {', '.join(sorted(left))}", file=sys.stderr)
                    return
                time.sleep(0.05)

        return wait

    def away(self, clusters: Collection[str], how: Callable[[str], None]) -> Callable[[], None]:
        """Have clusters answer nothing any more."""
        wait = self.says("ClusterUnreachable", clusters)
        for name in clusters:
            how(name)
        return wait

    def back(self, clusters: Collection[str]) -> Callable[[], None]:
        """Have them answer again."""
        wait = self.says("ClusterRecovered", clusters)
        for name in clusters:
            self.clusters.find(name)
        return wait

    def run(self) -> None:
        """Print each step as it is measured."""
        names = self.fleet.large.names
        one, hanging = names[-1], names[-HANGING - 1 : -1]
        self.daemon.start(MALLOC_ARENA_MAX="2")  # as the unit does
        marks = 2 * len(names)
        print(self.step("start", names, lambda: self.written(self.fleet.large.copies + marks)).row(), flush=True)
        most = most_mib(self.daemon.pid)
        cpu_s = sample(self.daemon.pid).cpu_s
        time.sleep(IDLE_S)
        share = (sample(self.daemon.pid).cpu_s - cpu_s) / IDLE_S
        steps: list[tuple[str, Collection[str], Callable[[], Callable[[], None]]]] = [
            ("commit to one", names[:1], lambda: self.commit_to(names[0], "alone")),
            ("commit to all", names, lambda: self.commit_to_all("2.0")),
            ("one cluster away", [one], lambda: self.away([one], self.clusters.lose)),
            ("it is back", [one], lambda: self.back([one])),
            ("ten hang", hanging, lambda: self.away(hanging, self.clusters.hang)),
            ("commit to one beside them", names[:1], lambda: self.commit_to(names[0], "beside")),
            ("they are back", hanging, lambda: self.back(hanging)),
        ]
        for name, concerned, begin in steps:
            print(self.step(name, concerned, begin).row(), flush=True)
        rest = held_mib(self.daemon.pid)
        print(
            f"\nat rest {100 * share:.2f} % of a core; {most:.0f} MiB at the peak of the start, {rest:.0f} at the end\n"
        )


def main(sizes: list[str]) -> None:
    """Print a table for each size."""
    for size in sizes:
        clusters, objects = map(int, size.split("x"))
        print(f"{clusters:,} clusters, {objects:,} objects each\n")
        print("| step | done after | processor time | requests there | requests elsewhere |")
        print("| --- | --- | --- | --- | --- |")
        with tempfile.TemporaryDirectory() as folder, light_clusters() as running:
            fleet = LargeFleet(Path(folder), Large(clusters, objects), running)
            with fleet.daemon:
                Bench(fleet).run()


if __name__ == "__main__":
    main(sys.argv[1:] or ["100x1000", "1000x5"])
