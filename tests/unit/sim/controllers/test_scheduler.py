from __future__ import annotations

from typing import Any

import pytest

from reconciler.sim import NodeSpec
from reconciler.sim.controllers.scheduler import requests, tolerates, unsuitable
from tests.unit.sim.worlds import a_cluster, condition, placed, pod_template, pods, run, send, workload

TWO = (NodeSpec(name="n1", cpu="1"), NodeSpec(name="n2", cpu="2"))


def test_pods_go_where_there_is_room_and_wait_where_there_is_none() -> None:
    cluster = a_cluster(*TWO)
    run(cluster, workload("Deployment", replicas=8, template=pod_template(cpu="500m")))
    assert placed(cluster) == ["", "", "n1", "n1", "n2", "n2", "n2", "n2"]
    waiting = next(pod for pod in pods(cluster) if "nodeName" not in pod["spec"])
    assert condition(waiting, "PodScheduled") == ("False", "Unschedulable")
    assert "2 Insufficient cpu" in waiting["status"]["conditions"][0]["message"]


def test_the_time_of_the_first_failure_stays() -> None:
    cluster = a_cluster(NodeSpec(name="n1", cpu="1"))
    run(cluster, workload("Deployment", replicas=1, template=pod_template(cpu="2")))
    since = pods(cluster)[0]["status"]["conditions"][0]["lastTransitionTime"]
    cluster.run_for(60)
    cluster.set_capacity("n1", memory="1Gi")
    assert pods(cluster)[0]["status"]["conditions"][0]["lastTransitionTime"] == since


def test_waiting_pods_are_placed_when_capacity_comes() -> None:
    cluster = a_cluster(NodeSpec(name="n1", cpu="1"))
    run(cluster, workload("Deployment", replicas=2, template=pod_template(cpu="1")))
    assert placed(cluster) == ["", "n1"]
    cluster.set_capacity("n1", cpu="2")
    assert placed(cluster) == ["n1", "n1"]


def test_room_is_given_back_when_pods_go() -> None:
    cluster = a_cluster(NodeSpec(name="n1", cpu="1"))
    path = run(cluster, workload("Deployment", "a", replicas=1, template=pod_template("a", cpu="1")))
    run(cluster, workload("Deployment", "b", replicas=1, template=pod_template("b", cpu="1")))
    cluster.run_for(5)
    assert placed(cluster, "b") == [""]
    send(cluster, "DELETE", path)
    cluster.run_for(5)
    assert placed(cluster, "b") == ["n1"]


@pytest.mark.parametrize(
    ("spec", "nodes"),
    [
        pytest.param({"nodeSelector": {"disk": "ssd"}}, ["n2"], id="node selector"),
        pytest.param(
            {"tolerations": [{"key": "gpu", "operator": "Exists"}], "nodeSelector": {"gpu": "y"}}, ["n3"], id="taint"),
        pytest.param({"nodeSelector": {"gpu": "y"}}, [""], id="untolerated"),
        pytest.param(
            {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd", "nvme"]}]}]}}}}, ["n2"],
            id="affinity"),
    ],
)  # fmt: skip
def test_constraints_choose_the_node(spec: Any, nodes: list[str]) -> None:
    cluster = a_cluster(
        NodeSpec(name="n1"),
        NodeSpec(name="n2", labels=(("disk", "ssd"),)),
        NodeSpec(name="n3", labels=(("gpu", "y"),), taints=(("gpu", "", "NoSchedule"),)),
    )
    run(cluster, workload("Deployment", replicas=1, template=pod_template(**spec)))
    assert placed(cluster) == nodes


def test_a_cordoned_node_takes_nothing_new_and_keeps_what_it_has() -> None:
    cluster = a_cluster(NodeSpec(name="n1"))
    run(cluster, workload("Deployment", replicas=1))
    cluster.run_for(5)
    send(cluster, "PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": True}})
    run(cluster, workload("Deployment", replicas=2))
    assert placed(cluster) == ["", "n1"]
    send(cluster, "PATCH", "/api/v1/nodes/n1", {"spec": {"unschedulable": None}})
    assert placed(cluster) == ["n1", "n1"]


def test_no_more_pods_than_a_node_holds() -> None:
    cluster = a_cluster(NodeSpec(name="n1", pods="2"))
    run(cluster, workload("Deployment", replicas=3))
    assert placed(cluster) == ["", "n1", "n1"]


def test_requests_count_init_containers_and_overhead() -> None:
    spec = {
        "containers": [{"resources": {"requests": {"cpu": "100m"}}}, {"resources": {"requests": {"cpu": "0.2"}}}],
        "initContainers": [{"resources": {"requests": {"cpu": "1", "memory": "1Ki"}}}],
        "overhead": {"cpu": "10m"},
    }
    assert requests(spec) == {"cpu": 1010, "memory": 1024000, "pods": 1000}


@pytest.mark.parametrize(
    ("toleration", "covers"),
    [
        ({"operator": "Exists"}, True),
        ({"key": "a", "value": "b"}, True),
        ({"key": "a", "value": "c"}, False),
        ({"key": "a", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "b", "operator": "Exists"}, False),
    ],
)
def test_tolerations(toleration: Any, covers: bool) -> None:
    taint = {"key": "a", "value": "b", "effect": "NoSchedule"}
    assert tolerates({"tolerations": [toleration]}, taint) == covers
    node = {"metadata": {"name": "n"}, "spec": {"taints": [taint]}}
    assert (unsuitable({"tolerations": [toleration]}, node) == "") == covers
