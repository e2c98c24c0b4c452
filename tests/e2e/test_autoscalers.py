"""Replicas that an autoscaler chose never move by our hand; the audit log is the referee.

Real clusters without metrics: the autoscaler's controller keeps its bounds all the same, which is scaling enough.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import Daemon
from tests.e2e.fleet_on_clusters import FleetOnClusters
from tests.e2e.scaled_workloads import ReplicaMoves, autoscaler, scale
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

IN_STORE, LATER, IN_CLUSTER, RETAINED, NOBODYS = "in-store", "later", "in-cluster", "retained", "nobodys"
ALL = (IN_STORE, LATER, IN_CLUSTER, RETAINED, NOBODYS)
NEVER: dict[str, list[tuple[int, int]]] = {name: [] for name in ALL}
RETAIN = {"resourcetemplate.karmada.io/retain-replicas": "true"}


class Scene:
    """A store with one Deployment of two replicas for each way of being scaled, all of them for m1."""

    def __init__(self, folder: Path, clusters: ThreeClusters) -> None:
        self.fleet = FleetOnClusters(folder, clusters, drift={"resync": "5s"})
        self.m1: RealCluster = clusters.m1
        self.namespace = self.fleet.namespace
        self.moves = ReplicaMoves(self.m1, self.namespace)
        for name in ALL:
            self.put(name)
        self.put_autoscaler(IN_STORE)

    def put(self, name: str, image: str = "busybox:1", **labels: str) -> None:
        labels = labels or (RETAIN if name == RETAINED else {})
        body = self.fleet.deployment(name)
        body["metadata"]["labels"] = labels
        body["spec"]["template"]["spec"]["containers"][0]["image"] = image
        self.fleet.write(name, body, self.fleet.policy(name, "Deployment", clusters=["m1"]))

    def put_autoscaler(self, name: str, least: int = 3) -> None:
        policy = self.fleet.policy(f"{name}-hpa", "HorizontalPodAutoscaler", selects=name, clusters=["m1"], keep=False)
        policy["spec"]["resourceSelectors"][0]["apiVersion"] = "autoscaling/v2"
        self.fleet.write(f"{name}-hpa", autoscaler(self.namespace, name, least), policy)

    def live(self, name: str) -> dict[str, Any] | None:
        return self.fleet.live("m1", "deployment", name)

    def replicas(self, name: str) -> int | None:
        live = self.live(name)
        return None if live is None else int(live["spec"]["replicas"])

    def has(self, name: str, replicas: int) -> None:
        wait_until(lambda: self.replicas(name) == replicas, f"{name} to have {replicas} replicas",
                   seen=lambda: f"{self.replicas(name)}; {self.moves.of(name)}")  # fmt: skip

    def runs(self, name: str, image: str) -> None:
        def is_so() -> bool:
            live = self.live(name)
            return live is not None and live["spec"]["template"]["spec"]["containers"][0]["image"] == image

        wait_until(is_so, f"{name} to run {image}")


@pytest.fixture
def scene(tmp_path: Path, three_clusters: ThreeClusters) -> Scene:
    return Scene(tmp_path, three_clusters)


def edited(scene: Scene, image: str) -> None:
    """Every template gets another image, and every Deployment runs it."""
    for name in ALL:
        scene.put(name, image)
    for name in ALL:
        scene.runs(name, image)


def test_the_service_leaves_replicas_to_whatever_scales_them(scene: Scene) -> None:
    access = scene.fleet.access
    assert access.kubeconfig is not None
    assert access.journal is not None
    with Daemon(scene.fleet.store, access.kubeconfig, access.journal).start() as daemon:
        scene.has(IN_STORE, 3)  # The controller raises it to its minimum.
        edited(scene, "busybox:2")
        scene.put_autoscaler(LATER)
        scene.m1.kubectl("create", "-f", "-", stdin=json.dumps(autoscaler(scene.namespace, IN_CLUSTER, 1)))
        scale(scene.m1, scene.namespace, IN_CLUSTER, 5, "keda-operator")
        scale(scene.m1, scene.namespace, RETAINED, 4, "kubectl")
        scene.has(LATER, 3)
        edited(scene, "busybox:3")
        scale(scene.m1, scene.namespace, IN_STORE, 7, "kubectl")  # The autoscaler lets it be, and so do we.
        scale(scene.m1, scene.namespace, NOBODYS, 6, "kubectl")
        scene.has(NOBODYS, 2)  # Nothing scales it: a person's number is drift.
        assert daemon.stop() == 0
        daemon.start()
        edited(scene, "busybox:4")
        chosen = {IN_STORE: 7, LATER: 3, IN_CLUSTER: 5, RETAINED: 4, NOBODYS: 2}
        assert {name: scene.replicas(name) for name in ALL} == chosen
        assert {name: scene.moves.by_us(name) for name in ALL} == {**NEVER, NOBODYS: [(6, 2)]}
        # Without its autoscaler, what the store says is in force again: once, and by our hand.
        scene.fleet.write(f"{IN_STORE}-hpa")
        scene.m1.kubectl("delete", "hpa", IN_CLUSTER, "-n", scene.namespace)
        scene.put(RETAINED, "busybox:4", app=RETAINED)
        for name in (IN_STORE, IN_CLUSTER, RETAINED):
            scene.has(name, 2)
        assert {name: scene.moves.by_us(name) for name in (IN_CLUSTER, RETAINED, LATER)} == {
            IN_CLUSTER: [(5, 2)], RETAINED: [(4, 2)], LATER: []}  # fmt: skip
        # A controller that has not heard yet that its autoscaler is gone may keep its minimum once more.
        assert scene.moves.by_us(IN_STORE) in ([(7, 2)], [(7, 2), (3, 2)])
