"""Pods that a quota refuses are told of every kind of workload, and no longer once they are made.

A Deployment says it by a condition, all others only by events of their controllers.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.e2e.daemon_process import ACK, Daemon, GitRepository
from tests.real_clusters import RealCluster, wait_until
from tests.unit.cli.command_line import run

pytestmark = pytest.mark.apiserver

NOT_YET: list[dict[str, Any]] = [{"resource": {"kind": "nothing is told yet"}, "health": ""}]
KINDS = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "DaemonSet": "apps/v1", "Job": "batch/v1"}


class Limited(NamedTuple):
    """A cluster with a namespace in which a quota lets no pod be made."""

    kubeconfig: Path
    node: str
    namespace: str
    lift: Callable[[], None]


def quota(namespace: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none", "namespace": namespace},
            "spec": {"hard": {"pods": "0"}}}  # fmt: skip


@pytest.fixture
def limited(real_cluster: RealCluster) -> Iterator[Limited]:
    namespace = real_cluster.new_namespace()
    real_cluster.add_node(node := f"node-{namespace}")
    real_cluster.apply(quota(namespace))
    wait_until(lambda: bool(real_cluster.get("quota", "none", "-n", namespace).get("status", {}).get("used")),
               "the use of the quota to be counted")  # fmt: skip

    def lift() -> None:
        real_cluster.kubectl("delete", "quota", "none", "-n", namespace)

    yield Limited(real_cluster.kubeconfig, node, namespace, lift)
    real_cluster.remove_node(node)


def workload(kind: str, limited: Limited) -> dict[str, Any]:
    labels = {"app": kind.lower()}
    pod = {"containers": [{"name": "main", "image": "busybox:1"}],
           "nodeSelector": {"kubernetes.io/hostname": limited.node}}  # fmt: skip
    spec: dict[str, Any] = {"template": {"metadata": {"labels": labels}, "spec": pod}}
    if kind == "Job":
        pod["restartPolicy"] = "Never"
        spec |= {"parallelism": 2, "completions": 2}
    else:
        spec["selector"] = {"matchLabels": labels}
    if kind in ("Deployment", "StatefulSet"):
        spec["replicas"] = 2
    return {"apiVersion": KINDS[kind], "kind": kind, "spec": spec,
            "metadata": {"name": kind.lower(), "namespace": limited.namespace}}  # fmt: skip


def rule(kind: str, namespace: str) -> dict[str, Any]:
    return {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": {"name": kind.lower(), "namespace": namespace},
            "spec": {"resourceSelectors": [{"apiVersion": KINDS[kind], "kind": kind}],
                     "placement": {"clusterAffinity": {"clusterNames": ["m1"]}}}}  # fmt: skip


def test_pods_that_a_quota_refuses_are_told_of_every_kind(tmp_path: Path, limited: Limited) -> None:
    store = GitRepository(tmp_path / "store", f"q{uuid.uuid4().hex[:8]}", ("m1",))
    for kind in KINDS:
        store.write(f"{kind}.yaml", workload(kind, limited), rule(kind, limited.namespace))
    store.commit()
    journal = tmp_path / "state/journal.db"

    def troubles() -> dict[str, dict[str, Any]]:
        done = run("status", "--journal", str(journal), "-o", "json")
        found = json.loads(done.out)["troubles"] if done.code in (0, 1) and done.out else NOT_YET
        return {entry["resource"]["kind"]: entry for entry in found}

    def told() -> dict[str, tuple[str, bool]]:
        return {kind: (found["health"], "exceeded quota: none" in found.get("healthWhy", ""))
                for kind, found in troubles().items()}  # fmt: skip

    with Daemon(store.folder, limited.kubeconfig, journal).start() as daemon:
        health = dict.fromkeys(KINDS, "Degraded")
        expected = {kind: (health[kind], True) for kind in KINDS}
        wait_until(
            lambda: told() == expected, "all four to be told", seen=lambda: f"{troubles()} {daemon.text()[-3000:]}"
        )
        assert "Error creating" not in str(troubles())
        wide = run("status", "-o", "wide", "--journal", str(journal))
        assert wide.out.count("exceeded quota: none") == len(KINDS), wide
        limited.lift()
        wait_until(lambda: not troubles(), "all to be well", 240, lambda: f"{troubles()} {daemon.text()[-3000:]}")
