"""A service on real clusters, what it says everywhere, what the API servers hold, and a person who breaks things."""

from __future__ import annotations

import json
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError

from prometheus_client.parser import text_string_to_metric_families

from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import ACK, Daemon, GitRepository
from tests.real_clusters import RealCluster, wait_until
from tests.unit.cli.command_line import run

CLUSTERS = ("m1", "m2", "m3")


class Scene:
    """A fleet with ConfigMaps and a Deployment, a service with its pages, and a person with kubectl."""

    def __init__(self, folder: Path, clusters: ThreeClusters, *options: str, **spec: Any) -> None:
        self.fleet = f"s{uuid.uuid4().hex[:8]}"
        self.namespace = f"ns-{self.fleet}"
        self.clusters: dict[str, RealCluster] = {found.name: found for found in (clusters.m1, clusters.m2, clusters.m3)}
        self.store = GitRepository(folder / "store", self.fleet, CLUSTERS, guards={"maxDeletes": 1}, **spec)
        self.journal = folder / "state/journal.db"
        listen = ("--listen", "127.0.0.1:0", *options)
        self.daemon = Daemon(self.store.folder, clusters.kubeconfig, self.journal, *listen)
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
        self.store.write(f"{name}.yaml", body, self.policy(name, "ConfigMap", "v1", *clusters))

    def put_deployment(self, image: str, *, name: str = "web", cluster: str = "m1", cpu: str = "0") -> None:
        """A Deployment whose rollout is late after two seconds."""
        labels = {"app": name}
        pod = {"containers": [{"name": "main", "image": image, "resources": {"requests": {"cpu": cpu}}}]}
        body = {"apiVersion": "apps/v1", "kind": "Deployment",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"replicas": 1, "selector": {"matchLabels": labels}, "progressDeadlineSeconds": 2,
                         "template": {"metadata": {"labels": labels}, "spec": pod}}}  # fmt: skip
        self.store.write(f"{name}.yaml", body, self.policy(name, "Deployment", "apps/v1", cluster))

    def policy(self, name: str, kind: str, version: str, *clusters: str) -> dict[str, Any]:
        return {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"resourceSelectors": [{"apiVersion": version, "kind": kind, "name": name}],
                         "placement": {"clusterAffinity": {"clusterNames": list(clusters)}},
                         "preserveResourcesOnDeletion": False}}  # fmt: skip

    # What is said

    def status(self) -> dict[str, Any]:
        done = run("status", "--journal", str(self.journal), "-o", "json")
        return json.loads(done.out) if done.code == 0 else {"clusters": [], "troubles": []}

    def page(self, path: str) -> str:
        listening = [json.loads(line) for line in self.daemon.said().splitlines() if '"Listening"' in line]
        with urllib.request.urlopen(f"http://{listening[-1]['obj']}{path}", timeout=180) as answer:
            return str(answer.read().decode())

    def said(self) -> dict[str, dict[str, int]]:
        """The counts of each cluster where `status`, the page and the metrics say the same ones."""
        found = {entry["name"]: counted(entry["objects"]) for entry in self.status()["clusters"]}
        try:
            answer = json.loads(self.page("/status.json"))
        except HTTPError:  # 503: no round has ended yet
            return {}
        shown = {entry["name"]: counted(entry["objects"]) for entry in answer["clusters"]}
        measured: dict[str, dict[str, int]] = {name: {} for name in found}
        for family in text_string_to_metric_families(self.page("/metrics")):
            for sample in family.samples if family.name == "fleet_reconciler_objects" else ():
                measured.setdefault(sample.labels["cluster"], {})[sample.labels["state"]] = int(sample.value)
        agreed = found == shown == {name: counted(counts) for name, counts in measured.items()}
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
        wait_until(lambda: self.said().get(cluster) == counts, f"{cluster} to be {counts}", seen=self.seen)

    def until_trouble(self, cluster: str, name: str, **wanted: str) -> dict[str, Any]:
        """The row of an object once it has these words."""

        def is_said() -> bool:
            row = self.troubles().get((cluster, name), {})
            return all(value in row.get(key, "") for key, value in wanted.items())

        wait_until(is_said, f"{name} in {cluster} to be {wanted}", seen=self.seen)
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

        wait_until(lambda: bool(pods()), "a pod of the new template to have a node")
        waiting = {"reason": "ImagePullBackOff", "message": f'Back-off pulling image "{image}"'}
        container = {"name": "main", "image": image, "imageID": "", "ready": False, "restartCount": 0,
                     "state": {"waiting": waiting}}  # fmt: skip
        not_ready = [{"type": name, "status": "False", "reason": "ContainersNotReady"}
                     for name in ("Ready", "ContainersReady")]  # fmt: skip
        status = {"status": {"phase": "Pending", "containerStatuses": [container], "conditions": not_ready}}
        cluster.kubectl("patch", "pod", pods()[0], "-n", self.namespace, "--subresource=status", "-p",
                        json.dumps(status))  # fmt: skip


def counted(counts: dict[str, int]) -> dict[str, int]:
    return {state: count for state, count in counts.items() if count}


@contextmanager
def running(scene: Scene) -> Iterator[Scene]:
    """The scene with its service at work: four ConfigMaps in m1, one in the others, and a Deployment."""
    m1 = scene.clusters["m1"]
    m1.add_node(node := f"node-{scene.fleet}", cpu="4", memory="4Gi")
    scene.put("a", "1", *CLUSTERS)
    for name in ("b", "c", "d"):
        scene.put(name, "1", "m1")
    scene.put_deployment("main:1")
    scene.store.commit()
    with scene.daemon.start():
        try:
            scene.daemon.says('"Listening"')
            yield scene
        finally:
            m1.remove_node(node)
