"""Taking a mark of ours off an object is the emergency brake: it is let go at once. The audit log is the referee."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.journal import Journal
from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import Daemon
from tests.e2e.fleet_on_clusters import FleetOnClusters, writes_to
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

LABEL, ANNOTATION, BOTH, NONE = "label", "annotation", "both", "none"
BRAKED = (LABEL, ANNOTATION, BOTH)


class Scene:
    """A ConfigMap for each way of taking marks off, and one that keeps them."""

    def __init__(self, folder: Path, clusters: ThreeClusters) -> None:
        self.fleet = FleetOnClusters(folder, clusters)
        self.m1: RealCluster = clusters.m1
        self.put("1")

    def put(self, value: str) -> None:
        for name in (*BRAKED, NONE):
            policy = self.fleet.policy(name, "ConfigMap", clusters=["m1"], keep=False)
            self.fleet.write(name, self.fleet.config_map(name, value=value), policy)

    def take_templates_out(self) -> None:
        for name in (*BRAKED, NONE):
            self.fleet.write(name, self.fleet.policy(name, "ConfigMap", clusters=["m1"], keep=False))

    def pull_the_brake(self) -> int:
        """The position in the audit log from which on nothing of ours may follow."""
        for name, keys in ((LABEL, ["label"]), (ANNOTATION, ["annotate"]), (BOTH, ["label", "annotate"])):
            for verb in keys:
                key = "fleet.reconciler/fleet-" if verb == "label" else "fleet.reconciler/owner-"
                self.m1.kubectl(verb, "configmap", name, "-n", self.fleet.namespace, key)
        return self.m1.mark()

    def value(self, name: str) -> str | None:
        live = self.fleet.live("m1", "configmap", name)
        return None if live is None else str(live["data"]["value"])

    def written(self, since: int) -> set[str]:
        """Names of the ConfigMaps that we wrote or tried to write."""
        return {line.split()[2] for line in writes_to(self.m1, since)} & {*BRAKED, NONE}


@pytest.fixture
def scene(tmp_path: Path, three_clusters: ThreeClusters) -> Scene:
    return Scene(tmp_path, three_clusters)


def test_the_service_leaves_alone_what_lost_a_mark_and_says_so(scene: Scene) -> None:
    access = scene.fleet.access
    assert access.kubeconfig is not None
    assert access.journal is not None
    with Daemon(scene.fleet.store, access.kubeconfig, access.journal).start() as daemon:
        wait_until(lambda: [scene.value(name) for name in (*BRAKED, NONE)] == ["1"] * 4, "the ConfigMaps to be created")
        since = scene.pull_the_brake()
        wait_until(lambda: let_go(access.journal) == set(BRAKED), "the status to name them", seen=daemon.text)
        scene.put("2")
        wait_until(lambda: scene.value(NONE) == "2", "the edit to arrive")
        assert daemon.stop() == 0
        daemon.start()
        scene.take_templates_out()
        wait_until(lambda: scene.value(NONE) is None, "the deletion to arrive")
        assert scene.written(since) == {NONE}
        assert {scene.value(name) for name in BRAKED} == {"1"}


def let_go(path: Path | None) -> set[str]:
    """Names of the objects that the picture of the service reports as let go."""
    assert path is not None
    with Journal.open(path, read_only=True) as journal:
        problems = (journal.state() or {}).get("problems", [])
    found = [problem["message"] for problem in problems if problem["code"] == "object-let-go"]
    return {message.removeprefix("m1: ").split()[1].partition("/")[2] for message in found}
