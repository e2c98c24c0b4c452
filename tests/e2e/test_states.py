"""What is said of every object, and what the API servers hold, while things are broken in turn.

Source: design#promise-3; design#fights; design#foreign-objects; design#guards.
"""

from __future__ import annotations

import json
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import ACK, Daemon, GitRepository
from tests.real_clusters import RealCluster, wait_until
from tests.unit.cli.command_line import run

pytestmark = pytest.mark.apiserver

CLUSTERS = ("m1", "m2", "m3")


class Scene:
    """A fleet with ConfigMaps and a Deployment, a service with its pages, and a person with kubectl."""

    def __init__(self, folder: Path, clusters: ThreeClusters) -> None:
        self.fleet = f"s{uuid.uuid4().hex[:8]}"
        self.namespace = f"ns-{self.fleet}"
        self.clusters: dict[str, RealCluster] = {found.name: found for found in (clusters.m1, clusters.m2, clusters.m3)}
        self.store = GitRepository(folder / "store", self.fleet, CLUSTERS, guards={"maxDeletes": 1})
        self.journal = folder / "state/journal.db"
        self.daemon = Daemon(self.store.folder, clusters.kubeconfig, self.journal, "--listen", "127.0.0.1:0")
        self.wanted: dict[tuple[str, str], str] = {}

    # The store

    def put(self, name: str, value: str, *clusters: str) -> None:
        """A ConfigMap and its policy; without clusters they go."""
        self.wanted = {copy: found for copy, found in self.wanted.items() if copy[1] != name}
        if not clusters:
            self.store.write(f"{name}.yaml")
            return
        self.wanted |= {(cluster, name): value for cluster in clusters}
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": self.namespace},
                "data": {"value": value}}  # fmt: skip
        self.store.write(f"{name}.yaml", body, self._policy(name, "ConfigMap", "v1", *clusters))

    def put_deployment(self, image: str) -> None:
        """The Deployment web in m1."""
        labels = {"app": "web"}
        pod = {"containers": [{"name": "main", "image": image}]}
        body = {"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": "web", "namespace": self.namespace},
                "spec": {"replicas": 1, "selector": {"matchLabels": labels},
                         "template": {"metadata": {"labels": labels}, "spec": pod}}}  # fmt: skip
        self.store.write("web.yaml", body, self._policy("web", "Deployment", "apps/v1", "m1"))

    def _policy(self, name: str, kind: str, version: str, *clusters: str) -> dict[str, Any]:
        return {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"resourceSelectors": [{"apiVersion": version, "kind": kind, "name": name}],
                         "placement": {"clusterAffinity": {"clusterNames": list(clusters)}},
                         "preserveResourcesOnDeletion": False}}  # fmt: skip

    # What is said

    def status(self) -> dict[str, Any]:
        done = run("status", "--journal", str(self.journal), "-o", "json")
        return json.loads(done.out) if done.code == 0 else {"clusters": [], "troubles": []}

    def page(self, path: str) -> str:
        """What a page of the service answers."""
        listening = [json.loads(line) for line in self.daemon.text().splitlines() if '"Listening"' in line]
        with urllib.request.urlopen(f"http://{listening[-1]['obj']}{path}", timeout=10) as answer:
            return str(answer.read().decode())

    def said(self) -> dict[str, dict[str, int]]:
        """The counts of each cluster where `status`, the page and the metrics say the same ones."""
        found = {entry["name"]: _some(entry["objects"]) for entry in self.status()["clusters"]}
        shown = {entry["name"]: _some(entry["objects"]) for entry in json.loads(self.page("/status.json"))["clusters"]}
        measured: dict[str, dict[str, int]] = {name: {} for name in found}
        for family in text_string_to_metric_families(self.page("/metrics")):
            for sample in family.samples if family.name == "fleet_reconciler_objects" else ():
                measured.setdefault(sample.labels["cluster"], {})[sample.labels["state"]] = int(sample.value)
        agreed = found == shown == {name: _some(counts) for name, counts in measured.items()}
        return found if agreed else {}

    def troubles(self) -> dict[tuple[str, str], dict[str, Any]]:
        """By cluster and name what is not Synced and Healthy."""
        return {(entry["cluster"], entry["resource"]["name"]): entry for entry in self.status()["troubles"]}

    # What there is

    def held_by(self, cluster: str) -> dict[str, str]:
        """The values of our ConfigMaps, as the API server has them."""
        arguments = ("get", "configmaps", "-n", self.namespace, "-l", f"fleet.reconciler/fleet={self.fleet}")
        found = json.loads(self.clusters[cluster].kubectl(*arguments, "-o", "json"))["items"]
        return {body["metadata"]["name"]: body["data"]["value"] for body in found}

    def check(self, *away: str) -> None:
        """No ConfigMap is called Synced that is not as the store says, and none is left out that is."""
        troubled = {copy for copy, entry in self.troubles().items() if entry["sync"] != "Synced"}
        for cluster in (name for name in CLUSTERS if name not in away):
            held = self.held_by(cluster)
            for (_, name), value in ((copy, value) for copy, value in self.wanted.items() if copy[0] == cluster):
                is_synced = (cluster, name) not in troubled
                assert is_synced <= (held.get(name) == value), f"{name} in {cluster} is called Synced and is not"
            kept = held.keys() - {name for found, name in self.wanted if found == cluster}
            assert all((cluster, name) in troubled for name in kept), f"{kept} is still there, and nothing says so"

    def until(self, cluster: str, counts: dict[str, int]) -> None:
        """Return once all that tells says this of a cluster."""
        wait_until(lambda: self.said().get(cluster) == counts, f"{cluster} to be {counts}", 60, self.seen)

    def until_trouble(self, cluster: str, name: str, **wanted: str) -> dict[str, Any]:
        """The row of an object once it has these words."""

        def is_said() -> bool:
            row = self.troubles().get((cluster, name), {})
            return all(value in row.get(key, "") for key, value in wanted.items())

        wait_until(is_said, f"{name} in {cluster} to be {wanted}", 60, self.seen)
        return self.troubles()[cluster, name]

    def seen(self) -> str:
        live = self.clusters["m1"].kubectl("get", "deployments,pods", "-n", self.namespace, "-o", "wide")
        return f"{self.said()} {self.troubles()}\n{live}\n{self.daemon.text()[-2500:]}"

    # What breaks

    def by_hand(self, cluster: str, name: str, value: str) -> None:
        self.clusters[cluster].kubectl("patch", "configmap", name, "-n", self.namespace, "--field-manager=by-hand",
                                       "-p", json.dumps({"data": {"value": value}}))  # fmt: skip

    def cannot_pull(self, image: str) -> None:
        """As a kubelet says it of a pod with this image."""
        cluster = self.clusters["m1"]

        def pods() -> list[str]:
            found = json.loads(cluster.kubectl("get", "pods", "-n", self.namespace, "-o", "json"))["items"]
            return [body["metadata"]["name"] for body in found
                    if body["spec"]["containers"][0]["image"] == image and body["spec"].get("nodeName")]  # fmt: skip

        wait_until(lambda: bool(pods()), "a pod of the new template to have a node", 60)
        waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
        container = {"name": "main", "image": image, "imageID": "", "ready": False, "restartCount": 0,
                     "state": {"waiting": waiting}}  # fmt: skip
        not_ready = [{"type": name, "status": "False", "reason": "ContainersNotReady"}
                     for name in ("Ready", "ContainersReady")]  # fmt: skip
        status = {"status": {"phase": "Pending", "containerStatuses": [container], "conditions": not_ready}}
        cluster.kubectl("patch", "pod", pods()[0], "-n", self.namespace, "--subresource=status", "-p",
                        json.dumps(status))  # fmt: skip


