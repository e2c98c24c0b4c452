"""The processes of the manifests on real API servers: what they are told is enough, and they live as pods do.

Nothing runs containers here: the process is started with the arguments, variables and files that its pod would have.
"""

from __future__ import annotations

import json
import socket
import ssl
import uuid
from collections.abc import Iterator
from http.client import HTTPSConnection
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.deploy.pod_process import PodProcess
from tests.deploy.relay import Relay
from tests.deploy.rendered import Mounts, kustomized, one, own
from tests.e2e.daemon_process import ACK, CLUSTER, GitRepository
from tests.program import run_text
from tests.real_clusters import RealCluster, wait_until
from tests.unit.kube.test_rotation import certificate

pytestmark = pytest.mark.apiserver

TOKEN = "0123456789abcdef"
ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


class Scene:
    """A store in Git with one ConfigMap for one cluster, and the manifests of somebody who follows it."""

    def __init__(self, folder: Path, cluster: RealCluster, binaries: Path, *components: str) -> None:
        self.folder, self.cluster = folder, cluster
        self.fleet = f"d{uuid.uuid4().hex[:8]}"
        self.namespace, self.pods = f"ns-{self.fleet}", f"pods-{self.fleet}"
        self.store = GitRepository(folder / "store", self.fleet, ())
        annotations = {"fleet.reconciler/context": "in-cluster"} if "in-cluster" in components else {}
        metadata = {"name": cluster.name, "annotations": annotations}
        self.store.write("cluster.yaml", {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": metadata})
        policy = {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap"}],
                  "placement": {"clusterAffinity": {"clusterNames": [cluster.name]}}}  # fmt: skip
        named = {"name": "settings", "namespace": self.namespace}
        self.store.write(
            "policy.yaml", {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": named, "spec": policy}
        )
        self.wish("1")
        url = f"file://{self.store.folder}"
        mine = own(folder, *components, namespace=self.pods, RECONCILER_STORE=url, RECONCILER_REV="main",
                   RECONCILER_POLL="0.5", LISTEN_NAMES="fleet.example.com")  # fmt: skip
        self.objects = kustomized(binaries, mine)
        files = {"fleet-reconciler-credentials": {"git-token": b"unused"},
                 "fleet-reconciler-listen-token": {"listen-token": TOKEN.encode()}}  # fmt: skip
        self.mounts = Mounts(folder / "root", files)
        self.claims = folder / "claims"

    def wish(self, value: str) -> None:
        metadata = {"name": "settings", "namespace": self.namespace}
        self.store.write(
            "settings.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": value}}
        )
        self.store.commit()

    def value(self) -> str:
        """Return the value in the cluster; empty: none."""
        found = self.cluster.kubectl(
            "get", "configmap", "settings", "-n", self.namespace, "-o", "json", "--ignore-not-found"
        )
        return str(json.loads(found)["data"]["a"]) if found else ""

    def process(self, kind: str = "StatefulSet") -> PodProcess:
        """A pod's process: the next one of a StatefulSet has the volume of the one before."""
        return PodProcess(self.objects, kind, self.mounts, self.claims)

    def comes(self, value: str, process: PodProcess) -> None:
        """Return once the cluster has the value."""
        wait_until(lambda: self.value() == value, f"{value} to come", seen=process.text)

    def forget(self) -> None:
        kubectl = self.cluster.kubectl
        kubectl("delete", "namespace", self.namespace, self.pods, "--ignore-not-found", "--wait=false")
        kubectl("delete", "configmap", f"fleet-{self.fleet}", "-n", "fleet-system", "--ignore-not-found")
        kubectl("delete", "clusterrolebinding,clusterrole", f"fleet-reconciler-{self.fleet}", "--ignore-not-found")


@pytest.fixture
def scene(tmp_path: Path, real_cluster: RealCluster, kubernetes_binaries: Path) -> Iterator[Scene]:
    """A fleet whose clusters are in a kubeconfig."""
    found = Scene(tmp_path, real_cluster, kubernetes_binaries)
    found.mounts.files["fleet-reconciler-credentials"]["kubeconfig"] = real_cluster.kubeconfig.read_bytes()
    yield found
    found.forget()


def test_a_pod_follows_the_store_answers_its_probes_and_ends_in_time(scene: Scene) -> None:
    with scene.process() as pod:
        pod.start()
        wait_until(lambda: pod.probe("startupProbe") == 200, "the pod to start", seen=pod.text)
        pod.becomes_ready()
        scene.comes("1", pod)
        assert pod.probe("livenessProbe") == 200
        assert (pod.asks("/metrics"), pod.asks("/metrics", BEARER)) == (401, 200)
        names = [f"fleet-reconciler.{scene.pods}.svc:9180", "fleet-reconciler", "fleet.example.com", "10.1.2.3:9180"]
        assert [pod.asks("/", {**BEARER, "Host": name}) for name in names] == [200] * 4
        assert pod.asks("/", {**BEARER, "Host": "rebound.example"}) == 421

        with PodProcess(scene.objects, "StatefulSet", scene.mounts, scene.claims) as second:
            assert second.start().ended() == 1
            assert "writes this journal" in second.text()
        assert pod.probe("readinessProbe") == 200
        assert pod.evict() == 0
    assert "stopped" in pod.text()
    with scene.process() as successor:
        scene.wish("2")
        scene.comes("2", successor.start())


def test_what_hangs_does_not_keep_a_pod_beyond_its_grace(scene: Scene) -> None:
    """A second cluster takes every connection and answers nothing, so that a round is under way at any time."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = json.loads(scene.cluster.kubeconfig.read_text())
        address = f"https://127.0.0.1:{silent.getsockname()[1]}"
        config["clusters"].append({"name": "silent", "cluster": {"server": address}})
        config["contexts"].append({"name": "silent", "context": {"cluster": "silent"}})
        scene.mounts.files["fleet-reconciler-credentials"]["kubeconfig"] = json.dumps(config).encode()
        scene.store.write("silent.yaml", {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": "silent"}})
        scene.store.commit()
        with scene.process() as pod:
            pod.start()
            silent.settimeout(180)
            connection, _ = silent.accept()
            assert pod.evict() == 0, pod.text()
            connection.close()


def test_a_lost_volume_is_made_again_by_the_job_and_nothing_in_the_clusters_is_lost(scene: Scene) -> None:
    with scene.process() as pod:
        pod.start()
        scene.comes("1", pod)
        assert pod.evict() == 0
    scene.claims = scene.folder / "another"
    scene.mounts.root = scene.folder / "new-root"
    since = scene.cluster.mark()
    with scene.process() as pod:
        assert pod.start().ended() == 1
        assert "is held by journal" in pod.text()
        assert "journal rebuild --takeover" in pod.text()
    with scene.process("CronJob") as job:
        assert job.start().ended() == 0, job.text()
    with scene.process() as pod:
        scene.wish("2")
        scene.comes("2", pod.start())
    deleted = [event for event in scene.cluster.writes(since, scene.fleet) if event["verb"] == "delete"]
    assert deleted == []


class OwnCluster(Scene):
    """A fleet whose only cluster is the one that the pod runs in. Its API server is reached through a relay."""

    def __init__(self, folder: Path, cluster: RealCluster, binaries: Path) -> None:
        super().__init__(folder, cluster, binaries, "in-cluster")
        certificate(folder, "first", 1)
        certificate(folder, "second", 2)
        cluster.apply(one(self.objects, "Namespace"), one(self.objects, "ServiceAccount"))
        subject = f"ServiceAccount:{self.pods}/fleet-reconciler"
        command = ("doctor", self.store.folder, "--rbac", "full", "--subject", subject)
        role = run_text(*command, environment={"HOME": str(folder)})
        cluster.kubectl("apply", "-f", "-", stdin=role.stdout)
        self.mounts.files["kube-root-ca.crt"] = {"ca.crt": (folder / "first.crt").read_bytes()}
        self.mounts.files["serviceAccountToken"] = {"token": self.token("one")}
        url = urlsplit(json.loads(cluster.kubeconfig.read_text())["clusters"][0]["cluster"]["server"])
        self.relay = Relay(str(url.hostname), int(url.port or 443))

    def token(self, name: str) -> bytes:
        """A token of the pods' account that ends when the Secret of a name is deleted."""
        kubectl = self.cluster.kubectl
        kubectl("create", "secret", "generic", name, "-n", self.pods)
        bound = ("--bound-object-kind", "Secret", "--bound-object-name", name)
        return kubectl("create", "token", "fleet-reconciler", "-n", self.pods, "--duration", "10m", *bound).encode()

    def mounts_account(self, pod: PodProcess) -> None:
        """Have the files of the account as they are now in the pod, as the kubelet does."""
        (volume,) = [volume["projected"] for volume in pod.pod["volumes"] if volume["name"] == "account"]
        self.mounts.project(volume, self.mounts.path(ACCOUNT))

    def is_taken(self, token: bytes) -> bool:
        """Return whether the API server still accepts the token."""
        context = ssl.create_default_context(cadata=(self.folder / "first.crt").read_text())
        connection = HTTPSConnection("127.0.0.1", self.relay.port, context=context, timeout=180)
        try:
            connection.request("GET", "/api", headers={"Authorization": f"Bearer {token.decode().strip()}"})
            return connection.getresponse().status != 401
        finally:
            connection.close()


@pytest.fixture
def own_cluster(tmp_path: Path, real_cluster: RealCluster, kubernetes_binaries: Path) -> Iterator[OwnCluster]:
    found = OwnCluster(tmp_path, real_cluster, kubernetes_binaries)
    with found.relay:
        found.relay.serve(tmp_path / "first.crt", tmp_path / "first.key")
        yield found
    found.forget()


def test_tokens_and_authorities_of_the_account_are_replaced_under_a_running_pod(own_cluster: OwnCluster) -> None:
    scene, kubelet = own_cluster, {"KUBERNETES_SERVICE_HOST": "127.0.0.1"}
    kubelet["KUBERNETES_SERVICE_PORT"] = str(scene.relay.port)
    with scene.process() as pod:
        scene.comes("1", pod.start(**kubelet))
        # The files are gone for a while.
        data = scene.mounts.path(ACCOUNT) / "..data"
        data.rename(data.with_name("..away"))
        scene.wish("2")
        scene.comes("2", pod)

        # The next token, and the one of before ends.
        before = scene.mounts.files["serviceAccountToken"]["token"]
        scene.mounts.files["serviceAccountToken"]["token"] = scene.token("two")
        scene.mounts_account(pod)
        scene.cluster.kubectl("delete", "secret", "one", "-n", scene.pods)
        wait_until(lambda: not scene.is_taken(before), "the token of before to end")
        scene.wish("3")
        scene.comes("3", pod)

        # Another authority: first at the server, and where the pod looks for it only when that was told.
        scene.relay.serve(scene.folder / "second.crt", scene.folder / "second.key")
        scene.wish("4")
        wait_until(lambda: "certificate verify failed" in pod.text(), "the lack to be told", seen=pod.text)
        assert (scene.value(), pod.probe("livenessProbe"), pod.probe("readinessProbe")) == ("3", 200, 200)
        scene.mounts.files["kube-root-ca.crt"]["ca.crt"] = (scene.folder / "second.crt").read_bytes()
        scene.mounts_account(pod)
        scene.comes("4", pod)
        for token in (before, scene.mounts.files["serviceAccountToken"]["token"]):
            assert token.decode().strip() not in pod.text()
        assert pod.evict() == 0


def test_doctor_in_the_pod_tells_how_the_cluster_is_reached_and_that_nothing_is_lacking(
    own_cluster: OwnCluster,
) -> None:
    with own_cluster.process() as pod:
        command = ["doctor", f"file://{own_cluster.store.folder}", "--rev", "main"]
        pod.container["args"] = command
        code = pod.start(
            KUBERNETES_SERVICE_HOST="127.0.0.1", KUBERNETES_SERVICE_PORT=str(own_cluster.relay.port)
        ).ended()
        assert code == 0, pod.text()
        assert "reached as the account of this pod, with what is in" in pod.text()
        assert "can read it" not in pod.text(), "modes of mounted files are no risk"
