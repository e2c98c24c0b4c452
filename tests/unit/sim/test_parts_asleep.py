"""Parts of a control plane that do nothing while the API server goes on."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.sim import Cluster, NodeSpec, Part, Request


def deployed(*asleep: Part) -> Cluster:
    """A cluster to which a Deployment of two came while parts were asleep, and a minute later."""
    cluster = Cluster("m1")
    cluster.add_node(NodeSpec(name="n1"))
    cluster.let_sleep(*asleep)
    container = {"name": "main", "image": "nginx:1"}
    labels = {"app": "web"}
    body = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"},
            "spec": {"replicas": 2, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}}}  # fmt: skip
    cluster.request(Request(method="POST", path="/apis/apps/v1/namespaces/default/deployments", query={}, body=body,
                            content_type="application/json", accept="application/json", user_agent="test"))  # fmt: skip
    cluster.run_for(60)
    return cluster


def status(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("Deployment", "default", "web").get("status") or {}
    return found


@pytest.mark.parametrize(
    ("asleep", "told", "pods"),
    [
        ((), {"availableReplicas": 2}, ["Running", "Running"]),
        ((Part.CONTROLLERS,), {}, []),
        ((Part.SCHEDULER,), {"replicas": 2, "unavailableReplicas": 2}, ["Pending", "Pending"]),
        ((Part.KUBELETS,), {"replicas": 2, "unavailableReplicas": 2}, ["Pending", "Pending"]),
        (tuple(Part), {}, []),
    ],
)
def test_what_sleeps_does_nothing_and_catches_up(
    asleep: tuple[Part, ...], told: dict[str, int], pods: list[str]
) -> None:
    cluster = deployed(*asleep)
    assert told.items() <= status(cluster).items()
    assert [pod["status"].get("phase", "Pending") for pod in cluster.state.sorted("Pod")] == pods
    assert bool(status(cluster)) is (Part.CONTROLLERS not in asleep)
    cluster.let_sleep()
    cluster.run_for(60)
    assert status(cluster)["availableReplicas"] == 2
