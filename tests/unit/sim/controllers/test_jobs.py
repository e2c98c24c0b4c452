from __future__ import annotations

from typing import Any

from reconciler.sim import Settings
from tests.unit.sim.worlds import a_cluster, condition, get, pod_template, run, send


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
