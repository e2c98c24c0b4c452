"""The service runs the hooks of each release once and in turn, also when it dies at any point. Source: ADR 26."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from reconciler.sim import BackgroundFleet, ClusterSpec, Event, FleetInABox, Settings, background_fleet
from tests.e2e.daemon_process import ACK, Daemon, GitRepository
from tests.fakes.serving import serves
from tests.fakes.worlds import deployment, job
from tests.program import run_text
from tests.real_clusters import wait_until

CLUSTER = "m1"
HOOK_DELETE = "fleet.reconciler/hook-delete"


class Turn(NamedTuple):
    """A step of a release: a Job came or ended, or the Deployment got an image."""

    what: str
    uid: str


class Clusters:
    """One embedded cluster, and what happened in it in order."""

    def __init__(self, fleet: BackgroundFleet) -> None:
        self.turns: list[Turn] = []
        self._fleet = fleet
        fleet.call(self._listen)

    def _listen(self, box: FleetInABox) -> None:
        box[CLUSTER].state.store.listeners.append(partial(self._note))

    def _note(self, event: Event) -> None:
        body = event.body
        metadata = body["metadata"]
        if body["kind"] == "Job" and event.type != "DELETED":
            image = body["spec"]["template"]["spec"]["containers"][0]["image"]
            ended = {c["type"] for c in (body.get("status") or {}).get("conditions") or () if c["status"] == "True"}
            word = "ended" if ended & {"Complete", "Failed"} else "came"
            self._turn(f"{metadata['name']} {image} {word}", metadata["uid"])
        elif body["kind"] == "Job" and HOOK_DELETE in metadata["annotations"]:
            self._turn(f"{metadata['name']} left", metadata["uid"])
        elif body["kind"] == "Deployment" and event.type != "DELETED":
            self._turn(f"{body['spec']['template']['spec']['containers'][0]['image']}", metadata["uid"])

    def _turn(self, what: str, uid: str) -> None:
        turn = Turn(what, uid)
        if turn not in self.turns:
            self.turns.append(turn)

    def words(self) -> list[str]:
        return [turn.what for turn in self.turns]

    def serves(self, replicas: int) -> bool:
        """Return whether so many replicas of the Deployment are available."""
        body = self._fleet.call(lambda box: box[CLUSTER].state.get("Deployment", "demo", "app"))
        return body is not None and serves(body) and body["spec"]["replicas"] == replicas


def hook(name: str, time: str, image: str, **more: str) -> dict[str, Any]:
    body = job(name)
    body["metadata"]["annotations"] = {"fleet.reconciler/hook": time, **more}
    body["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return body


def package(image: str, migrate: str = "migrate:1", replicas: int = 2) -> list[dict[str, Any]]:
    """The files of a release. Of its hooks one stays, and one is deleted once it has succeeded."""
    smoke = hook("smoke", "after", "smoke:1", **{HOOK_DELETE: "succeeded"})
    return [deployment(replicas=replicas, image=image), hook("migrate", "before", migrate), smoke]


def release(store: GitRepository, image: str, migrate: str = "migrate:1") -> str:
    kinds = [("apps/v1", "Deployment"), ("batch/v1", "Job")]
    selectors = [{"apiVersion": api, "kind": kind} for api, kind in kinds]
    store.write("policy.yaml", {"apiVersion": ACK, "kind": "PropagationPolicy",
                                "metadata": {"name": "web", "namespace": "demo"},
                                "spec": {"resourceSelectors": selectors, "placement": {}}})  # fmt: skip
    store.write("web/all.yaml", *package(image, migrate))
    return store.commit(image)


@contextmanager
def background_stage(folder: Path) -> Iterator[tuple[Clusters, GitRepository, Daemon, BackgroundFleet]]:
    """An embedded cluster whose Jobs end, a store, and a service that has not been started."""
    folder.mkdir(parents=True, exist_ok=True)
    specs = [ClusterSpec(name=CLUSTER, settings=Settings(start_s=1.0, job_s=1.0, broken_images=("broken",)))]
    with background_fleet(specs, folder, speed=10.0) as fleet:
        store = GitRepository(folder / "store", "hooks", (CLUSTER,))
        with Daemon(store.folder, fleet.kubeconfig, folder / "state/journal.db") as daemon:
            yield Clusters(fleet), store, daemon, fleet


@contextmanager
def stage(folder: Path) -> Iterator[tuple[Clusters, GitRepository, Daemon]]:
    """The same without the clusters themselves."""
    with background_stage(folder) as found:
        yield found[:3]


def wanted(*images: str) -> list[str]:
    """Everything that the releases of these images do, in order."""
    return [
        word
        for image in images
        for word in (
            "migrate migrate:1 came",
            "migrate migrate:1 ended",
            image,
            "smoke smoke:1 came",
            "smoke smoke:1 ended",
            "smoke left",
        )
    ]


def runs(clusters: Clusters, daemon: Daemon, words: list[str], replicas: int = 2) -> None:
    """Return once these have happened; a service that was killed is started again."""

    def has_happened() -> bool:
        if not daemon.is_running:
            assert daemon.wait() == -9, daemon.text()[-3000:]
            daemon.start()
        return len(clusters.turns) >= len(words) and clusters.serves(replicas) and not daemon.has_open_intents()

    wait_until(has_happened, "the release", seen=lambda: f"{clusters.words()}\n{daemon.text()[-3000:]}")


def both_releases(folder: Path, **environment: str) -> Clusters:
    with stage(folder) as (clusters, store, daemon):
        release(store, "nginx:1")
        daemon.start(**environment)
        runs(clusters, daemon, wanted("nginx:1"))
        release(store, "nginx:2")
        runs(clusters, daemon, wanted("nginx:1", "nginx:2"))
        store.write("web/all.yaml", *package("nginx:2", replicas=3))
        store.commit("more replicas")
        runs(clusters, daemon, wanted("nginx:1", "nginx:2"), replicas=3)
        return clusters


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The names of the fail points of two releases, in order, each once."""
    folder = tmp_path_factory.mktemp("undisturbed")
    clusters = both_releases(folder / "run", RECONCILER_FAIL_POINT_LOG=str(folder / "points"))
    assert clusters.words() == wanted("nginx:1", "nginx:2")
    return (folder / "points").read_text().splitlines()


