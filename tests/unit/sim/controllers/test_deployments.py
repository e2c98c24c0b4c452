from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.sim import Settings
from reconciler.sim.controllers.deployments import limit
from tests.unit.sim.worlds import a_cluster, condition, get, pod_template, pods, run, send, workload


def test_a_new_deployment_becomes_available_after_its_pods_start() -> None:
    cluster = a_cluster(settings=Settings(start_s=2))
    path = run(cluster, workload("Deployment", replicas=3))
    assert get(cluster, path)["status"]["unavailableReplicas"] == 3
    cluster.run_for(1.9)
    assert "availableReplicas" not in get(cluster, path)["status"]
    cluster.run_for(0.1)
    body = get(cluster, path)
    assert (body["status"]["availableReplicas"], body["status"]["observedGeneration"]) == (3, 1)
    assert condition(body, "Available") == ("True", "MinimumReplicasAvailable")
    assert condition(body, "Progressing") == ("True", "NewReplicaSetAvailable")


def test_a_rolling_update_keeps_its_bounds_at_every_step() -> None:
    cluster = a_cluster()
    update = {"rollingUpdate": {"maxSurge": 2, "maxUnavailable": 1}}
    path = run(cluster, workload("Deployment", replicas=5, strategy=update))
    cluster.run_for(10)
    run(cluster, workload("Deployment", replicas=5, strategy=update, template=pod_template(image="nginx:2")))
    for _ in range(100):
        alive = [pod for pod in pods(cluster) if "deletionTimestamp" not in pod["metadata"]]
        assert len(alive) <= 7
        assert sum(condition(pod, "Ready")[0] == "True" for pod in alive) >= 4
        cluster.run_for(0.1)
    assert get(cluster, path)["status"]["updatedReplicas"] == 5
    assert {pod["spec"]["containers"][0]["image"] for pod in pods(cluster)} == {"nginx:2"}


def test_recreate_stops_the_old_pods_first() -> None:
    cluster = a_cluster()
    run(cluster, workload("Deployment", replicas=2, strategy={"type": "Recreate"}))
    cluster.run_for(10)
    run(
        cluster,
        workload("Deployment", replicas=2, strategy={"type": "Recreate"}, template=pod_template(image="nginx:2")),
    )
    images = set()
    for _ in range(50):
        alive = {
            pod["spec"]["containers"][0]["image"] for pod in pods(cluster) if "deletionTimestamp" not in pod["metadata"]
        }
        assert len(alive) <= 1
        images |= alive
        cluster.run_for(0.1)
    assert images == {"nginx:2"}


def test_a_broken_image_keeps_the_old_pods_and_exceeds_the_deadline() -> None:
    cluster = a_cluster()
    path = run(cluster, workload("Deployment", replicas=4))
    cluster.run_for(10)
    broken = workload("Deployment", replicas=4, template=pod_template(image="nginx:broken"), progressDeadlineSeconds=60)
    run(cluster, broken)
    cluster.run_for(50)
    body = get(cluster, path)
    assert body["status"]["availableReplicas"] == 3
    assert condition(body, "Progressing") == ("True", "ReplicaSetUpdated")
    cluster.run_for(20)
    assert condition(get(cluster, path), "Progressing") == ("False", "ProgressDeadlineExceeded")
    waiting = {pod["status"]["containerStatuses"][0]["state"].get("waiting", {}).get("reason") for pod in pods(cluster)}
    assert waiting == {None, "CrashLoopBackOff"}


def test_a_roll_back_uses_the_old_replica_set_again() -> None:
    cluster = a_cluster()
    path = run(cluster, workload("Deployment", replicas=1))
    cluster.run_for(5)
    first = get(cluster, path)
    run(cluster, workload("Deployment", replicas=1, template=pod_template(image="nginx:2")))
    cluster.run_for(5)
    run(cluster, workload("Deployment", replicas=1))
    cluster.run_for(5)
    assert len(cluster.state.sorted("ReplicaSet")) == 2
    annotation = "deployment.kubernetes.io/revision"
    assert first["metadata"]["annotations"][annotation] == "1"
    assert get(cluster, path)["metadata"]["annotations"][annotation] == "3"


def test_min_ready_seconds_delays_availability() -> None:
    cluster = a_cluster(settings=Settings(start_s=1))
    path = run(cluster, workload("Deployment", replicas=1, minReadySeconds=30))
    cluster.run_for(20)
    assert get(cluster, path)["status"]["readyReplicas"] == 1
    assert "availableReplicas" not in get(cluster, path)["status"]
    cluster.run_for(12)
    assert get(cluster, path)["status"]["availableReplicas"] == 1


def test_a_paused_deployment_scales_but_does_not_roll() -> None:
    cluster = a_cluster()
    run(cluster, workload("Deployment", replicas=1))
    cluster.run_for(5)
    run(cluster, workload("Deployment", replicas=3, paused=True, template=pod_template(image="nginx:2")))
    cluster.run_for(5)
    assert [pod["spec"]["containers"][0]["image"] for pod in pods(cluster)] == ["nginx:1"] * 3


def test_a_pod_that_is_deleted_is_replaced() -> None:
    cluster = a_cluster()
    run(cluster, workload("Deployment", replicas=1))
    cluster.run_for(5)
    [pod] = pods(cluster)
    send(cluster, "DELETE", f"/api/v1/namespaces/default/pods/{pod['metadata']['name']}")
    cluster.run_for(5)
    [other] = pods(cluster)
    assert other["metadata"]["uid"] != pod["metadata"]["uid"]


def test_a_deleted_deployment_takes_its_pods_along() -> None:
    cluster = a_cluster()
    path = run(cluster, workload("Deployment", replicas=3))
    cluster.run_for(5)
    send(cluster, "DELETE", path)
    cluster.run_for(5)
    assert (pods(cluster), cluster.state.sorted("ReplicaSet")) == ([], [])


def test_an_orphaned_replica_set_keeps_its_pods() -> None:
    cluster = a_cluster()
    path = run(cluster, workload("Deployment", replicas=2))
    send(cluster, "DELETE", path, {"propagationPolicy": "Orphan"})
    cluster.run_for(5)
    assert len(pods(cluster)) == 2


@pytest.mark.parametrize(
    ("value", "replicas", "rounds_up", "expected"), [("25%", 3, True, 1), ("25%", 3, False, 0), (2, 9, True, 2)]
)
def test_limits_round_towards_safety(value: int | str, replicas: int, rounds_up: bool, expected: int) -> None:
    assert limit(value, replicas, rounds_up=rounds_up) == expected


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(1, 3), st.floats(0, 5)), min_size=1, max_size=5))
def test_any_series_of_edits_ends_as_the_last_one_says(edits: list[tuple[int, int, float]]) -> None:
    cluster = a_cluster()
    path = ""
    for replicas, version, wait_s in edits:
        template = pod_template(image=f"nginx:{version}")
        path = run(cluster, workload("Deployment", replicas=replicas, template=template))
        cluster.run_for(wait_s)
    cluster.run_for(120)
    replicas, version, _ = edits[-1]
    assert [pod["spec"]["containers"][0]["image"] for pod in pods(cluster)] == [f"nginx:{version}"] * replicas
    assert get(cluster, path)["status"].get("availableReplicas", 0) == replicas
