"""A large fleet whose service is asked for its views while rounds run: `python -m tests.soak.pages [500 [50]]`.

Commits go on meanwhile, so that answers are of new moments. Without further ado it prints what each view took; with
`--stay` it says where the service listens and goes on until it is interrupted, for a look at its pages.
"""

from __future__ import annotations

import re
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

import yaml

from tests.real_clusters import wait_until
from tests.soak.large_fleet import Large, LargeFleet, large_fleet, workload

TIMEOUT_S: Final = 1800.0
VIEWS: Final = {
    "fleet": "fleet",
    "matrix": "matrix",
    "matrix, 50 rows": "matrix?limit=50&offset={n}",
    "matrix, troubles": "matrix?troubles=1",
    "matrix, search": "matrix?q=app-0{n}",
    "cluster": "clusters/c{n:03}",
    "object": "objects/deploy/demo/app-{n3:04}",
    "problems": "problems",
    "history": "history",
    "status": "status",
}
"""The requests by name; `{n}` is another number each time, so that not all is cached."""


class Taken(NamedTuple):
    """Milliseconds of a view, over so many answers, and the bytes of the last one as it was sent."""

    p50_ms: float
    p95_ms: float
    most_ms: float
    size: int


class Pages:
    """The running service and where it is asked."""

    def __init__(self, fleet: LargeFleet, address: str) -> None:
        self.fleet, self.address = fleet, address
        self._commits = 0

    def get(self, path: str) -> tuple[float, int]:
        """Milliseconds until the whole answer was there, and its bytes."""
        request = urllib.request.Request(f"http://{self.address}/api/v1/{path}", headers={"Accept-Encoding": "gzip"})
        begun = time.perf_counter()
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - http
            size = len(answer.read())
        return (time.perf_counter() - begun) * 1000, size

    def commit(self) -> None:
        self._commits += 1
        number = self._commits % (self.fleet.large.objects // 3) * 3
        text = yaml.dump_all(workload(number, f"2.{self._commits}"), Dumper=yaml.CSafeDumper)
        self.fleet.store.write_text(f"apps/app-{number:04}.yaml", text)
        self.fleet.store.commit(f"release {self._commits}")

    def measured(self, rounds: int) -> dict[str, Taken]:
        """Each view so many times in turn, with a commit before each turn."""
        found: dict[str, list[float]] = {name: [] for name in VIEWS}
        sizes: dict[str, int] = {}
        for turn in range(rounds):
            self.commit()
            for name, path in VIEWS.items():
                number = turn % self.fleet.large.clusters
                taken, sizes[name] = self.get(path.format(n=number, n3=number * 3))
                found[name].append(taken)
        return {name: _taken(times, sizes[name]) for name, times in found.items()}


def _taken(times: list[float], size: int) -> Taken:
    p95 = statistics.quantiles(times, n=20)[18] if len(times) > 1 else times[0]
    return Taken(statistics.median(times), p95, max(times), size)


@contextmanager
def served_fleet(folder: Path, large: Large) -> Iterator[Pages]:
    """The fleet, all of it written and at rest, and its service with its address."""
    with large_fleet(folder, large, "--listen", "127.0.0.1:0") as fleet:
        fleet.daemon.start()
        fleet.daemon.says('"pages are served"')
        fleet.wait_written(fleet.large.copies, TIMEOUT_S)
        fleet.wait_at_rest(TIMEOUT_S)
        address = re.findall(r'"event": ?"Listening".*?"obj": ?"([^"]+)"', fleet.daemon.text())[-1]
        yield Pages(fleet, address)


def main(workloads: int = 500, clusters: int = 50, *, stays: bool = False) -> None:
    """Print what each view took, or where it listens."""
    with (
        tempfile.TemporaryDirectory() as folder,
        served_fleet(Path(folder), Large(clusters, workloads * 3)) as pages,
    ):
        if stays:
            print(f"http://{pages.address}", flush=True)
            wait_until(lambda: not pages.fleet.daemon.is_running, "the service to end", timeout_s=86_400)
            return
        for name, taken in pages.measured(40).items():
            print(f"{name:20} p50 {taken.p50_ms:6.1f} ms  p95 {taken.p95_ms:6.1f} ms  most {taken.most_ms:6.1f} ms"
                  f"  {taken.size / 1024:8.1f} KiB")  # fmt: skip


if __name__ == "__main__":
    numbers = [int(text) for text in sys.argv[1:] if text.isdigit()]
    main(*numbers, stays="--stay" in sys.argv)
