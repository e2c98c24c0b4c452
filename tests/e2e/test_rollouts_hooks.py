"""A hook that fails in the second stage of a Rollout: its cluster stops, no later one begins, earlier ones stay.

And a Prometheus that is away at the gate of the first stage. Source: ADR 26; ADR 18.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.daemon_process import ACK, FLEET, Daemon, GitRepository
from tests.fakes.prometheus import FakePrometheus, matrix
from tests.program import run_text
from tests.real_clusters import RealCluster, RealClusters, wait_until
from tests.soak.rollouts import image_of

CLUSTERS = ("m1", "m2", "m3")
PATIENCE_S = 180
METRIC = {"query": "errors", "threshold": "< 1"}
Images = dict[str, tuple[str, str]]
"""By cluster the images of the Deployment and of the hook; empty where they are not there."""


class Scene:
    """A Deployment with a hook before it in three stages of one cluster each."""

    def __init__(self, folder: Path, fleet: str, namespace: str, kubeconfig: Path, live: Callable[[], Images]) -> None:
        self.namespace, self.live = namespace, live
        self.store = GitRepository(folder / "store", fleet, CLUSTERS, prometheus="main")
        self.daemon = Daemon(self.store.folder, kubeconfig, folder / "state/journal.db")
        selectors = [{"apiVersion": "apps/v1", "kind": "Deployment"}, {"apiVersion": "batch/v1", "kind": "Job"}]
        self.store.write("policy.yaml", {
            "apiVersion": ACK, "kind": "PropagationPolicy", "metadata": {"name": "web", "namespace": namespace},
            "spec": {"resourceSelectors": selectors, "placement": {"clusterAffinity": {"clusterNames": [*CLUSTERS]}}},
        })  # fmt: skip
        stages: list[dict[str, Any]] = [
            {"name": name, "clusters": {"clusterNames": [cluster]}, "gate": {"timeout": "1h"}}
            for name, cluster in zip(("first", "second", "third"), CLUSTERS, strict=True)
        ]
        stages[0]["gate"]["metrics"] = [METRIC]
        self.store.write("rollout.yaml", {"apiVersion": FLEET, "kind": "Rollout", "metadata": {"name": "all"},
                                          "spec": {"stages": stages}})  # fmt: skip

    def put(self, number: int) -> str:
        """Commit a release: web:N with migrate:N before it."""

        def pod(image: str, **more: Any) -> dict[str, Any]:
            return {"containers": [{"name": "main", "image": f"{image}:{number}"}], **more}

        labels = {"app": "web"}
        spec = {"replicas": 1, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": pod("web")}}  # fmt: skip
        once = {"backoffLimit": 0, "template": {"spec": pod("migrate", restartPolicy="Never")}}
        metadata = {"name": "migrate", "namespace": self.namespace, "annotations": {"fleet.reconciler/hook": "before"}}
        self.store.write(
            "web/all.yaml",
            {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": self.namespace},
             "spec": spec},
            {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": once},
        )  # fmt: skip
        return self.store.commit(f"release {number}")

    def until(self, numbers: str, hooks: str, what: str) -> None:
        """Return once the clusters have these releases of the Deployment and of the hook."""
        wanted = {
            name: (f"web:{web}", f"migrate:{hook}") for name, web, hook in zip(CLUSTERS, numbers, hooks, strict=True)
        }
        self.until_said(lambda: self.live() == wanted, what)

    def until_said(self, is_so: Callable[[], bool], what: str) -> None:
        wait_until(is_so, what, PATIENCE_S, lambda: f"{self.live()} {self.status()} {self.daemon.text()[-3000:]}")

    def stages(self) -> list[str]:
        """Return the state of each stage, in order."""
        return [str(stage["state"]) for stage in json.loads(self.status("-o", "json"))["rollouts"][0]["stages"]]

    def status(self, *options: str) -> str:
        done = run_text("status", "--journal", self.daemon.journal, *options, code=None)
        return done.stdout + done.stderr


def follow(scene: Scene, prepare: Callable[[int], None]) -> None:
    """Three releases. `prepare`: the store for each, so that the hook of the second one fails in m2 alone."""
    with FakePrometheus(lambda params: matrix(params, "0")) as fake, scene.daemon:
        scene.put(1)
        scene.daemon.start(RECONCILER_PROMETHEUS=f"main={fake.url}")
        scene.until("111", "111", "the first release everywhere")

        # A Prometheus that is away lets nothing past the first stage, and status says so.
        fake.answer = lambda params: None
        prepare(2)
        scene.put(2)
        scene.until_said(lambda: "Prometheus main cannot be asked" in scene.status(), "status to say that it is away")
        scene.until("211", "211", "the second release in the first stage alone")
        fake.answer = lambda params: matrix(params, "0")
        # The hook fails in the second stage: nothing else changes there, and the third does not begin.
        why = f"Job {scene.namespace}/migrate failed; delete it in the cluster to run it again, or commit a change"
        scene.until_said(lambda: why in scene.status(), "status to name the hook")
        scene.until("211", "221", "the stage to stop")
        scene.daemon.stop()
        scene.daemon.start(RECONCILER_PROMETHEUS=f"main={fake.url}").follows()
        scene.until_said(lambda: scene.stages() == ["done", "paused", "waits-for-stage"], "the stage to be paused")
        scene.until_said(lambda: "failed m2 at" in scene.status(), "status to name its cluster")
        scene.until("211", "221", "the stage to stay as it was after a restart")

        # What fixes it goes everywhere, and runs its hook once in each cluster.
        prepare(3)
        scene.put(3)
        scene.until("333", "333", "the third release everywhere")
        assert scene.daemon.stop() == 0


@pytest.mark.apiserver
def test_a_hook_that_fails_in_the_second_stage_stops_it_on_real_clusters(
    tmp_path: Path, real_clusters: RealClusters
) -> None:
    name = f"h{uuid.uuid4().hex[:8]}"
    clusters = {each: real_clusters.create(each) for each in CLUSTERS}
    marks = {each: cluster.mark() for each, cluster in clusters.items()}

    def image(cluster: str, kind: str, found: str) -> str:
        arguments = ("get", kind, found, "-n", f"ns-{name}", "-o", "json", "--ignore-not-found")
        text = clusters[cluster].kubectl(*arguments)
        return image_of(json.loads(text)) if text.strip() else ""

    def live() -> Images:
        return {each: (image(each, "deployment", "web"), image(each, "job", "migrate")) for each in CLUSTERS}

    for each in CLUSTERS:
        clusters[each].add_node(f"node-{name}", labels={"of": each})
    try:
        scene = Scene(tmp_path, name, f"ns-{name}", real_clusters.merged_kubeconfig(*CLUSTERS), live)
        # In m2 no node takes its pod in time.
        overrider = [
            {"path": "/spec/activeDeadlineSeconds", "operator": "add", "value": 1},
            {"path": "/spec/template/spec/nodeSelector", "operator": "add", "value": {"of": "nobody"}},
        ]
        override = {
            "apiVersion": "policy.karmada.io/v1alpha1", "kind": "OverridePolicy",
            "metadata": {"name": "slow", "namespace": f"ns-{name}"},
            "spec": {"resourceSelectors": [{"apiVersion": "batch/v1", "kind": "Job"}],
                     "overrideRules": [{"targetCluster": {"clusterNames": ["m2"]},
                                        "overriders": {"plaintext": overrider}}]},
        }  # fmt: skip
        follow(scene, lambda number: scene.store.write("override.yaml", *([override] if number == 2 else [])))
        hooks = {each: arrivals(clusters[each], marks[each], f"ns-{name}") for each in CLUSTERS}
        assert hooks == {"m1": 3, "m2": 3, "m3": 2}, "each hook began once in each cluster that had its turn"
    finally:
        for each in CLUSTERS:
            clusters[each].remove_node(f"node-{name}")


def arrivals(cluster: RealCluster, since: int, namespace: str) -> int:
    """Return how often we created the hook, by the audit log."""
    return sum(
        event["verb"] in ("create", "patch") and event["responseStatus"]["code"] == 201
        for event in cluster.writes(since, "fleet-reconciler/")
        if event.get("objectRef", {}).get("resource") == "jobs"
        and event["objectRef"].get("namespace") == namespace
        and "dryRun" not in event["requestURI"]
    )
