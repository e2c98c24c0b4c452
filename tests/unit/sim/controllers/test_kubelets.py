from __future__ import annotations

from reconciler.sim import NodeSpec, Settings
from tests.unit.sim.worlds import a_cluster, apply, condition, get, placed, pod_template, pods, run, send, workload

TWO = (NodeSpec(name="n1"), NodeSpec(name="n2"))


def test_pods_of_a_lost_node_are_not_ready_and_leave_after_five_minutes() -> None:
    cluster = a_cluster(*TWO)
    path = run(cluster, workload("Deployment", replicas=2))
    cluster.run_for(5)
    assert placed(cluster) == ["n1", "n2"]
    cluster.set_node_ready("n1", is_ready=False)
    assert get(cluster, path)["status"]["readyReplicas"] == 1
    cluster.run_for(290)
    assert placed(cluster) == ["n1", "n2"]
    cluster.run_for(20)
    assert placed(cluster) == ["n1", "n2", "n2"]
    assert get(cluster, path)["status"]["readyReplicas"] == 2
    cluster.set_node_ready("n1", is_ready=True)
    cluster.run_for(5)
    assert placed(cluster) == ["n2", "n2"]


def test_a_node_that_comes_back_in_time_brings_its_pods_back() -> None:
    cluster = a_cluster()
    path = run(cluster, workload("Deployment", replicas=2))
    cluster.run_for(5)
    names = [pod["metadata"]["name"] for pod in pods(cluster)]
    cluster.set_node_ready("n1", is_ready=False)
    cluster.run_for(60)
    assert "readyReplicas" not in get(cluster, path)["status"]
    cluster.set_node_ready("n1", is_ready=True)
    assert get(cluster, path)["status"]["readyReplicas"] == 2
    assert [pod["metadata"]["name"] for pod in pods(cluster)] == names
    assert "taints" not in cluster.get("Node", "", "n1")["spec"]


def test_a_removed_node_takes_its_pods_along() -> None:
    cluster = a_cluster(*TWO)
    run(cluster, workload("Deployment", replicas=2))
    cluster.run_for(5)
    cluster.remove_node("n1")
    assert placed(cluster) == ["n2", "n2"]


def test_a_no_execute_taint_evicts_at_once() -> None:
    cluster = a_cluster()
    run(cluster, workload("Deployment", replicas=1))
    cluster.run_for(5)
    send(cluster, "PATCH", "/api/v1/nodes/n1", {"spec": {"taints": [{"key": "out", "effect": "NoExecute"}]}})
    cluster.run_for(5)
    assert placed(cluster) == [""]


def test_a_deleted_pod_stays_until_its_containers_have_stopped() -> None:
    cluster = a_cluster(settings=Settings(stop_s=3))
    run(cluster, workload("StatefulSet", replicas=1))
    cluster.run_for(5)
    answer = send(cluster, "DELETE", "/api/v1/namespaces/default/pods/web-0")
    assert answer.body["metadata"]["deletionGracePeriodSeconds"] == 30
    cluster.run_for(2)
    assert "deletionTimestamp" in pods(cluster)[0]["metadata"]
    cluster.run_for(5)
    assert "deletionTimestamp" not in pods(cluster)[0]["metadata"]


def test_a_bare_pod_runs() -> None:
    cluster = a_cluster()
    path = "/api/v1/namespaces/default/pods/web"
    apply(cluster, path, {"apiVersion": "v1", "kind": "Pod", **pod_template(), "metadata": {"name": "web"}})
    cluster.run_for(5)
    body = get(cluster, path)
    assert (body["status"]["phase"], condition(body, "Ready")[0]) == ("Running", "True")


def test_a_node_made_through_the_api_becomes_ready() -> None:
    cluster = a_cluster()
    body = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n9"},
        "status": {"capacity": {"cpu": "1", "pods": "1"}},
    }
    send(cluster, "POST", "/api/v1/nodes", body)
    node = cluster.get("Node", "", "n9")
    assert condition(node, "Ready")[0] == "True"
    assert node["status"]["allocatable"] == {"cpu": "1", "pods": "1"}
