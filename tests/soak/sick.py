"""Twenty clusters, one of which is sick: how long the others wait for each of ten commits, and its end for the service.

The clusters run in this process, the service in one of its own, with a Git store. All times are by the wall clock.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from reconciler.sim import ClusterSpec, Event, Fault, FaultKind, Faults, FleetInABox, is_write
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import config_map, policy

CLUSTERS: Final = tuple(f"c{number:02}" for number in range(20))
SICK: Final = CLUSTERS[7]
COMMITS: Final = 10
_GIVE_UP_S: Final = 90.0


def _well(faults: Faults) -> None:
    """Nothing is the matter."""


def _hangs(faults: Faults) -> None:
    faults.order(Fault(kind=FaultKind.HANGING), times=10**9)


def _hangs_on_writes(faults: Faults) -> None:
    faults.order(Fault(kind=FaultKind.HANGING), when=is_write, times=10**9)


def _writes_slowly(faults: Faults) -> None:
    faults.write_latency_s = 10.0


def _answers_slowly(faults: Faults) -> None:
    faults.latency_s = (2.0, 2.0)


STATES: Final[Mapping[str, Callable[[Faults], None]]] = {
    "nobody is sick": _well,
    "it answers nothing": _hangs,
    "it hangs on writes": _hangs_on_writes,
    "it takes 10 s for each write": _writes_slowly,
    "it takes 2 s for each answer": _answers_slowly,
}


class Measured(NamedTuple):
    """Seconds from each commit until the last of the healthy clusters had it, and from SIGTERM to the end."""

    commits_s: tuple[float, ...]
    end_s: float
    code: int

    def __str__(self) -> str:
        shown = " ".join(f"{found:.2f}" for found in self.commits_s)
        return f"commits {shown} s (most {max(self.commits_s):.2f}); end after {self.end_s:.1f} s"


class _Watcher:
    """The time when each cluster first showed a value of the ConfigMap."""

    def __init__(self, box: FleetInABox) -> None:
        self.seen: dict[tuple[str, str], float] = {}
        for name in CLUSTERS:
            box[name].state.store.listeners.append(lambda event, name=name: self._note(name, event))  # type: ignore[misc]

    def _note(self, cluster: str, event: Event) -> None:
        if event.body["metadata"]["name"] == "app" and event.type != "DELETED":
            self.seen.setdefault((cluster, event.body["data"]["value"]), time.monotonic())

    async def all_show(self, value: str, clusters: list[str], since_s: float) -> float:
        """Seconds since then until the last of them showed it."""
        while not all((name, value) in self.seen for name in clusters):
            late = [name for name in clusters if (name, value) not in self.seen]
            assert time.monotonic() - since_s < _GIVE_UP_S, f"{value} is not in {late}"
            await asyncio.sleep(0.01)
        return max(self.seen[name, value] for name in clusters) - since_s


async def measure(folder: Path, state: Callable[[Faults], None], commits: int = COMMITS) -> Measured:
    """Let one of the clusters fall sick under a service at rest, commit, and end the service while it is sick."""
    store = GitRepository(folder / "store", "sick", CLUSTERS)

    def commit(value: str) -> float:
        chosen: dict[str, Any] = policy("app", "ConfigMap", *CLUSTERS)
        store.write("app.yaml", chosen, config_map("app", value=value))
        store.commit(value)
        return time.monotonic()

    async with FleetInABox([ClusterSpec(name=name) for name in CLUSTERS], folder) as box:
        watcher, healthy = _Watcher(box), [name for name in CLUSTERS if name != SICK]
        began_s = commit("first")
        with Daemon(store.folder, box.kubeconfig, folder / "state" / "journal.db") as daemon:
            daemon.start()
            await watcher.all_show("first", list(CLUSTERS), began_s)
            await asyncio.sleep(2.0)
            state(box.servers[SICK].faults)
            taken = []
            for number in range(commits):
                value = f"n{number}"
                taken.append(await watcher.all_show(value, healthy, commit(value)))
                # Not in step with the service.
                await asyncio.sleep(0.3 + 0.07 * number)
            began_s = time.monotonic()
            code = await asyncio.to_thread(daemon.stop)
            return Measured(tuple(taken), time.monotonic() - began_s, code)
