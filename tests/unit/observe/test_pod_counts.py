"""The workload of each pod, and the pods that a workload is still to get."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.clusters import LiveObject, Workload
from reconciler.api.refs import Identity
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import Pod
from reconciler.observe.pod_counts import owners, pod_counts
from tests.unit.observe.test_model import live, pod


def owned(name: str, api_version: str, kind: str, owner: str, phase: str = "Running", **labels: str) -> Pod:
    reference = {"apiVersion": api_version, "kind": kind, "name": owner, "uid": f"uid-{owner}", "controller": True}
    return pod(name, metadata={"ownerReferences": [reference], "labels": labels}, status={"phase": phase})


def made(*pods: Pod) -> dict[Identity, int]:
    return dict(pod_counts(pods, owners(pods)).created())


def test_pods_belong_to_the_deployment_of_their_replica_set() -> None:
    pods = [
        owned("a", "apps/v1", "ReplicaSet", "web-5f6", **{"pod-template-hash": "5f6"}),
        owned("b", "apps/v1", "ReplicaSet", "web-7c9", **{"pod-template-hash": "7c9"}),
        owned("c", "apps/v1", "ReplicaSet", "alone"),
        owned("d", "apps/v1", "ReplicaSet", "web-5f6", "Failed", **{"pod-template-hash": "5f6"}),
    ]
    assert made(*pods) == {
        Identity("apps", "Deployment", "demo", "web"): 2,
        Identity("apps", "ReplicaSet", "demo", "alone"): 1,
    }


def test_of_what_runs_to_an_end_a_pod_that_has_ended_is_not_made_again() -> None:
    pods = [
        pod("bare", status={"phase": "Succeeded"}),
        owned("m", "kubeflow.org/v1", "PyTorchJob", "bert", "Succeeded"),
        owned("w", "kubeflow.org/v1", "PyTorchJob", "bert"),
        owned("driver", "sparkoperator.k8s.io/v1beta2", "SparkApplication", "pi"),
        owned("executor", "v1", "Pod", "driver"),
    ]
    assert made(*pods) == {
        Identity("", "Pod", "demo", "bare"): 1,
        Identity("kubeflow.org", "PyTorchJob", "demo", "bert"): 2,
        Identity("sparkoperator.k8s.io", "SparkApplication", "demo", "pi"): 2,
    }


@pytest.mark.parametrize(
    ("found", "pods", "without_node"),
    [
        (live("StatefulSet", "db", spec={"replicas": 1}), [owned("a", "apps/v1", "StatefulSet", "db", "Pending")], 1),
        (live("StatefulSet", "db", spec={"replicas": 1}), [owned("a", "apps/v1", "StatefulSet", "db", "Failed")], 0),
        (live("StatefulSet", "db", spec={"replicas": 0}), [], 0),
        (live("DaemonSet", "db"), [owned("a", "apps/v1", "DaemonSet", "db", "Pending")], 1),
        (live("DaemonSet", "db"), [], None),
        (live("Database", "db", group="example.com"), [], None),
    ],
)
def test_pods_without_a_node_are_counted_where_it_is_known_which_they_are(
    found: LiveObject, pods: list[Pod], without_node: int | None
) -> None:
    interpreter = BUILT_IN_KINDS.of(*found.identity[:2])
    seen = Workload(gvk=found.gvk, identity=found.identity)
    assert pod_counts(pods, owners(pods)).with_counts(found, interpreter, seen).without_node == without_node


def job(spec: dict[str, Any], **status: Any) -> LiveObject:
    return live("Job", "sum", group="batch", spec=spec, status=status)


@pytest.mark.parametrize(
    ("found", "missing"),
    [
        (live("Deployment", "sum", spec={"replicas": 4}), 3),
        (live("Deployment", "sum", spec={"replicas": 1}), 0),
        (live("DaemonSet", "sum"), 0),
        (job({"parallelism": 3, "completions": 9}), 2),
        (job({"parallelism": 3, "completions": 9}, succeeded=7), 1),
        (job({"parallelism": 3, "completions": 9, "suspend": True}), 0),
        (job({"parallelism": 3}, succeeded=1), 0),
        (job({"parallelism": 3}, conditions=[{"type": "Failed", "status": "True"}]), 0),
    ],
)
def test_what_a_workload_with_one_pod_is_still_to_get(found: LiveObject, missing: int) -> None:
    group, kind, _, name = found.identity
    pods = [
        owned("a", f"{group}/v1", kind, name)
        if kind == "Job"
        else owned("a", "apps/v1", "ReplicaSet", "sum-1", **{"pod-template-hash": "1"}),
        owned("b", f"{group}/v1", kind, name, "Failed"),
    ]
    assert pod_counts(pods, owners(pods)).missing(found, BUILT_IN_KINDS.of(group, kind)) == missing
