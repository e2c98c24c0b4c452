"""A leader and three appliers for two shards on three real clusters, judged by who wrote what in their audit logs.

Each process is somebody else to the API servers. One applier is stopped in the middle of a commit, sleeps past its
Lease, and wakes; the spare one has taken its shard by then. Source: ADR 22.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import CLUSTER, Daemon, GitRepository
from tests.e2e.test_leadership_real import as_somebody
from tests.fakes.documents import config_map, divided, policy, web
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

FLEET = f"sharded-{uuid.uuid4().hex[:6]}"
CLUSTERS = ("m1", "m2", "m3")
SHARDS = {"m1": "a", "m2": "b", "m3": "b"}
PROCESSES = ("leader", "one", "two", "three")


class Scene:
    """The processes, their store, and what they wrote."""

    def __init__(self, clusters: ThreeClusters, folder: Path) -> None:
        self.clusters: dict[str, RealCluster] = dict(zip(CLUSTERS, clusters[:3], strict=True))
        self.namespace = clusters[0].new_namespace("shards")
        ha = {"cluster": "m1", "leaseDuration": "10s", "shards": ["a", "b"]}
        self.store = GitRepository(folder / "store", FLEET, CLUSTERS, ha=ha)
        for name, shard in SHARDS.items():
            metadata = {"name": name, "labels": {"fleet.reconciler/shard": shard}}
            self.store.write(f"clusters/{name}.yaml", {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": metadata})
        self.processes = {
            who: Daemon(
                self.store.folder,
                as_somebody(clusters[3], who, folder),
                folder / who / "journal.db",
                *(() if who == "leader" else ("--role", "applier")),
            )
            for who in PROCESSES
        }
        self._since = {name: cluster.mark() for name, cluster in self.clusters.items()}

    def put(self, name: str, *documents: dict[str, Any]) -> None:
        for document in documents:
            document["metadata"]["namespace"] = self.namespace
        self.store.write(name, *documents)

    def found(self, kind: str, name: str, path: str) -> dict[str, str]:
        """By cluster what stands in an object; where there is none, nothing."""
        words = ("get", kind, name, "-n", self.namespace, "--ignore-not-found", "-o", f"jsonpath={{{path}}}")
        found = {cluster: each.kubectl(*words) for cluster, each in self.clusters.items()}
        return {cluster: text for cluster, text in found.items() if text}

    def until(self, kind: str, name: str, path: str, wanted: dict[str, str]) -> None:
        def said() -> str:
            logs = {who: process.text()[-1500:] for who, process in self.processes.items()}
            return f"{self.found(kind, name, path)}; {logs}"

        wait_until(lambda: self.found(kind, name, path) == wanted, f"{name} to be {wanted}", seen=said)

    def writes(self) -> list[tuple[str, str, str]]:
        """Writes to objects of the namespace in the order of each cluster: the cluster, who, and when."""
        found = []
        for name, cluster in self.clusters.items():
            for event in cluster.writes(self._since[name], "fleet-reconciler"):
                who = event.get("impersonatedUser", {}).get("username", "")
                if who in PROCESSES and event["objectRef"].get("namespace") == self.namespace:
                    found.append((name, who, event["requestReceivedTimestamp"]))
        return found

    def holder(self, shard: str) -> str:
        """Who applies to a shard, by the process whose journal stands in the marks of its clusters."""
        cluster = next(name for name, found in SHARDS.items() if found == shard)
        writers = [who for name, who, _ in self.writes() if name == cluster]
        return writers[-1]


@contextmanager
def sharded(clusters: ThreeClusters, folder: Path) -> Iterator[Scene]:
    scene = Scene(clusters, folder)
    node = f"node-{FLEET}"
    for cluster in scene.clusters.values():
        cluster.add_node(node, cpu="4", memory="4Gi")
    one, two, three, four = scene.processes.values()
    try:
        with one, two, three, four:
            yield scene
    finally:
        for cluster in scene.clusters.values():
            cluster.remove_node(node)


def test_a_shard_has_one_writer_at_a_time_also_when_its_process_sleeps_past_the_lease(
    three_clusters: ThreeClusters, tmp_path: Path
) -> None:
    with sharded(three_clusters, tmp_path) as scene:
        scene.put("settings.yaml", config_map("settings", value="1"), policy("settings", "ConfigMap", *CLUSTERS))
        everywhere = policy("web", "Deployment", *CLUSTERS, placement=divided(*CLUSTERS))
        scene.put("web.yaml", web("nginx:1", 6), everywhere)
        scene.store.commit()
        for process in scene.processes.values():
            process.start()
        scene.until("configmap", "settings", ".data.value", dict.fromkeys(CLUSTERS, "1"))
        scene.until("deployment", "web", ".status.availableReplicas", dict.fromkeys(CLUSTERS, "2"))
        first, of_a = scene.holder("b"), scene.holder("a")
        assert len({first, of_a, "leader"}) == 3, "each shard has a process of its own, and the leader writes nothing"
        os.kill(scene.processes[first].pid, signal.SIGSTOP)
        scene.put("settings.yaml", config_map("settings", value="2"), policy("settings", "ConfigMap", *CLUSTERS))
        scene.store.commit()
        scene.until("configmap", "settings", ".data.value", dict.fromkeys(CLUSTERS, "2"))
        second = scene.holder("b")
        assert second not in (first, of_a, "leader")
        os.kill(scene.processes[first].pid, signal.SIGCONT)
        # All of it moves from shard a to shard b, whose process has changed.
        scene.put("web.yaml", web("nginx:1", 6), policy("web", "Deployment", "m3"))
        scene.store.commit()
        scene.until("deployment", "web", ".status.availableReplicas", {"m3": "6"})
        scene.put("settings.yaml", config_map("settings", value="3"), policy("settings", "ConfigMap", *CLUSTERS))
        scene.store.commit()
        scene.until("configmap", "settings", ".data.value", dict.fromkeys(CLUSTERS, "3"))
        for name in ("m2", "m3"):
            order = [who for cluster, who, _ in scene.writes() if cluster == name]
            assert set(order) == {first, second}
            assert order == sorted(order, key=lambda who: who == second), "who lost the shard writes nothing after"
        assert {who for cluster, who, _ in scene.writes() if cluster == "m1"} == {of_a}


def test_a_change_goes_in_stages_over_two_shards_and_past_the_death_of_the_leader(
    three_clusters: ThreeClusters, tmp_path: Path
) -> None:
    with sharded(three_clusters, tmp_path) as scene:
        scene.store.write("rollout.yaml", STAGES)
        scene.put("web.yaml", web("nginx:1", 2), policy("web", "Deployment", *CLUSTERS))
        scene.store.commit()
        for who in ("leader", "one", "two"):
            scene.processes[who].start()
        scene.until("deployment", "web", ".status.availableReplicas", dict.fromkeys(CLUSTERS, "2"))
        # It asks for more than a node has, so that it never serves.
        scene.put("web.yaml", asking("nginx:2", cpu="64"), policy("web", "Deployment", *CLUSTERS))
        scene.store.commit()
        leader = scene.processes["leader"]
        wait_until(lambda: "paused" in states(leader), "the first stage to be paused", seen=lambda: states(leader))
        assert scene.found("deployment", "web", IMAGE) == {"m1": "nginx:2", "m2": "nginx:1", "m3": "nginx:1"}
        leader.kill()
        scene.put("web.yaml", asking("nginx:3", cpu="100m"), policy("web", "Deployment", *CLUSTERS))
        scene.store.commit()
        leader.start()
        scene.until("deployment", "web", IMAGE, dict.fromkeys(CLUSTERS, "nginx:3"))
        scene.until("deployment", "web", ".status.availableReplicas", dict.fromkeys(CLUSTERS, "2"))
        served = scene.found("deployment", "web", '.status.conditions[?(@.type=="Progressing")].lastUpdateTime')
        written = {name: max(at for cluster, _, at in scene.writes() if cluster == name) for name in CLUSTERS}
        for before, after in (("m1", "m2"), ("m2", "m3")):
            assert served[before].removesuffix("Z") <= written[after], f"{after} was written before {before} served it"


IMAGE = ".spec.template.spec.containers[0].image"
STAGES = {
    "apiVersion": "fleet.reconciler/v1alpha1",
    "kind": "Rollout",
    "metadata": {"name": "default"},
    "spec": {
        "stages": [
            {"name": "first", "clusters": {"clusterNames": ["m1"]}, "gate": {"timeout": "10s"}},
            {"name": "second", "clusters": {"clusterNames": ["m2"]}},
            {"name": "rest", "clusters": {}},
        ]
    },
}


def asking(image: str, cpu: str) -> dict[str, Any]:
    """Two pods that each ask for so much."""
    made = web(image, 2)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


def states(process: Daemon) -> str:
    """What `status` of a process says of the stages."""
    words = [sys.executable, "-m", "reconciler", "status", "--journal", str(process.journal), "-o", "json"]
    found = subprocess.run(words, check=False, capture_output=True, text=True)
    told = json.loads(found.stdout).get("rollouts", ()) if found.stdout else ()
    return ", ".join(str(stage["state"]) for rollout in told for stage in rollout["stages"])
