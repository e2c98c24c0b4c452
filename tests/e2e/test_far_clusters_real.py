"""A hub and the process of a far cluster on three real clusters, judged by who wrote what in their audit logs.

Each process is somebody else to the API servers, and reaches its own clusters alone. Source: ADR 21.
"""

from __future__ import annotations

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
from tests.e2e.test_far_clusters import access_to
from tests.e2e.test_leadership_real import as_somebody
from tests.fakes.documents import config_map, divided, policy, web
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

FLEET = f"apart-{uuid.uuid4().hex[:6]}"
CLUSTERS = ("m1", "m2", "m3")
OWN = {"hub": ("m1", "m2"), "far": ("m3",)}


class Scene:
    """Two processes, the store, and the files that they tell each other by."""

    def __init__(self, clusters: ThreeClusters, folder: Path) -> None:
        self.clusters: dict[str, RealCluster] = dict(zip(CLUSTERS, clusters[:3], strict=True))
        self.namespace = clusters[0].new_namespace("apart")
        self.store = GitRepository(folder / "store", FLEET, CLUSTERS)
        pulls = {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": "m3"}, "spec": {"syncMode": "Pull"}}
        self.store.write("clusters/m3.yaml", pulls)
        self.access = {
            who: access_to(as_somebody(clusters[3], who, folder), own, folder / f"{who}.own.kubeconfig")
            for who, own in OWN.items()
        }
        self.told = {who: folder / f"{who}.yaml" for who in OWN}
        given = [word for path in self.told.values() for word in ("--observations", str(path))]
        more = {"hub": (), "far": ("--cluster", "m3")}
        self.processes = {
            who: Daemon(self.store.folder, self.access[who], folder / who / "journal.db", *given, *words)
            for who, words in more.items()
        }
        self._since = {name: cluster.mark() for name, cluster in self.clusters.items()}

    def put(self, name: str, *documents: dict[str, Any]) -> None:
        for document in documents:
            document["metadata"]["namespace"] = self.namespace
        self.store.write(name, *documents)

    def publish(self) -> None:
        for who, path in self.told.items():
            words = ["observe", str(self.store.folder), "--kubeconfig", str(self.access[who]), "-o", str(path)]
            journal = str(self.processes[who].journal)
            command = [sys.executable, "-m", "reconciler", *words, "--journal", journal]
            subprocess.run(command, check=True, capture_output=True)

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

    def writers(self) -> dict[str, set[str]]:
        """By cluster who wrote there."""
        found: dict[str, set[str]] = {name: set() for name in CLUSTERS}
        for name, cluster in self.clusters.items():
            for event in cluster.writes(self._since[name], "fleet-reconciler"):
                who = event.get("impersonatedUser", {}).get("username", "")
                if who in OWN:
                    found[name].add(who)
        return found


@contextmanager
def apart(clusters: ThreeClusters, folder: Path) -> Iterator[Scene]:
    scene = Scene(clusters, folder)
    node = f"node-{FLEET}"
    for cluster in scene.clusters.values():
        cluster.add_node(node, cpu="4", memory="4Gi")
    try:
        with scene.processes["hub"], scene.processes["far"]:
            yield scene
    finally:
        for cluster in scene.clusters.values():
            cluster.remove_node(node)


def test_each_writes_to_its_own_clusters_and_together_they_make_one_fleet(
    three_clusters: ThreeClusters, tmp_path: Path
) -> None:
    with apart(three_clusters, tmp_path) as scene:
        everywhere = policy("web", "Deployment", *CLUSTERS, placement=divided(*CLUSTERS))
        scene.put("settings.yaml", config_map("settings", value="1"), policy("settings", "ConfigMap", *CLUSTERS))
        scene.put("web.yaml", web("nginx:1", 6), everywhere)
        scene.store.commit()
        for process in scene.processes.values():
            process.start()
        scene.until("configmap", "settings", ".data.value", dict.fromkeys(CLUSTERS, "1"))
        scene.until("deployment", "web", ".status.availableReplicas", {"m1": "2", "m2": "2"})
        scene.publish()
        scene.until("deployment", "web", ".status.availableReplicas", dict.fromkeys(CLUSTERS, "2"))
        scene.publish()
        # All of it moves to the far cluster: it grows there, and only what is seen to serve lets the others go.
        scene.put("web.yaml", web("nginx:1", 6), policy("web", "Deployment", "m3"))
        scene.store.commit()
        scene.until("deployment", "web", ".status.availableReplicas", {"m1": "2", "m2": "2", "m3": "6"})
        scene.publish()
        scene.until("deployment", "web", ".status.availableReplicas", {"m3": "6"})
        assert scene.writers() == {"m1": {"hub"}, "m2": {"hub"}, "m3": {"far"}}
