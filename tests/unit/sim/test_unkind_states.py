"""Backups that are put back, admission that changes or refuses, and quotas."""

from __future__ import annotations

import re
from typing import Any

import pytest

from reconciler.sim import Cluster, NodeSpec, Part, Settings, forbidden
from tests.fakes.definitions import definition
from tests.unit.sim.worlds import APPS, CORE, a_cluster, apply, pod_template, run, send, workload

WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


def config_map(value: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"value": value}}


def set_value(cluster: Cluster, value: str) -> int:
    body = config_map(value)
    query = {"fieldManager": "ours", "force": "true"}
    return send(
        cluster, "PATCH", f"{CORE}/configmaps/a", body, content_type="application/apply-patch+yaml", query=query
    ).status


def value_of(cluster: Cluster) -> str:
    return str(cluster.get("ConfigMap", "default", "a")["data"]["value"])


def test_a_backup_brings_back_objects_versions_kinds_and_what_the_control_plane_works_on() -> None:
    cluster = a_cluster()
    set_value(cluster, "1")
    send(cluster, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    path = run(cluster, workload("Deployment", replicas=2))
    backup, version = cluster.back_up(), cluster.state.store.version
    set_value(cluster, "2")
    send(cluster, "DELETE", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com")
    send(cluster, "DELETE", path)
    cluster.run_for(60)
    assert send(cluster, "GET", WIDGETS).status == 404
    cluster.put_back(backup)
    assert value_of(cluster) == "1"
    assert version <= cluster.state.store.version < version + 20
    assert send(cluster, "GET", WIDGETS).status == 200
    assert cluster.state.store.oldest == version, "no watch goes on from later"
    cluster.run_for(60)
    assert cluster.get("Deployment", "default", "web")["status"]["availableReplicas"] == 2


def test_pods_that_waited_for_a_node_when_the_backup_was_made_are_placed() -> None:
    cluster = a_cluster()
    cluster.let_sleep(Part.SCHEDULER)
    path = run(cluster, workload("Deployment", replicas=2))
    cluster.run_for(5)
    backup = cluster.back_up()
    send(cluster, "DELETE", path)
    cluster.let_sleep()
    cluster.run_for(60)
    cluster.put_back(backup)
    cluster.run_for(60)
    assert cluster.get("Deployment", "default", "web")["status"]["availableReplicas"] == 2


def test_admission_changes_what_a_client_writes_and_not_who_owns_it() -> None:
    cluster = a_cluster()
    cluster.state.admit = lambda body: {**body, "data": {"value": "injected"}}
    set_value(cluster, "1")
    assert value_of(cluster) == "injected"
    version = cluster.get("ConfigMap", "default", "a")["metadata"]["resourceVersion"]
    set_value(cluster, "1")
    assert cluster.get("ConfigMap", "default", "a")["metadata"]["resourceVersion"] == version


def test_admission_refuses() -> None:
    cluster = a_cluster()

    def refuse(body: dict[str, Any]) -> dict[str, Any]:
        raise forbidden("configmaps", "", "a", "admission webhook denied the request")

    cluster.state.admit = refuse
    assert set_value(cluster, "1") == 403
    assert cluster.state.get("ConfigMap", "default", "a") is None


KINDS: dict[str, dict[str, Any]] = {
    "Deployment": {"replicas": 3},
    "StatefulSet": {"replicas": 3, "podManagementPolicy": "Parallel"},
    "DaemonSet": {},
    "Job": {"parallelism": 3, "completions": 3},
}


def limit_pods(cluster: Cluster, number: int, *, cpu: str = "100") -> None:
    hard = {"pods": str(number), "requests.cpu": cpu}
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": hard}}
    apply(cluster, f"{CORE}/resourcequotas/q", body)


def nodes(number: int) -> list[NodeSpec]:
    return [NodeSpec(name=f"n{index}", cpu="16", memory="64Gi") for index in range(number)]


def start(cluster: Cluster, kind: str, *, cpu: str = "") -> None:
    if kind != "Job":
        apply(cluster, f"{APPS}/{kind.lower()}s/web", workload(kind, template=pod_template(cpu=cpu), **KINDS[kind]))
        return
    spec = {"template": pod_template(cpu=cpu, restartPolicy="Never"), **KINDS[kind]}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "web"}, "spec": spec}
    apply(cluster, "/apis/batch/v1/namespaces/default/jobs/web", body)


def failed_creations(cluster: Cluster) -> list[dict[str, Any]]:
    return [event for event in cluster.state.sorted("Event", "default") if event["reason"] == "FailedCreate"]


@pytest.mark.parametrize("kind", KINDS)
def test_controllers_make_no_pod_beyond_the_quota_say_so_and_go_on_without_it(kind: str) -> None:
    cluster = a_cluster(*nodes(3), settings=Settings(job_s=1000))
    limit_pods(cluster, 1)
    start(cluster, kind)
    cluster.run_for(60)
    assert len(cluster.state.sorted("Pod", "default")) == 1
    assert cluster.get("ResourceQuota", "default", "q")["status"]["used"]["pods"] == "1"
    (event,) = failed_creations(cluster)
    owner = "ReplicaSet" if kind == "Deployment" else kind
    assert event["involvedObject"]["kind"] == owner
    assert event["count"] > 1
    prefix = r"create Pod web-1 in StatefulSet web failed error: " if kind == "StatefulSet" else "Error creating: "
    told = r'pods "web-\S+" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    assert re.fullmatch(prefix + told, event["message"])
    if kind == "Deployment":
        conditions = cluster.get("Deployment", "default", "web")["status"]["conditions"]
        (found,) = (found for found in conditions if found["type"] == "ReplicaFailure")
        assert (found["reason"], re.fullmatch(told, found["message"]) is not None) == ("FailedCreate", True)
    limit_pods(cluster, 10)
    cluster.run_for(60)
    assert len(cluster.state.sorted("Pod", "default")) == 3
    conditions = cluster.get(kind, "default", "web")["status"].get("conditions", ())
    assert "ReplicaFailure" not in [found["type"] for found in conditions]


def test_a_quota_counts_what_pods_ask_for() -> None:
    cluster = a_cluster()
    limit_pods(cluster, 10, cpu="1")
    start(cluster, "Deployment", cpu="400m")
    cluster.run_for(60)
    assert cluster.get("ResourceQuota", "default", "q")["status"]["used"] == {"pods": "2", "requests.cpu": "800m"}
    (event,) = failed_creations(cluster)
    assert event["message"].endswith("requested: requests.cpu=400m, used: requests.cpu=800m, limited: requests.cpu=1")


def test_admission_refuses_pods_of_controllers_too() -> None:
    cluster = a_cluster()

    def refuse(body: dict[str, Any]) -> dict[str, Any]:
        if body["kind"] == "Pod":
            raise forbidden("pods", "", body["metadata"]["name"], 'violates PodSecurity "restricted:latest"')
        return body

    cluster.state.admit = refuse
    start(cluster, "StatefulSet")
    cluster.run_for(10)
    (event,) = failed_creations(cluster)
    assert "violates PodSecurity" in event["message"]
    assert not cluster.state.sorted("Pod", "default")
