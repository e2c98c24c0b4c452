"""An application that breaks in one cluster is taken over by another, on real clusters."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.api.binding import Tick
from reconciler.journal import Journal
from tests.conftest import ThreeClusters
from tests.e2e.moving_workload import MovingWorkload
from tests.e2e.referee import is_available, is_there
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

ONE_CLUSTER = {
    "clusterAffinity": {"clusterNames": ["m1", "m2"]},
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}

Start = Callable[..., MovingWorkload]


@pytest.fixture
def start(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Start]:
    """Two replicas, all in one of two clusters, with these terms of failover."""
    made: list[MovingWorkload] = []

    def begin(**application: Any) -> MovingWorkload:
        terms = {"decisionConditions": {"tolerationSeconds": 1}, **application}
        failover = {"application": terms}
        made.append(MovingWorkload(tmp_path, three_clusters, 2, placement=ONE_CLUSTER, failover=failover,
                                   propagateDeps=True))  # fmt: skip
        return made[0]

    yield begin
    for workload in made:
        workload.close()


def set_ready(cluster: RealCluster, namespace: str, *, ready: bool) -> None:
    """Say of every pod that it is ready or not, as its kubelet would."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": "2026-01-01T00:00:00Z"}
    patch = json.dumps({"status": {"conditions": [condition]}})
    for pod in cluster.get("pods", "-n", namespace)["items"]:
        name = pod["metadata"]["name"]
        cluster.kubectl("patch", "pod", name, "-n", namespace, "--subresource=status", "-p", patch)


@pytest.mark.parametrize("mode", ["Immediately", "Graciously"])
def test_a_broken_application_moves_to_the_other_cluster(start: Start, mode: str) -> None:
    web = start(purgeMode=mode)
    with web.daemon.start() as daemon:
        wait_until(lambda: sum(web.ready().values()) == 2, "both replicas to be ready")
        ((broken, _),) = web.ready().items()
        ((other, _),) = [item for item in web.clusters.items() if item[0] != broken]
        set_ready(web.clusters[broken], web.name, ready=False)
        wait_until(lambda: web.ready() == {other: 2}, f"{other} alone to have both replicas")
        with Journal.open(daemon.journal, read_only=True) as journal:
            (exclusion,) = journal.constraints()
        assert (exclusion.tick, exclusion.cluster, exclusion.excludes) == (Tick.FAILOVER, broken, True)
        assert "unhealthy since" in exclusion.reason
    assert web.judge(is_there if mode == "Immediately" else is_available) == 1
