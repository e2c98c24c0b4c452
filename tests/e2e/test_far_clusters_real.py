"""A hub and the process of a far cluster on three real clusters, judged by who wrote what in their audit logs.

Each process is somebody else to the API servers, and reaches its own clusters alone. Source: ADR 24.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import CLUSTER, Daemon, GitRepository
from tests.e2e.test_far_clusters import access_to
from tests.e2e.test_leadership_real import as_somebody
from tests.fakes.documents import config_map, divided, policy, web
from tests.program import run_text
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

FLEET = f"apart-{uuid.uuid4().hex[:6]}"
CLUSTERS = ("m1", "m2", "m3")
OWN = {"hub": ("m1", "m2"), "far": ("m3",)}


class Scene:
    """Two processes and the store."""

    def __init__(self, clusters: ThreeClusters, folder: Path) -> None:
        self.clusters: dict[str, RealCluster] = dict(zip(CLUSTERS, clusters[:3], strict=True))
        self.namespace = clusters[0].new_namespace("apart")
        self.store = GitRepository(folder / "store", FLEET, CLUSTERS)
        pulls = {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": "m3"}, "spec": {"syncMode": "Pull"}}
        self.store.write("clusters/m3.yaml", pulls)
        more = {"hub": (), "far": ("--cluster", "m3")}
        self.processes = {
            who: Daemon(
                self.store.folder,
                access_to(as_somebody(clusters[3], who, folder), own, folder / f"{who}.own.kubeconfig"),
                folder / who / "journal.db",
                *more[who],
            )
            for who, own in OWN.items()
        }
        self._since = {name: cluster.mark() for name, cluster in self.clusters.items()}

    def put(self, name: str, *documents: dict[str, Any]) -> None:
        for document in documents:
            document["metadata"]["namespace"] = self.namespace
        self.store.write(name, *documents)

    def status(self, who: str) -> dict[str, Any]:
        """Return what a process tells of itself."""
        return dict(json.loads(run_text("status", "--journal", self.processes[who].journal, "-o", "json").stdout))

    def found(self, kind: str, name: str, part: str, key: str) -> dict[str, Any]:
        """By cluster what stands in an object; where there is none, nothing."""
        words = ("get", kind, name, "-n", self.namespace, "--ignore-not-found", "-o", "json")
        found = {cluster: each.kubectl(*words) for cluster, each in self.clusters.items()}
        return {cluster: json.loads(text)[part][key] for cluster, text in found.items() if text}

    def until(self, kind: str, name: str, part: str, key: str, wanted: dict[str, Any]) -> None:
        def said() -> str:
            logs = {who: process.text()[-1500:] for who, process in self.processes.items()}
            return f"{self.found(kind, name, part, key)}; {logs}"

        wait_until(lambda: self.found(kind, name, part, key) == wanted, f"{name} to be {wanted}", seen=said)

    def writers(self) -> dict[str, set[str]]:
        """By cluster who wrote there."""
        found: dict[str, set[str]] = {name: set() for name in CLUSTERS}
        for name, cluster in self.clusters.items():
            for event in cluster.writes(self._since[name], "fleet-reconciler"):
                who = event.get("impersonatedUser", {}).get("username", "")
                if who in OWN:
                    found[name].add(who)
        return found


def test_each_writes_to_its_own_clusters_and_takes_nothing_away_unseen(
    three_clusters: ThreeClusters, tmp_path: Path
) -> None:
    scene = Scene(three_clusters, tmp_path)
    with scene.processes["hub"], scene.processes["far"]:
        scene.put("settings.yaml", config_map("settings", value="1"), policy("settings", "ConfigMap", *CLUSTERS))
        scene.put("web.yaml", web("nginx:1", 6), policy("web", "Deployment", *CLUSTERS, placement=divided(*CLUSTERS)))
        scene.put("moving.yaml", config_map("moving", value="1"), policy("moving", "ConfigMap", "m3"))
        scene.store.commit()
        for process in scene.processes.values():
            process.start()
        scene.until("configmap", "settings", "data", "value", dict.fromkeys(CLUSTERS, "1"))
        scene.until("configmap", "moving", "data", "value", {"m3": "1"})
        # What is divided over all clusters is for the hub, and is left as it is in the far cluster.
        scene.until("deployment", "web", "spec", "replicas", {"m1": 2, "m2": 2})
        scene.put("moving.yaml", config_map("moving", value="2"), policy("moving", "ConfigMap", "m1"))
        scene.put("settings.yaml", config_map("settings", value="2"), policy("settings", "ConfigMap", *CLUSTERS))
        scene.store.commit()
        scene.until("configmap", "settings", "data", "value", dict.fromkeys(CLUSTERS, "2"))
        scene.until("configmap", "moving", "data", "value", {"m1": "2", "m3": "1"})
        wait_until(lambda: bool(scene.status("far")["held"]), "the far process to say what it keeps")
        told = scene.status("far")
        assert [each["why"] for each in told["held"]] == [
            "waits for m1 healthy; it is unknown what m1 serves: another process applies there"
        ]
        assert {each["code"] for each in told["problems"]} == {"undecided"}
        assert scene.writers() == {"m1": {"hub"}, "m2": {"hub"}, "m3": {"far"}}