def _some(counts: dict[str, int]) -> dict[str, int]:
    return {state: count for state, count in counts.items() if count}


@pytest.fixture
def scene(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Scene]:
    found = Scene(tmp_path, three_clusters)
    m1 = three_clusters.m1
    m1.add_node(node := f"node-{found.fleet}", cpu="4", memory="4Gi")
    found.put("a", "1", *CLUSTERS)
    for name in ("b", "c", "d"):
        found.put(name, "1", "m1")
    found.put_deployment("main:1")
    found.store.commit()
    with found.daemon.start():
        try:
            found.daemon.says('"Listening"')
            yield found
        finally:
            m1.remove_node(node)


def test_what_is_said_is_what_is(scene: Scene) -> None:
    scene.until("m1", {"synced": 6})  # a to d, web, and the namespace
    scene.until("m2", {"synced": 2})
    wait_until(lambda: not scene.troubles(), "all to be well", 60, scene.seen)
    scene.check()
    for breaks in (a_roll_out_is_stuck, a_foreign_object_is_in_the_way, two_writers_fight, a_guard_holds_deletions,
                   a_person_suspends_a_cluster, a_cluster_is_away, a_cluster_leaves_the_store):  # fmt: skip
        breaks(scene)


def a_roll_out_is_stuck(scene: Scene) -> None:
    """In sync, and green nowhere: its image cannot be pulled."""
    scene.put_deployment("no.such/image:1")
    scene.store.commit()
    scene.cannot_pull("no.such/image:1")
    why = "its image cannot be pulled (ImagePullBackOff: "
    scene.until_trouble("m1", "web", sync="Synced", health="Degraded", healthWhy=why)
    scene.daemon.says("HealthDegraded")
    assert 'object_health{cluster="m1",health="Degraded"} 1.0' in scene.page("/metrics")


