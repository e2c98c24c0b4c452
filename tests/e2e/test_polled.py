"""A fleet that is polled, on real clusters: healed within a resync, a commit at once, and no watch is ever asked for.

Requests are counted by the service itself, by verb; on embedded clusters the servers count them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import ThreeClusters
from tests.e2e.scene import CLUSTERS, Scene, counted
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver


@pytest.fixture
def scene(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Scene]:
    found = Scene(tmp_path, three_clusters, drift={"mode": "poll", "resync": "5s"})
    node, m1 = f"node-{found.fleet}", found.clusters["m1"]
    m1.add_node(node, cpu="4", memory="4Gi")
    with found.daemon:
        try:
            yield found
        finally:
            m1.remove_node(node)


def asked(scene: Scene) -> Counter[str]:
    """Requests of the service, by verb."""
    found: Counter[str] = Counter()
    for family in text_string_to_metric_families(scene.page("/metrics")):
        for sample in family.samples:
            if sample.name.endswith("request_seconds_count"):
                found[sample.labels["verb"]] += int(sample.value)
    return found


def shows(scene: Scene, cluster: str, value: str) -> None:
    what = f"app in {cluster} to be {value}; the service said {scene.daemon.text()[-1500:]}"
    wait_until(lambda: scene.held_by(cluster).get("app") == value, what)


def test_drift_is_healed_a_commit_is_made_at_once_and_no_watch_is_opened(scene: Scene) -> None:
    scene.put("app", "1", *CLUSTERS)
    scene.put_deployment("nginx:1")
    scene.store.commit()
    scene.daemon.start()
    for cluster in CLUSTERS:
        shows(scene, cluster, "1")
    patch = ("patch", "configmap", "app", "-n", scene.namespace, "-p", '{"data":{"value":"by hand"}}')
    scene.clusters["m1"].kubectl(*patch)
    shows(scene, "m1", "1")
    scene.clusters["m2"].kubectl("delete", "configmap", "app", "-n", scene.namespace)
    shows(scene, "m2", "1")
    healthy = {"Healthy": 3}
    wait_until(lambda: counted(scene.status()["clusters"][0]["health"]) == healthy, "the Deployment to serve")
    scene.daemon.stop()
    scene.clusters["m3"].kubectl(*patch)
    scene.daemon.start()
    shows(scene, "m3", "1")
    scene.put("app", "2", *CLUSTERS)
    scene.store.commit()
    for cluster in CLUSTERS:
        shows(scene, cluster, "2")
    verbs = asked(scene)
    assert verbs["read"] > 0
    assert verbs["watch"] == 0
