"""The page about Kubernetes, typed in from an empty home, on two clusters; what it leads to is run as in its pod."""

from __future__ import annotations

import json
import os
import shutil
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.pod_process import PodProcess
from tests.deploy.rendered import DEPLOY, Mounts, kustomized
from tests.docs.pages import blocks
from tests.docs.shell import Reader
from tests.real_clusters import RealCluster, RealClusters, wait_until

pytestmark = pytest.mark.apiserver

PAGE = "docs/how-to/kubernetes.md"
NAMESPACE = "fleet-reconciler"
CONTEXTS = {"m1": "management", "m2": "hangzhou"}


@pytest.fixture
def clusters(real_clusters: RealClusters) -> Iterator[tuple[RealCluster, RealCluster]]:
    """The management cluster and a member, without anything of the page before and after."""
    found = real_clusters.create("m1"), real_clusters.create("m2")
    _forget(found)
    yield found
    _forget(found)


def _forget(clusters: tuple[RealCluster, RealCluster]) -> None:
    for cluster in clusters:
        cluster.kubectl("delete", "namespace", NAMESPACE, "--ignore-not-found", "--timeout=120s")
        cluster.kubectl("delete", "clusterrole,clusterrolebinding", "fleet-reconciler-shop", "--ignore-not-found")
        cluster.kubectl("delete", "configmap", "fleet-shop", "-n", "fleet-system", "--ignore-not-found")


@pytest.fixture
def reader(
    tmp_path: Path, clusters: tuple[RealCluster, RealCluster], real_clusters: RealClusters, kubernetes_binaries: Path
) -> Reader:
    config = json.loads(real_clusters.merged_kubeconfig("m1", "m2").read_text())
    config["contexts"] = [{**found, "name": CONTEXTS[found["name"]]} for found in config["contexts"]]
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps(config))
    kubeconfig.chmod(0o600)
    path = f"{kubernetes_binaries}{os.pathsep}{os.environ['PATH']}"
    found = Reader(tmp_path, {"KUBECONFIG": str(kubeconfig)}, more=("kubectl", "openssl"), path=path)
    shutil.copytree(DEPLOY, tmp_path / "deploy/kubernetes")
    return found


def test_the_page_leads_to_a_pod_that_reaches_both_clusters_with_the_rights_that_it_needs(
    reader: Reader, clusters: tuple[RealCluster, RealCluster], kubernetes_binaries: Path
) -> None:
    management, _ = clusters
    assert reader.follow(blocks(PAGE)) >= 20
    labels = management.get("namespace", NAMESPACE)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted", "the role leaves the labels alone"
    assert management.get("serviceaccount", NAMESPACE, "-n", NAMESPACE)["automountServiceAccountToken"] is False
    wait_until(lambda: _is_scaled(management), "the pod to be there")

    objects = kustomized(kubernetes_binaries, reader.folder / "management")
    mounts = Mounts(reader.folder / "root", _secrets(management))
    mounts.files["kube-root-ca.crt"] = {
        "ca.crt": management.get("configmap", "kube-root-ca.crt", "-n", NAMESPACE)["data"]["ca.crt"].encode()
    }
    token = management.kubectl("create", "token", NAMESPACE, "-n", NAMESPACE)
    mounts.files["serviceAccountToken"] = {"token": token.encode()}
    url = json.loads(management.kubeconfig.read_text())["clusters"][0]["cluster"]["server"].removeprefix("https://")
    host, port = url.rsplit(":", 1)
    with PodProcess(objects, "StatefulSet", mounts, reader.folder / "claims") as pod:
        assert pod.environment["RECONCILER_STORE"] == "https://git.example.com/platform/fleet.git"
        pod.container["args"] = ["doctor"]
        store = {"RECONCILER_STORE": str(reader.folder / "fleet")}
        code = pod.start(**store, KUBERNETES_SERVICE_HOST=host, KUBERNETES_SERVICE_PORT=port).ended()
        assert code == 0, pod.text()
        assert "management: reached as the account of this pod" in pod.text()
        assert all(name in pod.text() for name in CONTEXTS.values())


def _is_scaled(cluster: RealCluster) -> bool:
    found = cluster.kubectl("get", "pod", "fleet-reconciler-0", "-n", NAMESPACE, "-o", "name", "--ignore-not-found")
    return bool(found.strip())


def _secrets(cluster: RealCluster) -> dict[str, dict[str, bytes]]:
    """Return the content of the Secrets that the page made."""
    found: list[dict[str, Any]] = cluster.get("secrets", "-n", NAMESPACE)["items"]
    return {
        secret["metadata"]["name"]: {key: b64decode(text) for key, text in secret["data"].items()} for secret in found
    }
