"""A workload on two real clusters with a real scheduler, and a daemon whose ticks come every second."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import ACK, Daemon, GitRepository
from tests.e2e.referee import Body, Referee, is_available
from tests.real_clusters import RealCluster

REPLICAS = 5


class MovingWorkload:
    """web-demo on two clusters, by default divided by free room. `spec`: more of its policy."""

    def __init__(self, folder: Path, clusters: ThreeClusters, replicas: int = REPLICAS, **spec: Any) -> None:
        self.replicas = replicas
        self.name = f"d{uuid.uuid4().hex[:8]}"
        self.clusters = {"m1": clusters.m1, "m2": clusters.m2}
        self.store = GitRepository(
            folder / "store", self.name, ("m1", "m2"),
            # A scheduler may refuse a pod at first, until it has seen the new node; that must not move anything yet.
            descheduling={"interval": "1s", "unschedulableThreshold": "5s"},
        )  # fmt: skip
        for cluster in self.clusters.values():
            self.add_node(cluster)
        self.store.write("app.yaml", self.web_demo(), self.policy(**spec))
        self.store.commit()
        self.referee = Referee(self.clusters.values())
        self.daemon = Daemon(folder / "store", clusters.kubeconfig, folder / "journal.db")

    def add_node(self, cluster: RealCluster) -> None:
        """A node for pods of this test alone, so large that pods of others that wait in the cluster leave room."""
        taint = {"key": "for", "value": self.name, "effect": "NoSchedule"}
        cluster.add_node(
            f"{self.name}-n", cpu="1000", memory="1Ti", pods="10000", labels={"for": self.name}, taints=[taint]
        )

    def web_demo(self) -> dict[str, Any]:
        container = {"name": "nginx", "image": "nginx:1", "resources": {"requests": {"cpu": "100m"}}}
        pod = {
            "containers": [container],
            "nodeSelector": {"for": self.name},
            "tolerations": [{"key": "for", "operator": "Exists"}],
        }
        return {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web-demo", "namespace": self.name},
            "spec": {
                "replicas": self.replicas, "selector": {"matchLabels": {"app": "web-demo"}},
                "template": {"metadata": {"labels": {"app": "web-demo"}}, "spec": pod},
            },
        }  # fmt: skip

    def policy(self, **spec: Any) -> dict[str, Any]:
        scheduling = {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            "weightPreference": {"dynamicWeight": "AvailableReplicas"},
        }
        return {
            "apiVersion": ACK, "kind": "PropagationPolicy",
            "metadata": {"name": "web-demo", "namespace": self.name},
            "spec": {
                "resourceSelectors": [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "web-demo"}],
                "placement": {"clusterAffinity": {"clusterNames": ["m1", "m2"]}, "replicaScheduling": scheduling},
                "preserveResourcesOnDeletion": False,
                **spec,
            },
        }  # fmt: skip

    def ready(self) -> dict[str, int]:
        """Ready replicas of each cluster that has the workload."""
        found: dict[str, int] = {}
        for name, cluster in self.clusters.items():
            for body in cluster.get("deployments", "-n", self.name)["items"]:
                found[name] = body["status"].get("readyReplicas", 0)
        return found

    def judge(self, is_over: Callable[[Body], bool] = is_available) -> int:
        """Return the number of takings, each of them right: see `Referee.judge`."""
        return self.referee.judge(("deployments", self.name, "web-demo"), is_over)

    def close(self) -> None:
        for cluster in self.clusters.values():
            cluster.remove_node(f"{self.name}-n")