@pytest.mark.parametrize("share", [0.25, 0.45, 0.6, 0.8])
def test_a_kill_at_a_point_runs_no_hook_twice_and_leaves_none_out(
    tmp_path: Path, points: list[str], share: float
) -> None:
    number = points[int(len(points) * share)].partition(" ")[0]
    clusters = both_releases(tmp_path / "run", RECONCILER_FAIL_POINT=number)
    assert clusters.words() == wanted("nginx:1", "nginx:2")
    assert set(Counter(clusters.turns).values()) == {1}


def lose_journal(daemon: Daemon) -> None:
    for file in daemon.journal.parent.glob("journal.db*"):
        file.unlink()


def test_another_journal_runs_no_hook_again_that_was_deleted(tmp_path: Path) -> None:
    with background_stage(tmp_path / "run") as (clusters, store, daemon, fleet):
        release(store, "nginx:1")
        daemon.start()
        runs(clusters, daemon, wanted("nginx:1"))
        assert daemon.stop() == 0
        lose_journal(daemon)
        options = ("--kubeconfig", fleet.kubeconfig, "--journal", daemon.journal)
        assert run_text("diff", store.folder, *options).stdout.startswith("no changes")
        mode = {"mode": "observe"}
        document = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "hooks"}}
        store.write("fleet.yaml", {**document, "spec": mode})
        observed = store.commit("observe")
        daemon.start()
        daemon.rests(observed)
        assert daemon.stop() == 0
        assert run_text("diff", store.folder, *options).stdout.startswith("no changes")
        lose_journal(daemon)
        store.write("fleet.yaml", document)
        store.commit("write")
        run_text("journal", "rebuild", store.folder, "--takeover", *options)
        daemon.start()
        store.write("web/all.yaml", *package("nginx:1", replicas=5))
        store.commit("more replicas")
        runs(clusters, daemon, wanted("nginx:1"), replicas=5)
        release(store, "nginx:2")
        runs(clusters, daemon, wanted("nginx:1", "nginx:2"))
        assert clusters.words() == wanted("nginx:1", "nginx:2")


def test_a_hook_that_fails_keeps_the_rest_as_it_was_until_a_commit_mends_it(tmp_path: Path) -> None:
    with stage(tmp_path / "run") as (clusters, store, daemon):
        release(store, "nginx:1")
        daemon.start()
        runs(clusters, daemon, wanted("nginx:1"))
        release(store, "nginx:2", migrate="migrate:broken")
        failed = ["migrate migrate:broken came", "migrate migrate:broken ended"]
        runs(clusters, daemon, [*wanted("nginx:1"), *failed])
        release(store, "nginx:3")
        runs(clusters, daemon, [*wanted("nginx:1"), *failed, *wanted("nginx:3")])
        assert clusters.words() == [*wanted("nginx:1"), *failed, *wanted("nginx:3")]
