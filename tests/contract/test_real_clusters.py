"""The clusters that other tests rely on do what those tests take for granted."""

from __future__ import annotations

import pytest

from tests.conftest import SHARED, ThreeClusters
from tests.real_clusters import RealCluster, RealClusters

pytestmark = pytest.mark.apiserver


def test_every_write_is_in_the_audit_log_once_writes_returns(real_cluster: RealCluster) -> None:
    mark = real_cluster.mark()
    namespace = real_cluster.new_namespace()
    events = real_cluster.writes(since=mark, user_agent="kubectl")
    assert [(event["verb"], event["objectRef"]["name"]) for event in events] == [("create", namespace)]


def test_a_node_that_is_added_is_ready_and_runs_pods(real_cluster: RealCluster) -> None:
    real_cluster.add_node("n-ready", cpu="4", labels={"zone": "a"})
    node = real_cluster.get("node", "n-ready")
    assert node["status"]["allocatable"]["cpu"] == "4"
    assert node["metadata"]["labels"]["zone"] == "a"
    namespace = real_cluster.new_namespace()
    real_cluster.kubectl("create", "deployment", "web", "--image=nginx", "-n", namespace)
    real_cluster.kubectl("rollout", "status", "deployment/web", "-n", namespace, "--timeout=90s")
    real_cluster.remove_node("n-ready")


def test_a_stopped_cluster_comes_back_with_its_data(three_clusters: ThreeClusters) -> None:
    namespace = three_clusters.m2.new_namespace()
    three_clusters.m2.stop()
    with pytest.raises(AssertionError, match="refused"):
        three_clusters.m2.kubectl("get", "namespace", namespace)
    three_clusters.m2.start()
    assert three_clusters.m2.get("namespace", namespace)["metadata"]["name"] == namespace


def test_a_cluster_that_is_needed_no_more_goes_alone(
    real_clusters: RealClusters, three_clusters: ThreeClusters
) -> None:
    extra = real_clusters.create("extra")
    assert extra.get("namespaces")["items"]
    real_clusters.delete_all_but(*SHARED)
    with pytest.raises(AssertionError, match="refused"):
        extra.kubectl("get", "namespaces")
    assert real_clusters.create("m1") is three_clusters.m1
    assert three_clusters.m1.get("namespaces")["items"]


def test_the_merged_kubeconfig_reaches_each_cluster_by_its_name(three_clusters: ThreeClusters) -> None:
    uids = {
        three_clusters.m1.kubectl(
            "--kubeconfig", str(three_clusters.kubeconfig), "--context", name,
            "get", "namespace", "kube-system", "-o", "jsonpath={.metadata.uid}",
        )
        for name in ("m1", "m2", "m3")
    }  # fmt: skip
    assert len(uids) == 3
