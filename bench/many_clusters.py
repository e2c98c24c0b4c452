"""The cost of a cluster for a service at rest, watched and polled: memory, sockets, processor time.

The clusters are embedded and light, speak TLS, and each has a port of its own. Every one of them holds ten
objects of four kinds. Run by hand: `python -m bench.many_clusters 100 300`, some five minutes for each number and mode;
`PAUSE_S=660` covers a whole resync.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Final, NamedTuple

from tests.fakes.light_clusters import light_clusters
from tests.soak.idle import sample
from tests.soak.large_fleet import Large, LargeFleet, held_mib, most_mib
from tests.unit.kube.test_rotation import certificate

MODES: Final = ("watch", "poll")
OBJECTS: Final = 9
"""And the Namespace."""
SETTLED_S: Final = 320.0
"""Connections of the start are closed by then, those too that a turn used once more."""
WINDOW_S: Final = float(os.environ.get("PAUSE_S", "120"))
START_MAX_S: Final = 1800.0


class Cost(NamedTuple):
    """Of a service at rest. `share`: of one core."""

    rest_mib: float
    most_mib: float
    start_cpu_s: float
    sockets: int
    streams: int
    share: float


def sockets_of(pid: int) -> int:
    """Sockets that a process holds."""
    folder = Path(f"/proc/{pid}/fd")
    return sum(str(found.readlink()).startswith("socket:") for found in folder.iterdir())


def cost_of(clusters: int, mode: str) -> Cost:
    """Start a service, let it come to rest, and look at it for a while."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        certificate(folder, "light", 1)
        with light_clusters(folder / "light", ports=clusters) as running:
            fleet = LargeFleet(folder, Large(clusters, OBJECTS), running, drift={"mode": mode})
            with fleet.daemon as daemon:
                daemon.start(MALLOC_ARENA_MAX="2")  # as the unit does
                fleet.wait_written(fleet.large.copies, START_MAX_S)
                fleet.wait_at_rest(START_MAX_S)
                start_cpu_s = sample(daemon.pid).cpu_s
                time.sleep(SETTLED_S)
                before_s, began_s = sample(daemon.pid).cpu_s, time.monotonic()
                time.sleep(WINDOW_S)
                share = (sample(daemon.pid).cpu_s - before_s) / (time.monotonic() - began_s)
                return Cost(
                    rest_mib=held_mib(daemon.pid),
                    most_mib=most_mib(daemon.pid),
                    start_cpu_s=start_cpu_s,
                    sockets=sockets_of(daemon.pid),
                    streams=running.counts()["watching"],
                    share=share,
                )


def main(numbers: list[int]) -> None:
    """Print a table, row by row as it is measured."""
    print("| clusters | mode | at rest | peak | CPU of the start | sockets | streams | CPU at rest, of a core |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for clusters in numbers:
        for mode in MODES:
            found = cost_of(clusters, mode)
            memory = f"{found.rest_mib:.0f} MiB | {found.most_mib:.0f} MiB"
            asked = f"{found.sockets} | {found.streams} | {100 * found.share:.2f} %"
            print(f"| {clusters} | {mode} | {memory} | {found.start_cpu_s:.1f} s | {asked} |", flush=True)


if __name__ == "__main__":
    main([int(number) for number in sys.argv[1:]] or [100, 300])
