"""Backups that are put back, admission that changes or refuses, and quotas."""

from __future__ import annotations

from typing import Any

from reconciler.sim import Cluster, Part
from reconciler.sim.objects.status import forbidden
from tests.fakes.definitions import definition
from tests.unit.sim.worlds import APPS, CORE, a_cluster, apply, run, send, workload

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


def test_controllers_make_no_pod_beyond_the_quota_say_so_and_go_on_without_it() -> None:
    cluster = a_cluster()
    cluster.state.pods_max = 1
    apply(cluster, f"{APPS}/deployments/web", workload("Deployment", replicas=3))
    cluster.run_for(60)
    status = cluster.get("Deployment", "default", "web")["status"]
    assert status["availableReplicas"] == 1
    assert [found["reason"] for found in status["conditions"] if found["type"] == "ReplicaFailure"] == ["FailedCreate"]
    cluster.state.pods_max = None
    cluster.run_for(60)
    status = cluster.get("Deployment", "default", "web")["status"]
    assert status["availableReplicas"] == 3
    assert "ReplicaFailure" not in [found["type"] for found in status["conditions"]]
