"""A hub, and a cluster that only its own process can reach: each applies its part of one plan. Source: ADR 24.

Neither has access to the clusters of the other, so that whatever it asked of them would fail and be told.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
from tests.e2e.daemon_process import CLUSTER, FLEET, Daemon, GitRepository
from tests.fakes.documents import config_map, divided, policy, web
from tests.program import run_text
from tests.real_clusters import wait_until
from tests.yaml_text import load_yaml

CLUSTERS = ("m1", "m2", "far")
HUB = ("m1", "m2")
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "migrate", "namespace": "demo"},
    "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "migrate:1"}]}}},
}
pytestmark = pytest.mark.timeout(300)


def access_to(kubeconfig: Path, clusters: tuple[str, ...], path: Path) -> Path:
    """A kubeconfig that reaches these clusters and no other."""
    document = load_yaml(kubeconfig.read_text())
    document["contexts"] = [each for each in document["contexts"] if each["name"] in clusters]
    kept = {each["context"]["cluster"] for each in document["contexts"]}
    document["clusters"] = [each for each in document["clusters"] if each["name"] in kept]
    path.write_text(yaml.safe_dump(document))
    path.chmod(0o600)
    return path


class Scene:
    """The store, the process of the hub, and that of the far cluster."""

    def __init__(self, folder: Path, fleet: BackgroundFleet) -> None:
        self.fleet = fleet
        self.folder = folder
        self.store = GitRepository(folder / "store", "apart", CLUSTERS)
        far = {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": "far"}, "spec": {"syncMode": "Pull"}}
        self.store.write("clusters/far.yaml", far)
        near = access_to(fleet.kubeconfig, HUB, folder / "hub.kubeconfig")
        away = access_to(fleet.kubeconfig, ("far",), folder / "far.kubeconfig")
        self.hub = Daemon(self.store.folder, near, folder / "hub" / "journal.db")
        self.far = Daemon(self.store.folder, away, folder / "far" / "journal.db", "--cluster", "far")

    def put(self, value: str) -> None:
        everywhere = policy("settings", "ConfigMap", *CLUSTERS)
        self.store.write("settings.yaml", config_map("settings", value=value), everywhere)

    def get(self, cluster: str, kind: str, name: str) -> dict[str, Any] | None:
        found = self.fleet.call(lambda box: box[cluster].state.get(kind, "demo", name))
        return dict(found) if found is not None else None

    def where(self, kind: str, name: str) -> set[str]:
        return {cluster for cluster in CLUSTERS if self.get(cluster, kind, name) is not None}

    def values(self, name: str) -> Mapping[str, str]:
        found = {cluster: self.get(cluster, "ConfigMap", name) for cluster in CLUSTERS}
        return {cluster: each["data"]["value"] for cluster, each in found.items() if each is not None}

    def replicas(self) -> dict[str, int]:
        found = {cluster: self.get(cluster, "Deployment", "web") for cluster in CLUSTERS}
        return {cluster: each["spec"]["replicas"] for cluster, each in found.items() if each is not None}

    def until(self, predicate: Any, what: str, timeout_s: float = 180) -> None:
        def said() -> str:
            return f"{what}; hub: {self.hub.text()[-2500:]} far: {self.far.text()[-2500:]}"

        try:
            wait_until(predicate, what, timeout_s)
        except TimeoutError as error:
            raise AssertionError(said()) from error

    def command(self, *words: str) -> str:
        return run_text(*words).stdout

    def status(self, process: Daemon) -> dict[str, Any]:
        return dict(json.loads(self.command("status", "--journal", str(process.journal), "-o", "json")))


@contextmanager
def scene(folder: Path) -> Iterator[Scene]:
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], folder) as fleet:
        found = Scene(folder, fleet)
        with found.hub, found.far:
            yield found


def test_each_applies_its_part_and_leaves_the_others_alone(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.put("1")
        found.store.commit()
        found.hub.start()
        found.until(lambda: found.values("settings") == {"m1": "1", "m2": "1"}, "the hub to apply")
        found.until(lambda: found.status(found.hub)["complete"], "the hub to have told of it")
        status = found.status(found.hub)
        assert [each["name"] for each in status["clusters"]] == ["m1", "m2"]
        assert status["elsewhere"] == ["far"]
        assert found.get("far", "ConfigMap", "settings") is None
        found.far.start()
        found.until(lambda: found.values("settings") == {"m1": "1", "m2": "1", "far": "1"}, "the far process to apply")
        found.until(lambda: found.status(found.far)["elsewhere"] == ["m1", "m2"], "the far process to tell of it")
        # A commit, a crash, an edit by hand, and the end: each cluster by its own process.
        found.far.kill()
        found.put("2")
        found.store.commit()
        found.until(lambda: found.values("settings") == {"m1": "2", "m2": "2", "far": "1"}, "the hub to go on")
        found.far.start()
        found.until(lambda: found.values("settings") == {"m1": "2", "m2": "2", "far": "2"}, "the far one to follow")
        found.store.write("settings.yaml")
        found.store.commit()
        found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone everywhere")
        assert "far" not in _contacted(found.hub)
        assert not {"m1", "m2"} & _contacted(found.far)


def _contacted(process: Daemon) -> set[str]:
    """The clusters that a process speaks of in its log."""
    lines = [json.loads(line) for line in process.text().splitlines() if line.startswith("{")]
    return {line["cluster"] for line in lines if line.get("cluster")}


def test_a_document_of_a_cluster_of_another_process_may_change(tmp_path: Path) -> None:
    """The hub goes on: it looks at nothing there, whatever the document says of it."""
    with scene(tmp_path) as found:
        found.put("1")
        found.store.commit()
        found.hub.start()
        found.until(lambda: found.values("settings").keys() == {"m1", "m2"}, "the hub to apply")
        metadata = {"name": "far", "labels": {"region": "east"}}
        labelled = {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": metadata, "spec": {"syncMode": "Pull"}}
        found.store.write("clusters/far.yaml", labelled)
        found.put("2")
        found.store.commit()
        found.until(lambda: found.values("settings") == {"m1": "2", "m2": "2"}, "the hub to go on")


def test_what_rests_on_all_clusters_is_left_as_it_is(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.put("1")
        everywhere = policy("web", "Deployment", *CLUSTERS, placement=divided(*CLUSTERS))
        found.store.write("web.yaml", web("nginx:1", 6), everywhere)
        found.store.write("job.yaml", JOB, _for_job("far"))
        found.store.commit()
        found.hub.start()
        found.far.start()
        found.until(lambda: found.replicas() == {"m1": 2, "m2": 2}, "the hub to apply its share")
        found.until(lambda: found.values("settings").keys() == set(CLUSTERS), "what everybody gets to be everywhere")
        for process in (found.hub, found.far):
            found.until(lambda one=process: _codes(found.status(one), "undecided") == 2, "it to say what stays")
        # The run moves to a cluster of the hub, which cannot know that it never began.
        found.store.write("job.yaml", JOB, _for_job("m1"))
        found.store.commit()
        found.until(
            lambda: _codes(found.status(found.hub), "runs-elsewhere") == 1, "the hub to say why it begins no run"
        )
        assert found.where("Job", "migrate") == set()
        assert found.replicas() == {"m1": 2, "m2": 2}


def _codes(status: dict[str, Any], code: str) -> int:
    return sum(each["code"] == code for each in status["problems"])


def _for_job(cluster: str) -> dict[str, Any]:
    made = policy("migrate", "Job", cluster)
    made["spec"]["resourceSelectors"][0]["apiVersion"] = "batch/v1"
    return made


def test_a_cluster_that_the_store_does_not_have_is_told_at_once(tmp_path: Path) -> None:
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], tmp_path) as fleet:
        found = Scene(tmp_path, fleet)
        found.store.commit()
        wrong = Daemon(found.store.folder, fleet.kubeconfig, tmp_path / "wrong" / "journal.db", "--cluster", "fra")
        with wrong.start():
            assert wrong.wait() == 1
            assert "--cluster fra: the store has no such Cluster document; it has far, m1, m2" in wrong.text()


def test_the_hub_takes_back_a_cluster_that_does_not_pull_any_more(tmp_path: Path) -> None:
    """As soon as the other process is gone, and somebody said that its journal holds the cluster no more."""
    with scene(tmp_path) as found:
        found.put("1")
        found.store.commit()
        reached = Daemon(found.store.folder, found.fleet.kubeconfig, found.hub.journal)
        with reached.start():
            found.until(lambda: found.values("settings").keys() == {"m1", "m2"}, "the hub to apply what it applies to")
            assert found.get("far", "ConfigMap", "settings") is None
            pushed = {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": "far"}}
            found.store.write("clusters/far.yaml", pushed)
            found.store.commit()
            found.until(lambda: found.values("settings").keys() == set(CLUSTERS), "the hub to apply to all")
            found.store.write("clusters/far.yaml", {**pushed, "spec": {"syncMode": "Pull"}})
            revision = found.store.commit()
            found.until(lambda: found.status(found.hub).get("elsewhere") == ["far"], "the hub to leave it alone")
            assert found.status(found.hub)["revision"] == revision
            found.put("2")
            found.store.commit()
            found.until(lambda: found.values("settings") == {"m1": "2", "m2": "2", "far": "1"}, "the others to go on")
        with found.far.start():
            assert found.far.wait() == 1
            assert "far: fleet apart is held by journal" in found.far.text()
        words = ("journal", "rebuild", str(found.store.folder), "--kubeconfig", str(tmp_path / "far.kubeconfig"))
        found.command(*words, "--journal", str(found.far.journal), "--takeover", "--cluster", "far")
        with found.far.start():
            found.until(lambda: found.values("settings")["far"] == "2", "the far process to have taken it over")


def test_a_rollout_does_not_get_past_a_stage_of_another_process(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        stages = [{"name": name, "clusters": {"clusterNames": [name]}} for name in ("m1", "far", "m2")]
        rollout = {"apiVersion": FLEET, "kind": "Rollout", "metadata": {"name": "all"}, "spec": {"stages": stages}}
        found.put("1")
        found.store.commit()
        found.hub.start()
        found.far.start()
        found.until(lambda: found.values("settings").keys() == set(CLUSTERS), "all to be there")
        found.store.write("rollout.yaml", rollout)
        revision = found.store.commit()
        found.until(lambda: {found.status(each)["revision"] for each in (found.hub, found.far)} == {revision}, "both")
        found.put("2")
        found.store.commit()
        found.until(lambda: found.values("settings")["m1"] == "2", "the first stage to begin")
        found.until(lambda: "another process applies there" in str(found.status(found.hub)["rollouts"]), "why it waits")
        assert found.values("settings") == {"m1": "2", "m2": "1", "far": "1"}
