"""The walkthrough of the page "Dynamic distribution and descheduling", on real clusters with a real scheduler."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.adapters.journal import Journal
from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import ACK, Daemon, GitRepository
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

REPLICAS = 5


class Walkthrough:
    """web-demo on two clusters, divided by free room, with a daemon that looks every second."""

    def __init__(self, folder: Path, clusters: ThreeClusters) -> None:
        self.name = f"d{uuid.uuid4().hex[:8]}"
        self.clusters = {"m1": clusters.m1, "m2": clusters.m2}
        self.store = GitRepository(
            folder / "store", self.name, ("m1", "m2"),
            descheduling={"interval": "1s", "unschedulableThreshold": "1s"},
        )  # fmt: skip
        for cluster in self.clusters.values():
            self.add_node(cluster)
        self.store.write("app.yaml", self.web_demo(), self.policy())
        self.store.commit()
        self.daemon = Daemon(folder / "store", clusters.kubeconfig, folder / "journal.db")

    def add_node(self, cluster: RealCluster) -> None:
        """A node for pods of this test alone."""
        taint = {"key": "for", "value": self.name, "effect": "NoSchedule"}
        cluster.add_node(f"{self.name}-n", cpu="8", labels={"for": self.name}, taints=[taint])

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
                "replicas": REPLICAS, "selector": {"matchLabels": {"app": "web-demo"}},
                "template": {"metadata": {"labels": {"app": "web-demo"}}, "spec": pod},
            },
        }  # fmt: skip

    def policy(self) -> dict[str, Any]:
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
            },
        }  # fmt: skip

    def ready(self) -> dict[str, int]:
        """Ready replicas of each cluster that has the workload."""
        found = {}
        for name, cluster in self.clusters.items():
            listed = cluster.get("deployments", "-n", self.name)["items"]
            found |= {name: body["status"].get("readyReplicas", 0) for body in listed}
        return found

    def close(self) -> None:
        for cluster in self.clusters.values():
            cluster.remove_node(f"{self.name}-n")


@pytest.fixture
def walkthrough(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Walkthrough]:
    made = Walkthrough(tmp_path, three_clusters)
    yield made
    made.close()


def test_replicas_without_a_node_move_to_the_cluster_that_has_room(walkthrough: Walkthrough) -> None:
    m1 = walkthrough.clusters["m1"]
    with walkthrough.daemon.start() as daemon:
        wait_until(lambda: sum(walkthrough.ready().values()) == REPLICAS, "all replicas to be ready")
        assert min(walkthrough.ready().values()) > 0, "both clusters have some"
        m1.kubectl("taint", "nodes", f"{walkthrough.name}-n", "foo=bar:NoSchedule")
        m1.kubectl("rollout", "restart", "deployment/web-demo", "-n", walkthrough.name)
        wait_until(lambda: walkthrough.ready() == {"m2": REPLICAS}, "all replicas to be in m2")
        with Journal.open(daemon.journal, read_only=True) as journal:
            (cap,) = journal.constraints()
        assert (cap.cluster, cap.replicas_max) == ("m1", 0)
        assert "found no node there since" in cap.reason
        # It was made before it was broken: at no time were there fewer replicas than asked for, save those waiting.
        m1.kubectl("taint", "nodes", f"{walkthrough.name}-n", "foo:NoSchedule-")
        assert daemon.stop() == 0
    with walkthrough.daemon.start():
        walkthrough.daemon.follows()
        assert walkthrough.ready() == {"m2": REPLICAS}, "the end of a cap moves nothing back"
