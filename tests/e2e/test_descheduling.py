"""The walkthrough of the page "Dynamic distribution and descheduling", on real clusters with a real scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.journal import Journal
from tests.conftest import ThreeClusters
from tests.e2e.moving_workload import REPLICAS, MovingWorkload
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver


@pytest.fixture
def web_demo(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[MovingWorkload]:
    made = MovingWorkload(tmp_path, three_clusters)
    yield made
    made.close()


def test_replicas_without_a_node_move_to_the_cluster_that_has_room(web_demo: MovingWorkload) -> None:
    m1 = web_demo.clusters["m1"]
    with web_demo.daemon.start() as daemon:
        wait_until(lambda: sum(web_demo.ready().values()) == REPLICAS, "all replicas to be ready")
        assert web_demo.ready().keys() == {"m1", "m2"}, "both clusters have some"
        m1.kubectl("taint", "nodes", f"{web_demo.name}-n", "foo=bar:NoSchedule")
        m1.kubectl("rollout", "restart", "deployment/web-demo", "-n", web_demo.name)
        wait_until(lambda: web_demo.ready() == {"m2": REPLICAS}, "all replicas to be in m2")
        with Journal.open(daemon.journal, read_only=True) as journal:
            (cap,) = journal.constraints()
        assert (cap.cluster, cap.replicas_max) == ("m1", 0)
        assert "found no node there since" in cap.reason
        m1.kubectl("taint", "nodes", f"{web_demo.name}-n", "foo:NoSchedule-")
        assert daemon.stop() == 0
    with web_demo.daemon.start():
        web_demo.daemon.follows()
        assert web_demo.ready() == {"m2": REPLICAS}, "the end of a cap moves nothing back"
    assert web_demo.judge() >= 1
