"""Rollouts whose stages have clusters of two shards: a leader decides, two appliers write, the referee sees all.

The clusters are those of `tests/soak/rollouts.py`, and a seventh that keeps the Leases.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from reconciler.sim.controllers.owned import Settings
from tests.e2e.daemon_process import CLUSTER, FLEET, Daemon, GitRepository
from tests.fakes.documents import policy, web
from tests.soak.rollouts import CLUSTERS, Referee, rollout

SHARDS = {"m1": "a", "m2": "b", "m3": "a", "m4": "b", "m5": "a", "m6": "b"}
WAIT_S = 120.0
NAME = "staged"


class StagedShards:
    """The store, the three processes, and who judges them."""

    def __init__(self, folder: Path, fleet: BackgroundFleet, **given: Any) -> None:
        self.fleet = fleet
        self.folder = folder
        self.store = GitRepository(folder / "store", NAME, (*CLUSTERS, "hub"))
        self.shards(SHARDS)
        self.store.write("rollout.yaml", rollout(**given))
        self.store.write("web-policy.yaml", policy("web", "Deployment", *CLUSTERS))
        self.leader = self.process("leader")
        self.a = self.process("a", "--role", "applier", "--shard", "a")
        self.b = self.process("b", "--role", "applier", "--shard", "b")
        self.referee = Referee(fleet)

    def process(self, name: str, *words: str) -> Daemon:
        return Daemon(self.store.folder, self.fleet.kubeconfig, self.folder / name / "journal.db", *words)

    def shards(self, of: Mapping[str, str], **spec: Any) -> None:
        """Which shard each cluster is of."""
        ha = {"cluster": "hub", "leaseDuration": "10s", "shards": ["a", "b"]}
        made = {"apiVersion": FLEET, "kind": "Fleet", "metadata": {"name": NAME}, "spec": {"ha": ha, **spec}}
        self.store.write("fleet.yaml", made)
        for cluster, shard in {**of, "hub": "a"}.items():
            metadata = {"name": cluster, "labels": {"fleet.reconciler/shard": shard}}
            document = {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": metadata}
            self.store.write(f"clusters/{cluster}.yaml", document)

    def start(self) -> None:
        for each in (self.leader, self.a, self.b):
            each.start()

    def put(self, image: str) -> str:
        self.store.write("web.yaml", web(image, 2))
        return self.store.commit(image)

    def images(self) -> dict[str, str]:
        return self.referee.images()

    def all_have(self, image: str) -> bool:
        return set(self.images().values()) == {image}

    def status(self, process: Daemon) -> dict[str, Any]:
        words = [sys.executable, "-m", "reconciler", "status", "--journal", str(process.journal), "-o", "json"]
        found = subprocess.run(words, check=False, capture_output=True, text=True)
        return dict(json.loads(found.stdout)) if found.stdout else {}

    def stages(self, process: Daemon) -> dict[str, dict[str, Any]]:
        """What `status` of a process says of each stage, by its name."""
        return {each["name"]: each for found in self.status(process).get("rollouts", ()) for each in found["stages"]}

    def entries(self) -> dict[str, dict[str, str]]:
        """By cluster what its mark says of the Rollout."""
        return {name: json.loads(mark.get("rollout.default", "{}")) for name, mark in self.marks().items()}

    def marks(self) -> dict[str, dict[str, str]]:
        """The holder mark of each cluster."""
        found = self.fleet.call(
            lambda box: {name: box[name].state.get("ConfigMap", "fleet-system", f"fleet-{NAME}") for name in CLUSTERS}
        )
        return {name: dict(mark["data"]) if mark is not None else {} for name, mark in found.items()}

    def where(self, config_map: str) -> set[str]:
        """The clusters that have a ConfigMap."""
        return self.fleet.call(
            lambda box: {name for name in CLUSTERS if box[name].state.get("ConfigMap", "demo", config_map) is not None}
        )

    def in_step(self) -> bool:
        """Whether every process tells that its clusters are as the newest commit says."""
        head = str(self.store.repository.references["refs/heads/main"].target)
        told = [self.status(each) for each in (self.leader, self.a, self.b)]
        return all(each.get("revision") == head and not each.get("changes") for each in told)

    def is_complete(self, revision: str) -> bool:
        """Whether the leader tells that a revision is done everywhere."""
        found = self.status(self.leader).get("rollouts", ())
        return [(each["release"], each["done"]) for each in found] == [(revision, True)]

    def until(self, is_so: Callable[[], Any], what: str) -> None:
        deadline = time.monotonic() + WAIT_S
        while time.monotonic() < deadline:
            if is_so():
                return
            time.sleep(0.05)
        logs = {each.journal.parent.name: each.text()[-3000:] for each in (self.leader, self.a, self.b)}
        raise AssertionError(f"not {what}: {self.images()} {self.entries()} {self.stages(self.leader)} {logs}")


@contextmanager
def scene(folder: Path, **given: Any) -> Iterator[StagedShards]:
    """Nothing was started yet."""
    folder.mkdir(parents=True, exist_ok=True)
    specs = [ClusterSpec(name=name, settings=Settings(start_s=1.5)) for name in (*CLUSTERS, "hub")]
    with background_fleet(specs, folder, speed=5.0) as fleet:
        found = StagedShards(folder, fleet, **given)
        with found.leader, found.a, found.b:
            yield found


def trial(folder: Path, seed: int) -> list[str]:
    """Three commits in stages, while the processes are killed, stopped and started at random; what happened.

    Raises:
        AssertionError: a cluster went back, or had a version before the gates of earlier stages were passed.
    """
    random = Random(seed)
    told: list[str] = []
    with scene(folder) as found, found.process("spare", "--role", "applier") as spare:
        processes = {"leader": found.leader, "a": found.a, "b": found.b, "spare": spare}
        first = found.put("nginx:1")
        for each in processes.values():
            each.start()
        found.until(lambda: found.is_complete(first), "the first revision completed")
        for number in (2, 3, 4):
            revision = found.put(f"nginx:{number}")
            for _ in range(random.randint(1, 4)):
                time.sleep(random.uniform(0.0, 6.0))
                who = random.choice(list(processes))
                told.append(_strike(processes[who], who, random))
            for each in processes.values():
                if not each.is_running:
                    each.start()
            found.until(partial(found.is_complete, revision), f"revision {number} completed; {told}")
        found.until(lambda: found.all_have("nginx:4"), "the last revision everywhere")
        assert not found.referee.wrong, (found.referee.wrong, told)
    return told


def _strike(process: Daemon, who: str, random: Random) -> str:
    """What happens to a process now."""
    what = random.choice(["kill", "kill and start", "sleep", "sleep past the Lease"])
    if not process.is_running:
        process.start()
        return f"{who} starts"
    if what.startswith("kill"):
        process.kill()
        if what == "kill and start":
            process.start()
    else:
        os.kill(process.pid, signal.SIGSTOP)
        time.sleep(random.uniform(0.5, 3.0) if what == "sleep" else 12.0)
        os.kill(process.pid, signal.SIGCONT)
    return f"{who}: {what}"