def a_foreign_object_is_in_the_way(scene: Scene) -> None:
    """Somebody else made one of that name."""
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e", "namespace": scene.namespace},
               "data": {"value": "theirs"}}  # fmt: skip
    scene.clusters["m2"].apply(foreign)
    scene.put("e", "1", "m2")
    scene.store.commit()
    scene.until("m2", {"synced": 2, "refused": 1})
    scene.daemon.says("ObjectRefused")
    scene.check()


def two_writers_fight(scene: Scene) -> None:
    """While we hold back, what they wrote stands, and nothing calls it Synced."""
    for number in range(20):
        if "FightDetected" in scene.daemon.text():
            break
        scene.by_hand("m1", "b", f"theirs-{number}")
        wait_until(lambda: scene.held_by("m1")["b"] == "1" or "FightDetected" in scene.daemon.text(), "a heal", 60)
    scene.by_hand("m1", "b", "theirs at last")
    row = scene.until_trouble("m1", "b", state="fought")
    assert "by-hand" in row["why"]
    assert scene.held_by("m1")["b"] == "theirs at last"
    scene.check()


def a_guard_holds_deletions(scene: Scene) -> None:
    """Two at once are one too many."""
    for name in ("c", "d"):
        scene.put(name, "")
    scene.store.commit()
    assert scene.until_trouble("m1", "c", state="held", by="guard")["sync"] == "OutOfSync"
    scene.check()


def a_person_suspends_a_cluster(scene: Scene) -> None:
    """What is due there waits for that person."""
    done = run("suspend", "cluster", "m3", "--reason", "freeze", "--journal", str(scene.journal))
    assert done.code == 0, done.err
    scene.put("a", "2", *CLUSTERS)
    scene.store.commit()
    assert "freeze" in scene.until_trouble("m3", "a", state="held", by="suspended")["why"]
    scene.until("m2", {"synced": 2, "refused": 1})
    assert (scene.held_by("m3")["a"], scene.held_by("m2")["a"]) == ("1", "2")
    scene.check()


def a_cluster_is_away(scene: Scene) -> None:
    """Nobody knows anything of it, and everybody says so."""
    scene.clusters["m3"].stop()
    try:
        scene.until("m3", {"unknown": 2})
        (away,) = [entry for entry in scene.status()["clusters"] if entry["name"] == "m3"]
        assert (away["up"], bool(away["why"]), bool(away["lastSuccess"])) == (False, True, True)
        scene.check("m3")
    finally:
        scene.clusters["m3"].start()
    scene.until("m3", {"synced": 1, "held": 1})


def a_cluster_leaves_the_store(scene: Scene) -> None:
    """What it holds is left, and is not forgotten."""
    scene.store.write("clusters/m3.yaml")
    scene.put("a", "2", "m1", "m2")
    scene.store.commit()
    scene.until("m3", {"left": 2})
    assert scene.held_by("m3") == {"a": "1"}
    assert yaml.safe_load(run("status", "--journal", str(scene.journal), "-o", "yaml").out) == scene.status()
