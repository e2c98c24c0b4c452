"""A backup of etcd that is put back under the running service, on a real cluster.

Source: design#restored-cluster.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.journal import Journal
from tests.e2e.daemon_process import ACK, Daemon, GitRepository
from tests.real_clusters import RealCluster, RealClusters, wait_until

pytestmark = pytest.mark.apiserver

NAME = "restored"
"""A cluster of its own: the others are shared."""


def documents(name: str, value: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """A ConfigMap, and the policy that takes it with itself when it leaves."""
    named = {"name": name, "namespace": "default"}
    return (
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": named, "data": {"value": value}},
        {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": named,
         "spec": {"resourceSelectors": [{"apiVersion": "v1", "kind": "ConfigMap", "name": name}],
                  "placement": {"clusterAffinity": {"clusterNames": [NAME]}},
                  "preserveResourcesOnDeletion": False}},
    )  # fmt: skip


def values(cluster: RealCluster) -> dict[str, str]:
    """The ConfigMaps of ours by name."""
    items = cluster.get("configmaps", "--namespace", "default")["items"]
    return {found["metadata"]["name"]: found["data"]["value"] for found in items if "value" in found.get("data", {})}


def state_of(daemon: Daemon) -> dict[str, Any]:
    with Journal.open(daemon.journal, read_only=True) as journal:
        return dict(journal.state() or {})


def test_a_backup_that_is_put_back_is_noticed_and_told_once(tmp_path: Path, real_clusters: RealClusters) -> None:
    cluster = real_clusters.create(NAME)
    kubeconfig = real_clusters.merged_kubeconfig(NAME)
    store = GitRepository(tmp_path / "store", "restored", (NAME,))
    for name in ("app", "left"):
        store.write(f"{name}.yaml", *documents(name, "1"))
    store.commit()
    with Daemon(store.folder, kubeconfig, tmp_path / "state/journal.db").start() as daemon:
        wait_until(lambda: values(cluster) == {"app": "1", "left": "1"}, "the first commit")
        cluster.stop()
        cluster.keep_backup(tmp_path / "backup")
        cluster.start()
        store.write("app.yaml", *documents("app", "2"))
        store.write("later.yaml", *documents("later", "1"))
        store.write("left.yaml")
        store.commit()
        wait_until(lambda: values(cluster) == {"app": "2", "later": "1"}, "the commit after the backup")
        cluster.stop()
        cluster.put_back(tmp_path / "backup")
        cluster.start()
        daemon.says("ClusterWentBack")
        wait_until(lambda: values(cluster) == {"app": "2", "left": "1", "later": "1"}, "what is wanted, and no less")
        wait_until(
            lambda: {found["code"] for found in state_of(daemon)["problems"]} >= {"cluster-went-back", "not-deleted"},
            "status to say what happened, and what is back",
        )
        assert [found["resource"]["name"] for found in state_of(daemon)["troubles"]] in ([], ["left"])
        assert daemon.text().count('"ClusterWentBack"') == 1
        assert daemon.stop() == 0
