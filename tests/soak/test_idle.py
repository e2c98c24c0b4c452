"""An hour of rest with three real clusters: next to no processor time, no growth, not one write.

`RECONCILER_SOAK_IDLE_S` chooses another duration. Source: design#promise-8.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.test_daemon_follows import CLUSTERS, Scene
from tests.real_clusters import wait_until
from tests.soak.idle import MIB, cost, watch

SECONDS = float(os.environ.get("RECONCILER_SOAK_IDLE_S", "3600"))
SETTLE_S = 20.0
SHARE_MAX = 0.01
GROWTH_MAX = 4 * MIB
"""Over the whole time after a first tenth, in which caches of the interpreter and of SQLite fill."""

pytestmark = [pytest.mark.soak, pytest.mark.apiserver, pytest.mark.timeout(SECONDS + 600)]


def deployment(scene: Scene, name: str, replicas: int) -> dict[str, Any]:
    labels = {"app": name}
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    container = {"name": "main", "image": "nginx:1.25", "resources": resources}
    return {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": scene.namespace},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                 "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    }  # fmt: skip


def divided(scene: Scene, name: str, **weights: Any) -> dict[str, Any]:
    rules = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    placement = {"clusterAffinity": {"clusterNames": list(CLUSTERS)}, "replicaScheduling": rules | weights}
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": name}]
    policy = scene.policy(name)
    return {**policy, "spec": {**policy["spec"], "resourceSelectors": selectors, "placement": placement}}


def settled_fleet(scene: Scene) -> None:
    """Twenty ConfigMaps and ten Deployments in three clusters, one of them divided by free capacity; all at rest."""
    for cluster in scene.clusters.values():
        cluster.add_node(f"node-{scene.fleet}")
    for number in range(20):
        scene.put(f"app-{number}", *CLUSTERS, a="1")
    for number in range(10):
        name = f"web-{number}"
        weights = {"weightPreference": {"dynamicWeight": "AvailableReplicas"}} if number == 0 else {}
        scene.store.write(f"{name}.yaml", deployment(scene, name, 6))
        scene.store.write(f"{name}-policy.yaml", divided(scene, name, **weights))
    scene.store.commit()
    scene.daemon.start(MALLOC_ARENA_MAX="2")  # as the unit does

    def ready() -> int:
        found = [
            scene.clusters[name].get("deployments", "-n", scene.namespace)["items"]
            for name in CLUSTERS
            if scene.data(name, "app-19") is not None
        ]
        return sum(item["status"].get("readyReplicas", 0) for items in found for item in items)

    wait_until(lambda: ready() == 60, f"all replicas to be ready; {scene.daemon.text()[-1500:]}")
    wait_until(lambda: not scene.daemon.has_open_intents(), "no open intent")
    deadline = time.monotonic() + SETTLE_S
    wait_until(lambda: time.monotonic() > deadline, "the start to be over")


def test_an_idle_fleet_costs_next_to_nothing_and_does_not_grow(tmp_path: Path, three_clusters: ThreeClusters) -> None:
    scene = Scene(tmp_path, three_clusters)
    with scene.daemon:
        settled_fleet(scene)
        since = scene.marks()
        samples = watch(scene.daemon.pid, SECONDS, lambda: scene.daemon.is_running)
        whole, later = cost(samples), cost(samples[len(samples) // 10 :])
        quarter = len(samples) // 4
        parts = [cost(samples[first : first + quarter + 1]) for first in range(0, 4 * quarter, quarter)]
        print(f"\nwhole: {whole}\nafter a tenth: {later}", *(f"quarter: {found}" for found in parts), sep="\n")
        assert scene.writes(since) == []
        assert whole.share < SHARE_MAX, str(whole)
        assert later.growth < GROWTH_MAX, str(later)
        # It was idle, not dead.
        scene.put("app-0", *CLUSTERS, a="2")
        scene.store.commit()
        scene.shows("m1", "app-0", {"a": "2"})
