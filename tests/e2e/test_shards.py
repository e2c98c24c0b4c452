"""A leader and processes that each apply to a shard: who writes where, what changes hands. Source: ADR 22.

The judge sees every write to a cluster in the moment in which it is made, with the shard that its mark names then.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.journal.journal import Journal
from reconciler.errors import JournalError
from reconciler.sim import BackgroundFleet, ClusterSpec, FleetInABox, background_fleet
from reconciler.sim.state.store import Event
from tests.e2e.daemon_process import CLUSTER, FLEET, Daemon, GitRepository
from tests.fakes.documents import config_map, divided, policy, web
from tests.real_clusters import wait_until

MEMBERS = ("m1", "m2", "m3")
CLUSTERS = (*MEMBERS, "hub")
NAME = "sharded"
LABEL = "fleet.reconciler/shard"
DURATION = "10s"
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "migrate", "namespace": "demo"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "migrate:1"}]}}},
}
pytestmark = pytest.mark.timeout(300)


class Scene:
    """The store, the leader, and an applier for each shard. The Leases are in the cluster `hub`."""

    def __init__(self, folder: Path, fleet: BackgroundFleet) -> None:
        self.fleet = fleet
        self.folder = folder
        self.store = GitRepository(folder / "store", NAME, CLUSTERS)
        self.shard({"m1": "a", "m2": "b", "m3": "b", "hub": "a"})
        self.leader = self.process("leader")
        self.a = self.process("a", "--role", "applier", "--shard", "a")
        self.b = self.process("b", "--role", "applier", "--shard", "b")

    def process(self, name: str, *words: str) -> Daemon:
        return Daemon(self.store.folder, self.fleet.kubeconfig, self.folder / name / "journal.db", *words)

    def ha(self, *shards: str, **spec: Any) -> None:
        """What the Fleet document says of processes."""
        ha = {"cluster": "hub", "leaseDuration": DURATION, **({"shards": list(shards)} if shards else {})}
        made = {"apiVersion": FLEET, "kind": "Fleet", "metadata": {"name": NAME}, "spec": {"ha": ha, **spec}}
        self.store.write("fleet.yaml", made)

    def shard(self, of: Mapping[str, str]) -> None:
        """Which shard each cluster is of; the shards are `a` and `b`."""
        self.ha("a", "b")
        for cluster, shard in of.items():
            metadata = {"name": cluster, "labels": {LABEL: shard}}
            self.store.write(
                f"clusters/{cluster}.yaml", {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": metadata}
            )

    def put(self, value: str) -> None:
        """A ConfigMap for every member."""
        everywhere = policy("settings", "ConfigMap", *MEMBERS)
        self.store.write("settings.yaml", config_map("settings", value=value), everywhere)

    def get(self, cluster: str, kind: str, name: str, namespace: str = "demo") -> dict[str, Any] | None:
        found = self.fleet.call(lambda box: box[cluster].state.get(kind, namespace, name))
        return dict(found) if found is not None else None

    def where(self, kind: str, name: str) -> set[str]:
        return {cluster for cluster in MEMBERS if self.get(cluster, kind, name) is not None}

    def values(self, name: str = "settings") -> dict[str, str]:
        found = {cluster: self.get(cluster, "ConfigMap", name) for cluster in MEMBERS}
        return {cluster: each["data"]["value"] for cluster, each in found.items() if each is not None}

    def replicas(self) -> dict[str, int]:
        found = {cluster: self.get(cluster, "Deployment", "web") for cluster in MEMBERS}
        return {cluster: each["spec"]["replicas"] for cluster, each in found.items() if each is not None}

    def mark(self, cluster: str) -> dict[str, str]:
        found = self.get(cluster, "ConfigMap", f"fleet-{NAME}", "fleet-system")
        return dict(found["data"]) if found is not None else {}

    def everywhere(self, value: str) -> bool:
        return self.values() == dict.fromkeys(MEMBERS, value)

    def status(self, process: Daemon) -> dict[str, Any]:
        words = [sys.executable, "-m", "reconciler", "status", "--journal", str(process.journal), "-o", "json"]
        found = subprocess.run(words, check=False, capture_output=True, text=True)
        return dict(json.loads(found.stdout)) if found.stdout else {}

    def until(self, predicate: Callable[[], Any], what: str, timeout_s: float = 60) -> None:
        try:
            wait_until(predicate, what, timeout_s)
        except TimeoutError as error:
            logs = {each.journal.parent.name: each.text()[-3000:] for each in (self.leader, self.a, self.b)}
            raise AssertionError(f"{what}: {self.values()} {self.replicas()} {logs}") from error

    def judge(self) -> list[tuple[str, str]]:
        """From now on, each write to an object of the fleet: the cluster, and the shard that held it in that moment."""
        seen: list[tuple[str, str]] = []

        def listen(box: FleetInABox) -> None:
            for name in MEMBERS:

                def note(event: Event, name: str = name) -> None:
                    if event.body["metadata"].get("namespace") == "demo" and event.body["kind"] != "Pod":
                        mark = box[name].state.get("ConfigMap", "fleet-system", f"fleet-{NAME}")
                        data = mark["data"] if mark is not None else {}
                        held = "" if data.get("released") else data.get("shard", "none")
                        seen.append((name, held))

                box[name].state.store.listeners.append(note)

        self.fleet.call(listen)
        return seen


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], folder) as fleet:
        found = Scene(folder, fleet)
        with found.leader, found.a, found.b:
            yield found


def start(found: Scene) -> None:
    for each in (found.leader, found.a, found.b):
        each.start()


def test_each_shard_has_a_process_that_writes_to_its_clusters_alone(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        seen = found.judge()
        found.put("1")
        everywhere = policy("web", "Deployment", *MEMBERS, placement=divided(*MEMBERS))
        found.store.write("web.yaml", web("nginx:1", 6), everywhere)
        found.store.write("job.yaml", JOB, _for_job("m3"))
        revision = found.store.commit()
        start(found)
        found.until(lambda: found.everywhere("1"), "all shards to apply what goes everywhere")
        found.until(lambda: found.replicas() == dict.fromkeys(MEMBERS, 2), "what is divided to be divided once")
        found.until(lambda: found.where("Job", "migrate") == {"m3"}, "the run to begin where it belongs")
        assert set(seen) == {("m1", "a"), ("m2", "b"), ("m3", "b")}
        found.until(lambda: found.status(found.a).get("revision") == revision, "the shard to tell of it")
        found.until(lambda: found.status(found.leader).get("revision") == revision, "the leader to tell of it")
        for process in (found.leader, found.a, found.b):
            found.until(partial(_are_all_synced, found, process), "each process to tell of all clusters")
        # A commit goes to all of them; what leaves the store leaves everywhere.
        found.put("2")
        found.store.commit()
        found.until(lambda: found.everywhere("2"), "the next commit to be everywhere")
        found.store.write("settings.yaml")
        found.store.commit()
        found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone")
        assert set(seen) == {("m1", "a"), ("m2", "b"), ("m3", "b")}


def test_a_workload_moves_between_shards_without_a_gap(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.put("1")
        found.store.write("web.yaml", web("nginx:1", 2), policy("web", "Deployment", "m1"))
        found.store.commit()
        start(found)
        found.until(lambda: _serves(found, "m1"), "the Deployment to serve in m1")
        least: list[int] = []

        def listen(box: FleetInABox) -> None:
            def note(_event: Event) -> None:
                bodies = [box[name].state.get("Deployment", "demo", "web") for name in MEMBERS]
                least.append(sum((each or {}).get("status", {}).get("availableReplicas", 0) for each in bodies))

            for name in MEMBERS:
                box[name].state.store.listeners.append(note)

        found.fleet.call(listen)
        found.store.write("web.yaml", web("nginx:1", 2), policy("web", "Deployment", "m3"))
        found.store.commit()
        found.until(lambda: found.replicas() == {"m3": 2}, "it to have moved to m3")
        assert min(least) >= 2, "as many replicas serve all the time"


def test_a_cluster_goes_to_another_shard_by_its_mark(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.put("1")
        found.store.commit()
        start(found)
        found.until(lambda: found.everywhere("1"), "all to be there")
        seen = found.judge()
        found.shard({"m2": "a"})
        found.put("2")
        found.store.commit()
        found.until(lambda: found.everywhere("2"), "the new commit to be everywhere")
        assert found.mark("m2")["shard"] == "a"
        assert set(seen) <= {("m1", "a"), ("m2", "a"), ("m3", "b")}, "nobody writes while nobody holds it"
        # What was there before is known to who has it now: it goes with the store.
        found.store.write("settings.yaml")
        found.store.commit()
        found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone")
        # And back, which the journal that had it before must not mistake for what it knew.
        found.put("3")
        found.store.commit()
        found.until(lambda: found.everywhere("3"), "the next to be everywhere")
        found.shard({"m2": "b"})
        found.store.write("settings.yaml")
        found.store.commit()
        found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone")
        found.until(lambda: found.mark("m2")["shard"] == "b", "the other shard to hold it again")


def test_the_clusters_of_a_shard_that_nobody_leads_go_to_another_by_a_commit(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.put("1")
        found.store.commit()
        start(found)
        found.until(lambda: found.everywhere("1"), "all to be there")
        found.b.kill()
        found.shard({"m2": "a", "m3": "a"})
        found.put("2")
        found.store.commit()
        found.until(lambda: found.everywhere("2"), "the other shard to have taken them over")
        seen = found.judge()
        found.b.start()
        found.put("3")
        found.store.commit()
        found.until(lambda: found.everywhere("3"), "the one that has them to go on")
        assert {shard for _, shard in seen} == {"a"}


def test_any_applier_takes_a_shard_that_has_none(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        processes = [found.process(f"any{number}", "--role", "applier") for number in range(3)]
        with processes[0], processes[1], processes[2]:
            found.put("1")
            found.store.commit()
            found.leader.start()
            for each in processes:
                each.start()
            found.until(lambda: found.everywhere("1"), "two of three to apply")
            holders = {shard: _holder(found, shard) for shard in ("a", "b")}
            assert holders["a"] != holders["b"]
            assert all(holders.values())
            # One of them is killed while a commit is half way; the spare one goes on with its shard.
            found.put("2")
            found.store.commit()
            of_a = found.mark("m1")["journal"]
            killed = next(each for each in processes if journal_of(each) == of_a)
            killed.kill()
            found.until(lambda: found.everywhere("2"), "the spare process to apply")
            assert found.mark("m1")["journal"] != of_a


def test_guards_count_over_all_shards(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.ha("a", "b", guards={"maxDeletes": 4, "maxDeletePercent": 100})
        for number in range(3):
            found.store.write(
                f"c{number}.yaml",
                config_map(f"c{number}", value="1"),
                policy(f"c{number}", "ConfigMap", "m1", "m3"),
            )
        found.store.commit()
        start(found)
        found.until(lambda: found.values("c2").keys() == {"m1", "m3"}, "all to be there")
        found.until(lambda: found.values("c0").keys() == {"m1", "m3"}, "all to be there")
        for number in range(3):
            found.store.write(f"c{number}.yaml")
        revision = found.store.commit()
        # Three in each shard: no shard has too many by itself, and both together have.
        for process in (found.leader, found.a, found.b):
            found.until(partial(_are_guarded, found, process, 6), "the guard to hold them, and all to tell of it")
            assert "6 deletions and releases over the fleet" in _guarded(found, process)[0]["why"]
        assert found.status(found.a)["revision"] == revision
        assert found.where("ConfigMap", "c1") == {"m1", "m3"}
        digests = {found.status(process)["heldDigest"] for process in (found.leader, found.a, found.b)}
        assert len(digests) == 1, "one confirmation lets all of it pass"
        guards = {"maxDeletes": 4, "maxDeletePercent": 100, "confirm": digests.pop()}
        found.ha("a", "b", guards=guards)
        found.store.commit()
        found.until(lambda: not found.where("ConfigMap", "c1"), "what was confirmed to be deleted everywhere")


def test_orders_to_the_leader_hold_in_all_shards(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.put("1")
        found.store.commit()
        start(found)
        found.until(lambda: found.everywhere("1"), "all to be there")
        found.leader.says('"event": "Leads"')
        refused = order(found.a, "suspend", "fleet", "--reason", "an audit")
        assert refused.returncode != 0
        assert "applies to shard a: give the order where the leader of the fleet runs" in refused.stderr
        assert order(found.leader, "suspend", "fleet", "--reason", "an audit").returncode == 0
        for process in (found.a, found.b):
            found.until(partial(_is_suspended, found, process), "the shard to know of it")
        found.put("2")
        revision = found.store.commit()
        for process in (found.a, found.b):
            found.until(partial(_has_read, found, process, revision), "the shard to read it")
        assert found.everywhere("1"), "nothing is written while the leader says so"
        assert order(found.leader, "resume", "--all").returncode == 0
        found.until(lambda: found.everywhere("2"), "writing to go on")


def test_one_process_gives_way_to_shards_and_takes_over_again(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.ha()
        found.put("1")
        found.store.commit()
        found.leader.start()
        found.until(lambda: found.everywhere("1"), "the one process to apply to all")
        found.a.start()
        found.b.start()
        seen = found.judge()
        found.ha("a", "b")
        found.put("2")
        found.store.commit()
        found.until(lambda: found.everywhere("2"), "the shards to have taken over")
        assert set(seen) == {("m1", "a"), ("m2", "b"), ("m3", "b")}
        found.ha()
        found.put("3")
        found.store.commit()
        found.until(lambda: found.everywhere("3"), "the one process to have all of them again")
        found.store.write("settings.yaml")
        found.store.commit()
        found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone")


def order(process: Daemon, *words: str) -> subprocess.CompletedProcess[str]:
    """What a person asks of a process."""
    command = [sys.executable, "-m", "reconciler", *words, "--journal", str(process.journal)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def _for_job(cluster: str) -> dict[str, Any]:
    made = policy("migrate", "Job", cluster)
    made["spec"]["resourceSelectors"][0]["apiVersion"] = "batch/v1"
    return made


def _are_guarded(found: Scene, process: Daemon, count: int) -> bool:
    return len(_guarded(found, process)) == count


def _is_suspended(found: Scene, process: Daemon) -> bool:
    return bool(found.status(process)["suspensions"])


def _has_read(found: Scene, process: Daemon, revision: str) -> bool:
    return bool(found.status(process)["revision"] == revision)


def _are_all_synced(found: Scene, process: Daemon) -> bool:
    """Whether a process tells of every cluster that all of it is in step, and of which shard it is."""
    told = {each["name"]: each for each in found.status(process).get("clusters", [])}
    shards = {name: each.get("shard") for name, each in told.items()}
    counts = [{state for state, count in each["objects"].items() if count} for each in told.values()]
    return shards == {"m1": "a", "m2": "b", "m3": "b", "hub": "a"} and all(each <= {"synced"} for each in counts)


def _serves(found: Scene, cluster: str) -> bool:
    live = found.get(cluster, "Deployment", "web") or {}
    return bool(live.get("status", {}).get("availableReplicas"))


def _holder(found: Scene, shard: str) -> str:
    lease = found.get("hub", "Lease", f"shard.{shard}.{NAME}", "fleet-system") or {}
    return str(lease.get("spec", {}).get("holderIdentity", ""))


def journal_of(process: Daemon) -> str:
    """The journal of a process; empty: it has only begun to write one."""
    try:
        with Journal.open(process.journal, read_only=True) as journal:
            return journal.uuid
    except JournalError:
        return ""


def _guarded(found: Scene, process: Daemon) -> list[dict[str, Any]]:
    held = found.status(process).get("held", [])
    return [each for each in held if each["why"].startswith("guard: ")]
