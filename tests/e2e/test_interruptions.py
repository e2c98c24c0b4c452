"""A workload that is interrupted where it runs is taken over, on real clusters; what the clusters say is all we get.

Source: "Application distribution overview", application-level failover: it detects when a job stops running.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.moving_workload import MovingWorkload
from tests.e2e.test_failover import ONE_CLUSTER
from tests.e2e.training_operator import DEFINITION, TrainingOperator, training_job
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver


class Interrupted(MovingWorkload):
    """A workload of any kind in one of two clusters; the other one may take it over."""

    def __init__(self, folder: Path, clusters: ThreeClusters, body: dict[str, Any]) -> None:
        self._body = body
        selector = {"apiVersion": body["apiVersion"], "kind": body["kind"]}
        failover = {"application": {"decisionConditions": {"tolerationSeconds": 1}}}
        super().__init__(folder, clusters, 1, placement=ONE_CLUSTER, failover=failover, propagateDeps=True,
                         resourceSelectors=[selector])  # fmt: skip

    def web_demo(self) -> dict[str, Any]:
        """The body, in the namespace of the test, with pods that only its own nodes take."""
        pod = super().web_demo()["spec"]["template"]["spec"]
        text = json.dumps(self._body).replace('"POD"', json.dumps(pod))
        body: dict[str, Any] = json.loads(text)
        body["metadata"] = {"name": "work", "namespace": self.name}
        return body

    def there(self) -> dict[str, dict[str, Any]]:
        """The object in each cluster that has it."""
        kind = self._body["kind"]
        return {
            name: found[0]
            for name, cluster in self.clusters.items()
            if (found := cluster.get(kind, "-n", self.name)["items"])
        }

    def pods(self, cluster: str) -> list[dict[str, Any]]:
        return list(self.clusters[cluster].get("pods", "-n", self.name)["items"])


@pytest.fixture
def training(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Interrupted]:
    for cluster in (three_clusters.m1, three_clusters.m2):
        cluster.apply(DEFINITION)
        cluster.kubectl("wait", "crd/pytorchjobs.kubeflow.org", "--for=condition=Established", "--timeout=60s")
    work = Interrupted(tmp_path, three_clusters, training_job(workers=2, pod_spec="POD"))
    with work.daemon.start():
        yield work
    work.close()


def test_a_training_job_that_lost_a_node_moves_whole(training: Interrupted) -> None:
    operators = {name: TrainingOperator(cluster, training.name) for name, cluster in training.clusters.items()}

    def running() -> list[str]:
        return [name for name, operator in operators.items() if operator.reconcile()]

    wait_until(lambda: len(running()) == 1, "all pods of the set to run in one cluster")
    (first,) = training.there()
    (other,) = training.clusters.keys() - {first}
    training.clusters[first].remove_node(f"{training.name}-n")
    wait_until(lambda: running() == [other] and list(training.there()) == [other], f"the set to be in {other} alone")
    assert len(training.pods(other)) == 3
