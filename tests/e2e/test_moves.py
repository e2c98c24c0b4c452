"""Moves under `run` on real clusters, judged by the referee: a copy goes when those that take over are available.

Pods take their time to count as available (minReadySeconds), and some find no node where they are to go.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.journal import Journal
from tests.conftest import ThreeClusters
from tests.e2e.daemon_process import ACK, CLUSTER, Daemon, GitRepository
from tests.e2e.referee import Referee, Resource, is_available
from tests.program import run_text
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

CLUSTERS = ("m1", "m2", "m3")
SLOW_S = 2
"""The time for which a pod must have been ready to count as available."""


class Stage:
    """A store of workloads in a namespace of their own, nodes for their pods alone, and a daemon."""

    def __init__(self, folder: Path, clusters: ThreeClusters) -> None:
        self.name = f"v{uuid.uuid4().hex[:8]}"
        self.clusters: dict[str, RealCluster] = {c.name: c for c in (clusters.m1, clusters.m2, clusters.m3)}
        guards = {"maxDeletes": 100, "maxDeletePercent": 100}
        self.store = GitRepository(folder / "store", self.name, CLUSTERS, guards=guards)
        self.daemon = Daemon(folder / "store", clusters.kubeconfig, folder / "journal.db")
        for cluster in CLUSTERS:
            self.add_node(cluster)
        self.referee = Referee(self.clusters.values())

    def add_node(self, cluster: str, *, large: bool = False) -> None:
        """A node for pods of this test; those that ask for a `large` one run on no other."""
        taint = {"key": "for", "value": self.name, "effect": "NoSchedule"}
        labels = {"for": self.name, "size": "large" if large else "small"}
        name = f"{self.name}-{'large' if large else 'small'}"
        self.clusters[cluster].add_node(name, cpu="1000", memory="1Ti", pods="1000", labels=labels, taints=[taint])

    def close(self) -> None:
        self.daemon.kill()
        for cluster in self.clusters.values():
            for size in ("large", "small"):
                cluster.kubectl("delete", "node", f"{self.name}-{size}", "--ignore-not-found", "--wait=false")

    def put(
        self, name: str, placement: dict[str, Any], *, kind: str = "Deployment", replicas: int = 2, large: bool = False
    ) -> None:
        self.store.write(f"{name}.yaml", self.workload(name, kind, replicas, large=large), self.policy(
            name, kind, placement))  # fmt: skip

    def workload(self, name: str, kind: str, replicas: int, *, large: bool) -> dict[str, Any]:
        labels = {"app": name}
        selector = {"for": self.name, **({"size": "large"} if large else {})}
        pod = {"containers": [{"name": "main", "image": "nginx:1"}], "nodeSelector": selector,
               "tolerations": [{"key": "for", "operator": "Exists"}]}  # fmt: skip
        spec: dict[str, Any] = {
            "selector": {"matchLabels": labels}, "minReadySeconds": SLOW_S,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        }  # fmt: skip
        if kind != "DaemonSet":
            spec["replicas"] = replicas
        if kind == "StatefulSet":
            spec |= {"serviceName": name, "podManagementPolicy": "Parallel"}
        return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name, "namespace": self.name}, "spec": spec}

    def policy(self, name: str, kind: str, placement: dict[str, Any]) -> dict[str, Any]:
        return {"apiVersion": ACK, "kind": "PropagationPolicy", "metadata": {"name": name, "namespace": self.name},
                "spec": {"resourceSelectors": [{"apiVersion": "apps/v1", "kind": kind, "name": name}],
                         "placement": placement}}  # fmt: skip

    def serving(self) -> dict[str, list[str]]:
        """The clusters in which each workload is, those in which it is not available with a question mark."""
        found: dict[str, list[str]] = {}
        for cluster, there in self.clusters.items():
            for body in there.get("deployments,statefulsets,daemonsets", "-n", self.name)["items"]:
                mark = "" if is_available(body) else "?"
                found.setdefault(body["metadata"]["name"], []).append(f"{cluster}{mark}")
        return found

    def reaches(self, **clusters: str) -> None:
        """Return once each of these workloads is where it should be."""

        def is_so() -> bool:
            seen = self.serving()
            return all(seen.get(name.replace("_", "-")) == where.split() for name, where in clusters.items())

        wait_until(is_so, f"{clusters}", seen=lambda: f"{self.serving()}; {self.daemon.text()[-1500:]}")

    def resource(self, name: str, plural: str = "deployments") -> Resource:
        return plural, self.name, name


@pytest.fixture
def stage(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Stage]:
    made = Stage(tmp_path, three_clusters)
    yield made
    made.close()


def on(*clusters: str) -> dict[str, Any]:
    """By name; every cluster has all replicas."""
    return {"clusterAffinity": {"clusterNames": list(clusters)}}


def divided(**weights: int) -> dict[str, Any]:
    entries = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in weights.items()]
    return _scheduled({"staticWeightList": entries})


def by_room(*clusters: str) -> dict[str, Any]:
    """By free capacity."""
    return on(*clusters) | _scheduled({"dynamicWeight": "AvailableReplicas"})


def _scheduled(preference: dict[str, Any]) -> dict[str, Any]:
    return {"replicaScheduling": {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted",
                                  "weightPreference": preference}}  # fmt: skip


BY_LABEL = {"clusterAffinity": {"labelSelector": {"matchLabels": {"home": "yes"}}}}


def home(stage: Stage, cluster: str) -> None:
    for name in CLUSTERS:
        labels = {"home": "yes"} if name == cluster else {}
        document = {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": name, "labels": labels}}
        stage.store.write(f"clusters/{name}.yaml", document)


def test_edits_move_only_to_copies_that_serve(stage: Stage) -> None:
    stage.add_node("m1", large=True)
    stage.put("stays", on("m1", "m2"))
    stage.put("by-name", on("m1"))
    stage.put("by-label", BY_LABEL)
    home(stage, "m1")
    stage.put("weights", divided(m1=3, m2=1), replicas=4)
    stage.put("by-room", by_room("m1"))
    stage.put("stateful", on("m1"), kind="StatefulSet")
    stage.put("on-nodes", on("m1"), kind="DaemonSet")
    stage.put("full", on("m1"), large=True)
    stage.put("twice", on("m1"), large=True)
    stage.store.commit()
    stage.daemon.start()
    alone = dict.fromkeys(("by_name", "by_label", "by_room", "stateful", "on_nodes", "full", "twice"), "m1")
    stage.reaches(stays="m1 m2", weights="m1 m2", **alone)
    stage.put("by-name", on("m2"))
    home(stage, "m2")
    stage.put("weights", divided(m1=1, m2=3), replicas=4)
    stage.put("by-room", by_room("m2"))
    stage.put("stateful", on("m2"), kind="StatefulSet")
    stage.put("on-nodes", on("m2"), kind="DaemonSet")
    stage.put("full", on("m2"), large=True)
    stage.put("twice", on("m1", "m2"), large=True)
    stage.store.commit()
    stage.reaches(full="m1 m2?", twice="m1 m2?")
    stage.put("twice", on("m2"), large=True)
    stage.store.commit()
    moved = dict.fromkeys(("by_name", "by_label", "by_room", "stateful", "on_nodes"), "m2")
    stage.reaches(stays="m1 m2", weights="m1 m2", full="m1 m2?", twice="m1 m2?", **moved)
    stage.daemon.stop()
    stage.daemon.start()
    stage.daemon.follows()
    stage.add_node("m2", large=True)
    stage.reaches(full="m2", twice="m2")
    for name in ("by-name", "by-label", "by-room", "full", "twice"):
        assert stage.referee.judge(stage.resource(name)) == 1
    assert stage.referee.judge(stage.resource("weights")) >= 1
    assert stage.referee.judge(stage.resource("stateful", "statefulsets")) == 1
    assert stage.referee.judge(stage.resource("on-nodes", "daemonsets")) == 1
    assert stage.referee.taken(stage.resource("stays")) == []


def rounds(stage: Stage) -> int:
    with Journal.open(stage.daemon.journal, read_only=True) as journal:
        return journal.complete_rounds()


def test_a_crash_after_the_creation_and_a_target_that_falls_silent(stage: Stage) -> None:
    stage.put("moves", on("m1"))
    stage.store.commit()
    stage.daemon.start()
    stage.reaches(moves="m1")
    assert stage.daemon.stop() == 0
    stage.put("moves", on("m3"))
    stage.store.commit()
    stage.daemon.start(RECONCILER_FAIL_POINT="after a write to a member: create Deployment")
    assert stage.daemon.wait() == -9
    stage.clusters["m3"].stop()
    try:
        stage.daemon.start()
        stage.daemon.follows()
        last = rounds(stage)
        stage.store.write("other.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}})
        stage.store.commit()
        wait_until(lambda: rounds(stage) > last, "another round", seen=stage.daemon.text)
        assert is_available(stage.clusters["m1"].get("deployment", "moves", "-n", stage.name))
    finally:
        stage.clusters["m3"].start()
    stage.reaches(moves="m3")
    assert stage.referee.judge(stage.resource("moves")) == 1


def wanted(stage: Stage, name: str) -> dict[str, int]:
    """The replicas that each cluster is to run of a Deployment."""
    found = {}
    for cluster, there in stage.clusters.items():
        text = there.kubectl("get", "deployment", name, "-n", stage.name, "--ignore-not-found", "-o", "json")
        if text:
            found[cluster] = json.loads(text)["spec"]["replicas"]
    return found


def told(stage: Stage) -> str:
    """Return what `status` prints."""
    return run_text("status", "--journal", stage.daemon.journal, code=None).stdout


def test_a_cluster_without_controllers_takes_nothing_over_and_a_sick_one_holds_up_no_scale_down(stage: Stage) -> None:
    stage.add_node("m1", large=True)
    stage.put("shared", divided(m1=3, m2=3), replicas=6)
    stage.put("sick", on("m1", "m2"), replicas=5, large=True)
    stage.store.commit()
    stage.daemon.start()
    stage.reaches(shared="m1 m2", sick="m1 m2?")
    with stage.clusters["m3"].controllers_asleep():
        stage.put("shared", divided(m1=1, m3=5), replicas=6)
        stage.store.commit()
        wait_until(lambda: wanted(stage, "shared").get("m3") == 5, "the copy to come", seen=stage.daemon.text)
        stage.put("shared", divided(m1=3, m2=1, m3=2), replicas=6)
        stage.put("sick", on("m1", "m2"), replicas=4, large=True)
        stage.store.commit()
        wait_until(lambda: wanted(stage, "shared").get("m3") == 2, "the commit to be followed", seen=stage.daemon.text)
        wait_until(lambda: wanted(stage, "sick") == {"m1": 4, "m2": 4}, "the scale-down", seen=stage.daemon.text)
        assert wanted(stage, "shared") == {"m1": 3, "m2": 3, "m3": 2}
        reason = "waits for m3 healthy; it is unknown what m3 serves: no controller has reported its status"
        wait_until(lambda: reason in told(stage), reason, seen=lambda: told(stage))
        print(told(stage))
    wait_until(lambda: wanted(stage, "shared") == {"m1": 3, "m2": 1, "m3": 2}, "the move", seen=stage.daemon.text)
