"""A commit over four real clusters in three stages, with all that may happen on the way, judged from their audit logs.

Source: ADR 18.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from reconciler.journal import Journal
from tests.e2e.daemon_process import ACK, Daemon, GitRepository
from tests.e2e.referee import Referee, Write, is_available, state_at
from tests.program import run_text
from tests.real_clusters import RealCluster, RealClusters, wait_until
from tests.soak.rollouts import confirm

pytestmark = pytest.mark.apiserver

STAGES = {"canary": ("m1",), "early": ("m2", "m3"), "rest": ("m4",)}
CLUSTERS = tuple(name for names in STAGES.values() for name in names)
BEHIND = CLUSTERS[1:]
PATIENCE_S = 240


class Scene:
    """A Deployment in four clusters, a Rollout, a service, and what the API servers hold."""

    def __init__(self, folder: Path, clusters: RealClusters) -> None:
        self.fleet = f"r{uuid.uuid4().hex[:8]}"
        self.namespace = f"ns-{self.fleet}"
        self.clusters: dict[str, RealCluster] = {name: clusters.create(name) for name in CLUSTERS}
        self.kubeconfig = clusters.merged_kubeconfig(*CLUSTERS)
        self.store = GitRepository(folder / "store", self.fleet, CLUSTERS)
        self.daemon = Daemon(self.store.folder, self.kubeconfig, folder / "state/journal.db")
        self.referee = Referee(self.clusters.values())
        self.store.write("policy.yaml", self._policy())
        self.reverted_to = ""
        """The image to which a cluster may go back."""
        self._node = f"node-{self.fleet}"
        for cluster in self.clusters.values():
            cluster.add_node(self._node)

    def leave(self) -> None:
        """Take the nodes away, so that no other test meets them."""
        for cluster in self.clusters.values():
            cluster.remove_node(self._node)

    def _policy(self) -> dict[str, Any]:
        selector = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        return {"apiVersion": ACK, "kind": "PropagationPolicy",
                "metadata": {"name": "web", "namespace": self.namespace},
                "spec": {"resourceSelectors": [selector],
                         "placement": {"clusterAffinity": {"clusterNames": list(CLUSTERS)}}}}  # fmt: skip

    def stage(self, *, timeout: str = "5m", approved: tuple[str, ...] = (), window: str = "", soak: str = "0s",
              is_confirmed: bool = False) -> str:  # fmt: skip
        """Commit the Rollout. `window`: a cron expression of the last stage. `soak`: of the first one."""
        last: dict[str, Any] = {"name": "rest", "clusters": {}}
        if window:
            last["windows"] = [{"cron": window, "duration": "1m"}]
        stages = [
            {"name": "canary", "clusters": {"clusterNames": ["m1"]}, "after": {"approval": True},
             "gate": {"timeout": timeout, "minSuccessTime": soak}},
            {"name": "early", "clusters": {"clusterNames": ["m2", "m3"]}},
            last,
        ]  # fmt: skip
        approvals = [{"stage": "canary", "revision": revision} for revision in approved]
        self.store.write("rollout.yaml", {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Rollout",
                                          "metadata": {"name": "all"},
                                          "spec": {"stages": stages, "approvals": approvals,
                                                   "rollbackWindow": "1h"}})  # fmt: skip
        if is_confirmed:
            confirm(self.store)
        return self.store.commit("rollout")

    def put(self, image: str, replicas: int = 1, **pod: Any) -> str:
        """Commit an image; `pod`: more of the pod's fields."""
        labels = {"app": "web"}
        self.store.write("web.yaml", {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": self.namespace},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"containers": [{"name": "main", "image": image}], **pod}}},
        })  # fmt: skip
        return self.store.commit(image)

    def images(self) -> dict[str, str]:
        """Return what each API server holds; nothing where it is not there."""
        return {name: image_of(found) for name in CLUSTERS if (found := self._live(name)) is not None}

    def replicas(self) -> dict[str, int]:
        """Return what each API server holds."""
        return {name: int(found["spec"]["replicas"]) for name in CLUSTERS if (found := self._live(name)) is not None}

    def _live(self, cluster: str) -> Any:
        text = self.clusters[cluster].kubectl(
            "get", "deployment", "web", "-n", self.namespace, "-o", "json", "--ignore-not-found"
        )
        return json.loads(text) if text.strip() else None

    def standing(self) -> dict[str, Any]:
        """Return what `status` says of the Rollout."""
        if not self.daemon.journal.exists():
            return {}
        with Journal.open(self.daemon.journal, read_only=True) as journal:
            found = (journal.state() or {}).get("rollouts") or [{}]
        return dict(found[0])

    def recorded(self) -> dict[str, tuple[str, bool]]:
        """By cluster the revision in force, and whether it is completed."""
        with Journal.open(self.daemon.journal, read_only=True) as journal:
            found = journal.rollout_records().get("all", {})
        return {name: (record.revision, bool(record.completed_at)) for name, record in found.items()}

    def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Return once something is so; a service that was killed is started again."""

        def check() -> bool:
            if not self.daemon.is_running:
                self.daemon.start()
            return is_so()

        wait_until(check, what, PATIENCE_S, lambda: f"{self.images()} {self.standing()} {self.daemon.text()[-3000:]}")

    def until_images(self, canary: str, others: str) -> None:
        """Return once the first stage has one image, and all others another."""
        wanted = {name: image for name, image in {"m1": canary, **dict.fromkeys(BEHIND, others)}.items() if image}
        self.until(lambda: self.images() == wanted, f"{canary} in the first stage and {others or 'nothing'} elsewhere")

    def drift(self, cluster: str, image: str) -> None:
        patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
        self.clusters[cluster].kubectl("patch", "deployment", "web", "-n", self.namespace, "--field-manager=by-hand",
                                       "-p", json.dumps(patch))  # fmt: skip

    # The judge

    def judge(self) -> int:
        """Return how often a cluster was given another version by us, each time when it was its turn."""
        histories = self.referee.histories(("deployments", self.namespace, "web"))
        found = 0
        for name, history in histories.items():
            given: list[str] = []
            for before, write in _versions(history):
                if before.endswith("drift"):
                    assert image_of(write.after) == given[-1], f"drift in {name} is put back to its revision"
                    continue
                found += 1
                if image_of(write.after) in given and image_of(write.after) == self.reverted_to:
                    given.append(image_of(write.after))
                    continue
                assert image_of(write.after) not in given, f"{name} went back to {image_of(write.after)}: {given}"
                given.append(image_of(write.after))
                self._check_turn(histories, name, write.arrived, given[-1])
        return found

    def _check_turn(self, histories: dict[str, list[Write]], name: str, moment: datetime, image: str) -> None:
        for names in STAGES.values():
            states = {other: state_at(histories[other], moment) for other in names}
            if name in names:
                moving = [
                    o for o, body in states.items() if body and image_of(body) == image and not is_available(body)
                ]
                assert len({*moving, name}) == 1, f"{image} is on its way to {moving} when {name} gets it"
                return
            for other, body in states.items():
                assert body and image_of(body) == image and is_available(body), f"{image} in {name} before {other}"


def image_of(body: Any) -> str:
    return str(body["spec"]["template"]["spec"]["containers"][0]["image"]) if body else ""


def _versions(history: list[Write]) -> Iterator[tuple[str, Write]]:
    """Our writes that changed the image, with the image before."""
    before = ""
    for write in history:
        image = image_of(write.after)
        if image != before and write.agent.startswith("fleet-reconciler/"):
            yield before, write
        before = image


def test_a_commit_over_four_clusters(tmp_path: Path, real_clusters: RealClusters) -> None:
    scene = Scene(tmp_path, real_clusters)
    try:
        follow(scene)
    finally:
        scene.leave()
    assert scene.judge() == 4 + 1 + 4 + 3 + 3


def follow(scene: Scene) -> None:
    """Two commits and what may happen on their way."""
    with scene.daemon:
        first = scene.put("nginx:1")
        scene.stage()
        scene.daemon.start()
        scene.until_images("nginx:1", "")
        release = first if scene.recorded()["m1"][0] == first else scene.recorded()["m1"][0]
        scene.stage(approved=(release,))
        scene.until_images("nginx:1", "nginx:1")
        scene.until(lambda: scene.recorded() == dict.fromkeys(CLUSTERS, (release, True)), "the first revision done")

        # What never becomes healthy goes no further, and says why within its timeout.
        scene.stage(timeout="5s")
        scene.put("nginx:2", nodeSelector={"no-such": "node"})
        scene.until_images("nginx:2", "nginx:1")
        scene.until(lambda: "paused" in json.dumps(scene.standing()), "the first stage to be paused")
        assert scene.images() == {"m1": "nginx:2", **dict.fromkeys(BEHIND, "nginx:1")}
        assert "Deployment" in json.dumps(scene.standing()), "it says what is not healthy"

        # What fixes it goes on, as far as a person lets it; meanwhile whoever is behind is kept at its revision.
        mended = scene.put("nginx:3")
        scene.until_images("nginx:3", "nginx:1")
        scene.drift("m3", "nginx:drift")
        scene.until_images("nginx:3", "nginx:1")
        scene.daemon.kill()
        scene.drift("m4", "nginx:drift")
        scene.until_images("nginx:3", "nginx:1")

        # A journal that is lost in the middle is told by the clusters.
        scene.until(lambda: scene.recorded()["m1"] == (mended, True), "the first stage to be done")
        assert scene.daemon.stop() == 0
        for file in scene.daemon.journal.parent.glob("journal.db*"):
            file.unlink()
        options = ("--kubeconfig", scene.kubeconfig, "--journal", scene.daemon.journal)
        run_text("journal", "rebuild", scene.store.folder, "--takeover", *options)
        assert {name: revision for name, (revision, _) in scene.recorded().items()} == {
            "m1": mended, **dict.fromkeys(BEHIND, release),
        }  # fmt: skip

        # A window that is closed holds the last stage, and kill -9 in the second one costs nothing.
        scene.stage(approved=(mended,), window="0 0 29 2 *")
        scene.daemon.start(RECONCILER_FAIL_POINT="after entries of rollouts were written")
        done = {"m1": "nginx:3", "m2": "nginx:3", "m3": "nginx:3"}
        scene.until(lambda: scene.images() == {**dict.fromkeys(CLUSTERS, "nginx:1"), **done}, "two stages to be done")
        scene.until(lambda: "window" in json.dumps(scene.standing()), "the last stage to wait for its window")
        assert scene.daemon.starts >= 4, "it was killed while a revision began"

        # Replicas alone are no release: they come to all clusters, and what was approved goes on.
        scene.put("nginx:3", replicas=2)
        scene.until(lambda: scene.replicas() == dict.fromkeys(CLUSTERS, 2), "two replicas in every cluster")
        assert scene.images() == {**dict.fromkeys(CLUSTERS, "nginx:1"), **done}
        scene.stage(approved=(mended,), is_confirmed=True)  # A release under way keeps its window else.
        scene.until_images("nginx:3", "nginx:3")
        scene.until(lambda: scene.recorded() == dict.fromkeys(CLUSTERS, (mended, True)), "it to be done everywhere")

        revert(scene, mended)
        assert scene.daemon.stop() == 0


def revert(scene: Scene, mended: str) -> None:
    """A revert in the middle goes back at once wherever the old one was completed: without approval, turn or soak."""
    worse = scene.put("nginx:4", replicas=2)
    scene.until_images("nginx:4", "nginx:3")
    scene.stage(approved=(worse,), window="0 0 29 2 *")
    ahead = dict.fromkeys(("m1", "m2", "m3"), "nginx:4")
    scene.until(lambda: scene.images() == {**dict.fromkeys(CLUSTERS, "nginx:3"), **ahead}, "two stages to have it")
    scene.reverted_to = "nginx:3"
    scene.stage(timeout="2h", soak="1h", window="0 0 29 2 *")
    scene.put("nginx:3", replicas=2)
    scene.until_images("nginx:3", "nginx:3")
    wanted = dict.fromkeys(CLUSTERS, mended)
    scene.until(lambda: {name: one for name, (one, _) in scene.recorded().items()} == wanted, "it to be recorded")
