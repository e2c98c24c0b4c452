from __future__ import annotations

from typing import Any

from reconciler.sim import NodeSpec, Settings
from tests.unit.sim.worlds import a_cluster, condition, get, placed, pod_template, pods, run, send, workload


def names(cluster: object) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods(cluster)]  # type: ignore[arg-type]  # a Cluster


def test_stateful_pods_start_in_order() -> None:
    cluster = a_cluster()
    path = run(cluster, workload("StatefulSet", replicas=3, serviceName="web"))
    assert names(cluster) == ["web-0"]
    cluster.run_for(1)
    assert names(cluster) == ["web-0", "web-1"]
    cluster.run_for(10)
    status = get(cluster, path)["status"]
    assert (status["readyReplicas"], status["currentRevision"]) == (3, status["updateRevision"])


def test_parallel_stateful_pods_start_together() -> None:
    cluster = a_cluster()
    run(cluster, workload("StatefulSet", replicas=3, podManagementPolicy="Parallel"))
    assert names(cluster) == ["web-0", "web-1", "web-2"]


def test_a_stateful_set_shrinks_from_the_top() -> None:
    cluster = a_cluster()
    run(cluster, workload("StatefulSet", replicas=3))
    cluster.run_for(10)
    run(cluster, workload("StatefulSet", replicas=1))
    cluster.run_for(10)
    assert names(cluster) == ["web-0"]


def test_a_stateful_update_goes_down_to_the_partition_and_stops_at_a_broken_pod() -> None:
    cluster = a_cluster()
    path = run(cluster, workload("StatefulSet", replicas=3))
    cluster.run_for(10)
    strategy = {"rollingUpdate": {"partition": 1}}
    run(cluster, workload("StatefulSet", replicas=3, updateStrategy=strategy, template=pod_template(image="nginx:2")))
    cluster.run_for(30)
    assert [pod["spec"]["containers"][0]["image"] for pod in pods(cluster)] == ["nginx:1", "nginx:2", "nginx:2"]
    assert get(cluster, path)["status"]["updatedReplicas"] == 2
    run(cluster, workload("StatefulSet", replicas=3, template=pod_template(image="nginx:broken")))
    cluster.run_for(30)
    images = [pod["spec"]["containers"][0]["image"] for pod in pods(cluster)]
    assert images[2] == "nginx:broken"
    assert "nginx:broken" not in images[:2]


def test_claims_are_made_bound_and_kept() -> None:
    cluster = a_cluster()
    claim = {
        "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    path = run(cluster, workload("StatefulSet", replicas=2, volumeClaimTemplates=[claim]))
    cluster.run_for(10)
    send(cluster, "DELETE", path)
    cluster.run_for(10)
    claims = cluster.state.sorted("PersistentVolumeClaim")
    assert [claim["metadata"]["name"] for claim in claims] == ["data-web-0", "data-web-1"]
    assert {claim["status"]["phase"] for claim in claims} == {"Bound"}


def test_a_daemon_runs_on_every_fitting_node() -> None:
    cluster = a_cluster(
        NodeSpec(name="n1"), NodeSpec(name="n2"), NodeSpec(name="n3", taints=(("gpu", "", "NoSchedule"),))
    )
    path = run(cluster, workload("DaemonSet"))
    cluster.run_for(5)
    assert placed(cluster) == ["n1", "n2"]
    cluster.add_node(NodeSpec(name="n4"))
    cluster.run_for(5)
    assert placed(cluster) == ["n1", "n2", "n4"]
    status = get(cluster, path)["status"]
    assert (status["desiredNumberScheduled"], status["numberAvailable"]) == (3, 3)


def test_a_daemon_update_takes_one_node_at_a_time() -> None:
    cluster = a_cluster(NodeSpec(name="n1"), NodeSpec(name="n2"), NodeSpec(name="n3"))
    path = run(cluster, workload("DaemonSet"))
    cluster.run_for(5)
    run(cluster, workload("DaemonSet", template=pod_template(image="nginx:2")))
    for _ in range(80):
        assert get(cluster, path)["status"].get("numberAvailable", 0) >= 2
        cluster.run_for(0.1)
    assert {pod["spec"]["containers"][0]["image"] for pod in pods(cluster)} == {"nginx:2"}


def job(image: str = "busybox:1", **spec: Any) -> dict[str, Any]:
    template = pod_template("j", image=image, restartPolicy="Never")
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"template": template, **spec}}


def test_a_job_runs_its_completions_in_parallel_steps() -> None:
    cluster = a_cluster(settings=Settings(start_s=1, job_s=2))
    path = run(cluster, job(completions=5, parallelism=2))
    assert get(cluster, path)["status"]["active"] == 2
    cluster.run_for(6.5)
    assert (get(cluster, path)["status"]["succeeded"], get(cluster, path)["status"]["active"]) == (4, 1)
    cluster.run_for(3)
    body = get(cluster, path)
    assert (body["status"]["succeeded"], condition(body, "Complete")[0]) == (5, "True")
    assert body["status"]["completionTime"] > body["status"]["startTime"]


def test_a_failing_job_gives_up_after_its_back_off_limit() -> None:
    cluster = a_cluster()
    path = run(cluster, job("busybox:broken", backoffLimit=2))
    cluster.run_for(60)
    body = get(cluster, path)
    assert (body["status"]["failed"], condition(body, "Failed")) == (3, ("True", "BackoffLimitExceeded"))


def test_a_suspended_job_runs_nothing_until_it_is_resumed() -> None:
    cluster = a_cluster()
    path = run(cluster, job(suspend=True))
    cluster.run_for(30)
    assert condition(get(cluster, path), "Suspended")[0] == "True"
    assert cluster.state.sorted("Pod") == []
    send(cluster, "PATCH", path, {"spec": {"suspend": False}})
    cluster.run_for(30)
    assert condition(get(cluster, path), "Complete")[0] == "True"


def test_a_finished_job_expires() -> None:
    cluster = a_cluster()
    path = run(cluster, job(ttlSecondsAfterFinished=100))
    cluster.run_for(90)
    assert send(cluster, "GET", path).status == 200
    cluster.run_for(30)
    assert send(cluster, "GET", path).status == 404
    assert cluster.state.sorted("Pod") == []
