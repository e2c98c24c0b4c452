"""One seeded trial of a sharded fleet: processes that die, sleep and come back, ways that are cut, and busy hands.

The referee shares nothing with the daemon. It sees every write in the moment in which it is made, with the process
that made it, and knows who wrote the mark of that cluster last; at the end all equals the store, and is quiet.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from reconciler.sim import ClusterSpec, FaultKind, FleetInABox, Request, background_fleet
from reconciler.sim.controllers.owned import Settings
from tests.e2e.daemon_process import CLUSTER, FLEET, Daemon, GitRepository
from tests.fakes.documents import config_map, policy, web
from tests.soak.gates import Gates
from tests.soak.sharded_referee import CLUSTERS, MEMBERS, NAME, SYSTEM, Referee

LABEL = "fleet.reconciler/shard"
DURATION = "8s"
REST_S = 150.0
QUIET_S = 10.0
DYNAMIC = {
    "clusterAffinity": {"clusterNames": list(MEMBERS)},
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
}
ONCE = [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}]
NONSENSE: tuple[dict[str, Any], ...] = (
    {"holderIdentity": ""}, {"holderIdentity": "somebody"}, {"leaseTransitions": 2**31 - 1}, {"leaseTransitions": 0},
    {"holderIdentity": 7, "leaseDurationSeconds": -4}, {"leaseDurationSeconds": "x"},
)  # fmt: skip


def _begin_again(cluster: str, box: FleetInABox) -> Coroutine[None, None, None]:
    return box.servers[cluster].start()


class Trial:
    """One seed."""

    def __init__(self, seed: int, folder: Path, *, steps: int) -> None:
        """Nothing runs yet."""
        self.rng = random.Random(seed)
        self.folder = folder
        self.steps = steps
        self.value = 0
        self.names: dict[str, bool] = dict.fromkeys([f"c{number}" for number in range(4)], True)
        self.shards = ["a", "b"]
        self.of = {name: self.rng.choice("ab") for name in CLUSTERS}
        self.image = 1
        self.job = 0
        self.jobs: list[str] = []
        self.backups: dict[str, Path] = {}
        self.story: list[str] = []
        self.stopped: set[str] = set()
        self.away: set[str] = set()
        self.mover = "m1"

    def run(self) -> None:
        """Go through everything.

        Raises:
            AssertionError: the fleet did not come to rest as it should, or the rules were broken.
        """
        with self._scene():
            for process in self.processes.values():
                process.start()
            self._rest("at the beginning")
            for _ in range(self.steps):
                self._happen()
                time.sleep(self.rng.uniform(0, 4))
            self._heal()
            self._commit()
            self._rest("after the faults")
            self._is_quiet()
            assert not self.referee.violations, self._told("\n".join(self.referee.violations))
            twice = {name: found for name, found in self.referee.jobs.items() if len(found) > 1}
            assert not twice, self._told(f"begun twice: {twice}")
            assert self.jobs == sorted(self.referee.jobs), self._told("each run has begun")
            assert self._foreign() == self.foreign, self._told("what is of somebody else was touched")

    @contextmanager
    def _scene(self) -> Iterator[None]:
        settings = Settings(start_s=1.0, job_s=2.0)
        specs = [ClusterSpec(name=name, settings=settings) for name in CLUSTERS]
        with ExitStack() as stack:
            self.folder.mkdir(parents=True)
            self.fleet = stack.enter_context(background_fleet(specs, self.folder))
            self.foreign = self._foreign(make=True)
            urls = self.fleet.call(lambda box: {name: server.url for name, server in box.servers.items()})
            self.gates = stack.enter_context(Gates(urls))
            self.referee = Referee(self.fleet)
            self.store = GitRepository(self.folder / "store", NAME, CLUSTERS)
            self._write()
            self.store.commit()
            self.processes = {
                name: stack.enter_context(self._process(name, *words))
                for name, words in {
                    "leader1": (), "leader2": (), "applier1": ("--role", "applier"),
                    "applier2": ("--role", "applier"), "applier3": ("--role", "applier"),
                    "applier4": ("--role", "applier", "--shard", "b"),
                }.items()
            }  # fmt: skip
            yield

    def _process(self, name: str, *words: str) -> Daemon:
        path = self.gates.kubeconfig(name, self.folder / name / "kubeconfig")
        return Daemon(self.store.folder, path, self.folder / name / "journal.db", *words)

    # The store

    def _write(self) -> None:
        ha = {"cluster": "hub", "leaseDuration": DURATION, **({"shards": self.shards} if self.shards else {})}
        guards = {"maxDeletes": 100, "maxDeletePercent": 100}
        self.store.write("fleet.yaml", {"apiVersion": FLEET, "kind": "Fleet", "metadata": {"name": NAME},
                                        "spec": {"ha": ha, "guards": guards}})  # fmt: skip
        for cluster, shard in self.of.items():
            labels = {LABEL: shard} if shard in self.shards else {}
            metadata = {"name": cluster, "labels": labels}
            self.store.write(
                f"clusters/{cluster}.yaml", {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": metadata}
            )
        kept = [
            document
            for name, is_there in self.names.items()
            for document in (
                policy(name, "ConfigMap", *MEMBERS),
                *([config_map(name, value=str(self.value))] if is_there else []),
            )
        ]
        self.store.write("maps.yaml", *kept)
        self.store.write(
            "web.yaml", web(f"nginx:{self.image}", 6, "none"), policy("web", "Deployment", placement=DYNAMIC)
        )
        moved = web("nginx:1", 2, "none")
        moved["metadata"]["name"] = "mover"
        self.store.write("mover.yaml", moved, policy("mover", "Deployment", self.mover))
        for name in self.jobs:
            made = policy(name, "Job", *MEMBERS)
            made["spec"]["resourceSelectors"][0]["apiVersion"] = "batch/v1"
            made["spec"]["placement"]["spreadConstraints"] = ONCE
            pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "migrate:1"}]}
            self.store.write(f"{name}.yaml", made, {"apiVersion": "batch/v1", "kind": "Job", "metadata": {
                "name": name, "namespace": "demo"}, "spec": {"template": {"spec": pod}}})  # fmt: skip

    def _commit(self) -> None:
        self.value += 1
        for name in self.names:
            self.names[name] = self.rng.random() < 0.75
        if self.rng.random() < 0.5:
            self.image += 1
        if self.rng.random() < 0.4:
            self.mover = self.rng.choice(MEMBERS)
        if self.rng.random() < 0.5 and len(self.jobs) < 9:
            self.jobs.append(f"job{len(self.jobs)}")
        self._write()
        self.store.commit()

    # What happens

    def _happen(self) -> None:
        name = self.rng.choice(sorted(self.processes))
        happenings: dict[Callable[[str], None], int] = {
            self._new_commit: 6, self._relabel: 2, self._reshard: 1, self._kill: 3, self._sleep: 3, self._leave: 1,
            self._wake: 2, self._start: 4, self._cut: 2, self._heal_ways: 2, self._by_hand: 4, self._lose: 1,
            self._back_up: 1, self._restore: 1, self._lose_answers: 2, self._slow_down: 2, self._break_cluster: 2,
        }  # fmt: skip
        happens = self.rng.choices(list(happenings), list(happenings.values()))[0]
        self.story.append(f"{time.monotonic():.2f} {happens.__name__} {name}")
        happens(name)

    def _new_commit(self, _: str) -> None:
        self._commit()

    def _reshard(self, _: str) -> None:
        self.shards = self.rng.choice([["a", "b"], ["a", "b"], ["a", "c"], ["b"], []])
        self._commit()

    def _relabel(self, _: str) -> None:
        for name in self.rng.sample(CLUSTERS, 2):
            self.of[name] = self.rng.choice("abc")
        self._commit()

    def _sleep(self, name: str) -> None:
        if self.processes[name].is_running:
            os.kill(self.processes[name].pid, signal.SIGSTOP)
            self.stopped.add(name)

    def _leave(self, name: str) -> None:
        if self.processes[name].is_running and name not in self.stopped:
            self.processes[name].stop()

    def _cut(self, name: str) -> None:
        for each in self.processes if self.rng.random() < 0.3 else [name]:
            self.gates.cut(each, "hub")

    def _heal_ways(self, _: str = "") -> None:
        self.gates.heal()

        def clear(box: FleetInABox) -> None:
            for server in box.servers.values():
                server.faults.clear()

        self.fleet.call(clear)
        for name in sorted(self.away):
            self.fleet.wait(partial(_begin_again, name))
        self.away.clear()

    def _lose(self, name: str) -> None:
        self._kill(name)
        for path in self.processes[name].journal.parent.glob("journal.db*"):
            path.unlink()

    def _back_up(self, name: str) -> None:
        """A copy of the files as they are, also while they are written: a snapshot of a disk is no better."""
        if self.processes[name].journal.exists():
            self._kill(name)
            self.backups[name] = self.folder / "backups" / name
            shutil.copytree(self.processes[name].journal.parent, self.backups[name], dirs_exist_ok=True)

    def _restore(self, name: str) -> None:
        if name in self.backups:
            self._lose(name)
            for path in self.backups[name].glob("journal.db*"):
                shutil.copy(path, self.processes[name].journal.parent)

    def _lose_answers(self, _: str) -> None:
        def change(box: FleetInABox) -> None:
            for server in box.servers.values():
                server.faults.rates = {FaultKind.LOST_RESPONSE: 0.15}

        self.fleet.call(change)

    def _slow_down(self, _: str) -> None:
        """Writes take their time, so that more of them are under way when something happens."""
        latency_s = self.rng.uniform(0.1, 1.5)

        def change(box: FleetInABox) -> None:
            for name in MEMBERS:
                box.servers[name].faults.write_latency_s = latency_s

        self.fleet.call(change)

    def _break_cluster(self, _: str) -> None:
        name = self.rng.choice(MEMBERS)
        if name not in self.away:
            self.away.add(name)
            self.fleet.wait(lambda box: box.servers[name].stop())

    def _kill(self, name: str) -> None:
        self.processes[name].kill()
        self.stopped.discard(name)

    def _wake(self, _: str = "") -> None:
        for name in sorted(self.stopped):
            os.kill(self.processes[name].pid, signal.SIGCONT)
        self.stopped.clear()

    def _start(self, _: str = "") -> None:
        for process in self.processes.values():
            if not process.is_running:
                process.start()

    def _by_hand(self, _: str) -> None:
        """A person deletes or spoils what stands beside the Leases, or one of them."""
        leases = [f"fleet-{NAME}", *(f"shard.{shard}.{NAME}" for shard in "abc")]
        maps = [f"{name}-{kind}" for name in leases for kind in ("account", "handover")]
        is_spoiled = self.rng.random() < 0.6
        if self.rng.random() < 0.4:
            body = {"spec": self.rng.choice(NONSENSE)} if is_spoiled else None
            self._ask("/apis/coordination.k8s.io/v1", "leases", self.rng.choice(leases), body)
        else:
            key = self.rng.choice(("account", "state", "placements", "term", "revision"))
            self._ask(
                "/api/v1", "configmaps", self.rng.choice(maps), {"data": {key: "nonsense"}} if is_spoiled else None
            )

    def _ask(self, root: str, plural: str, name: str, body: Any) -> None:
        path = f"{root}/namespaces/{SYSTEM}/{plural}/{name}"
        self.story.append(f"   {path} {body}")
        request = Request(
            method="PATCH" if body else "DELETE", path=path, query={}, body=body, user_agent="kubectl/v1",
            content_type="application/merge-patch+json", accept="application/json",
        )  # fmt: skip
        self.fleet.call(lambda box: box["hub"].request(request))

    def _heal(self) -> None:
        self.story.append(f"{time.monotonic():.2f} all is well")
        self._heal_ways()
        self._wake()
        self._start()

    # The end

    def _foreign(self, *, make: bool = False) -> dict[str, str]:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign", "namespace": "default"}}
        request = Request(
            method="POST", path="/api/v1/namespaces/default/configmaps", query={}, body=body, user_agent="kubectl/v1",
            content_type="application/json", accept="application/json",
        )  # fmt: skip

        def versions(box: FleetInABox) -> dict[str, str]:
            for name in CLUSTERS if make else ():
                box[name].request(request)
            found = {name: box[name].state.get("ConfigMap", "default", "foreign") for name in CLUSTERS}
            return {
                name: str((each or {"metadata": {}})["metadata"].get("resourceVersion")) for name, each in found.items()
            }

        return self.fleet.call(versions)

    def _wrong(self) -> list[str]:
        def differences(box: FleetInABox) -> list[str]:
            found = []
            for cluster in MEMBERS:
                for name, is_there in self.names.items():
                    live = box[cluster].state.get("ConfigMap", "demo", name)
                    value = live["data"]["value"] if live is not None else None
                    if value != (str(self.value) if is_there else None):
                        found.append(f"{cluster} {name} is {value}")
            webs = [box[cluster].state.get("Deployment", "demo", "web") for cluster in MEMBERS]
            there = [each for each in webs if each is not None]
            if sum(each["spec"]["replicas"] for each in there) != 6:
                found.append(f"web has {[each['spec']['replicas'] for each in there]} replicas")
            images = {each["spec"]["template"]["spec"]["containers"][0]["image"] for each in there}
            if images != {f"nginx:{self.image}"}:
                found.append(f"web is {images}, not {self.image}")
            movers = [cluster for cluster in MEMBERS if box[cluster].state.get("Deployment", "demo", "mover")]
            if movers != [self.mover]:
                found.append(f"mover is in {movers}, not {self.mover}")
            for name in self.jobs:
                where = [cluster for cluster in MEMBERS if box[cluster].state.get("Job", "demo", name)]
                if len(where) != 1:
                    found.append(f"{name} is in {where}")
            return found

        return self.fleet.call(differences)

    def _rest(self, when: str) -> None:
        deadline = time.monotonic() + REST_S
        while wrong := self._wrong():
            assert time.monotonic() < deadline, self._told(f"{when}: {wrong}")
            time.sleep(0.3)

    def _is_quiet(self) -> None:
        deadline = time.monotonic() + REST_S
        while True:
            before = self.referee.writes
            time.sleep(QUIET_S)
            if self.referee.writes == before:
                break
            assert time.monotonic() < deadline, self._told("writes go on for ever")
        assert not self._wrong(), self._told("it did not stay")

    def _told(self, what: str) -> str:
        ends = [f"--- {name}: {each.text()[-1500:]}" for name, each in self.processes.items()]
        shards = f"shards {self.shards} {self.of} value {self.value}"
        return "\n".join([what, shards, *self.story[-40:], *ends])
