"""Trials of rollouts: a service stages commits over six embedded clusters, and is killed at any point.

The referee shares nothing with the service. It sees every write of the Deployment in the moment in which it is made,
and what all other clusters hold then: nobody gets a version before the gates of earlier stages, nor an older one again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

import yaml

from reconciler.journal import Journal
from reconciler.sim import BackgroundFleet, ClusterSpec, Event, FleetInABox, Settings, background_fleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import policy, web
from tests.fakes.serving import serves
from tests.program import run_text

STAGES = {"canary": ("m1",), "early": ("m2", "m3"), "rest": ("m4", "m5", "m6")}
CLUSTERS = tuple(name for names in STAGES.values() for name in names)
WIDTH = {"canary": 1, "early": 1, "rest": 2}
REST_TIMEOUT_S = 180.0
DRIFT = "nginx:drift"
"""The fields that somebody sets by hand."""


def rollout(
    *,
    canary_timeout: str = "10m",
    canary_gate: Mapping[str, Any] = MappingProxyType({}),
    approval: bool = False,
    conditions: Sequence[dict[str, Any]] = (),
    **spec: Any,
) -> dict[str, Any]:
    """Three stages over the six clusters; the last one is what is left.

    `approval`: after the first one. `canary_gate`, `conditions`: of its gate.
    """
    stages: list[dict[str, Any]] = [
        {
            "name": "canary",
            "clusters": {"clusterNames": ["m1"]},
            "gate": {
                **{"timeout": canary_timeout, **canary_gate},
                **({"conditions": list(conditions)} if conditions else {}),
            },
            "after": {"approval": approval},
        },
        {"name": "early", "clusters": {"clusterNames": ["m2", "m3"]}, "maxConcurrency": 1},
        {"name": "rest", "clusters": {}, "maxConcurrency": "70%"},
    ]
    return {
        "apiVersion": "fleet.reconciler/v1alpha1",
        "kind": "Rollout",
        "metadata": {"name": "default"},
        "spec": {"stages": stages, **spec},
    }


def image_of(body: dict[str, Any] | None) -> str:
    """The image of the Deployment, empty where it is not there."""
    return str(body["spec"]["template"]["spec"]["containers"][0]["image"]) if body is not None else ""


class Referee:
    """Sees in which order the clusters get their versions."""

    def __init__(self, fleet: BackgroundFleet) -> None:
        self.seen: list[tuple[str, str]] = []
        """(cluster, image), as each was first written after another one."""
        self.wrong: list[str] = []
        self._fleet = fleet
        fleet.call(self._listen)

    def _listen(self, box: FleetInABox) -> None:
        for name in box.names:
            box[name].state.store.listeners.append(partial(self._note, box, name))

    def _note(self, box: FleetInABox, cluster: str, event: Event) -> None:
        body = event.body
        if body["kind"] != "Deployment" or body["metadata"]["name"] != "web":
            return
        if event.type == "DELETED":
            self.wrong.append(f"web was deleted in {cluster}")
            return
        image = image_of(body)
        before = [seen for name, seen in self.seen if name == cluster]
        if before and before[-1] == image:
            return
        self.seen.append((cluster, image))
        if DRIFT in (image, *before[-1:]):
            return  # Somebody's hand, or what puts it back.
        if image in before:
            self.wrong.append(f"{cluster} went back to {image}: {before}")
        self.wrong += self._too_early(box, cluster, image)

    def _too_early(self, box: FleetInABox, cluster: str, image: str) -> Iterator[str]:
        """Yield what of earlier stages, or of its own, does not let the cluster have this version."""
        held = {name: box[name].state.get("Deployment", "demo", "web") for name in CLUSTERS}
        for stage, names in STAGES.items():
            if cluster in names:
                moving = [name for name in names if image_of(held[name]) == image and not serves(held[name])]
                if len({*moving, cluster}) > WIDTH[stage]:
                    yield f"{image} is on its way to {moving} when it comes to {cluster}"
                return
            for name in names:
                if image_of(held[name]) != image or not serves(held[name]):
                    yield f"{image} comes to {cluster} when {name} has {image_of(held[name])} and does not serve it"

    def images(self) -> dict[str, str]:
        return self._fleet.call(
            lambda box: {name: image_of(box[name].state.get("Deployment", "demo", "web")) for name in CLUSTERS}
        )


@contextmanager
def scene(
    folder: Path, *, start_s: float = 1.5, **given: Any
) -> Iterator[tuple[BackgroundFleet, GitRepository, Daemon, Referee]]:
    """Six embedded clusters whose pods take their time, a store with a Rollout, a service that was not started."""
    folder.mkdir(parents=True, exist_ok=True)
    specs = [ClusterSpec(name=name, settings=Settings(start_s=start_s)) for name in CLUSTERS]
    with background_fleet(specs, folder, speed=5.0) as fleet:
        store = GitRepository(folder / "store", "staged", CLUSTERS)
        store.write("rollout.yaml", rollout(**given))
        store.write("web-policy.yaml", policy("web", "Deployment", *CLUSTERS))
        with Daemon(store.folder, fleet.kubeconfig, folder / "state/journal.db") as daemon:
            yield fleet, store, daemon, Referee(fleet)


def confirm(store: GitRepository) -> None:
    """Set the `spec.review.confirm` that a review of the files as they lie names."""
    path = store.folder / "fleet.yaml"
    said = run_text("diff", store.folder, "--base", "HEAD", code=None).stdout
    body = yaml.safe_load(path.read_text())
    digest = said.partition("spec.review.confirm: ")[2].split()[0]
    body["spec"] = {**body.get("spec", {}), "review": {"confirm": digest}}
    path.write_text(yaml.safe_dump(body))


def put(store: GitRepository, image: str) -> str:
    store.write("web.yaml", web(image, 2))
    return store.commit(image)


def until(daemon: Daemon, is_so: Callable[[], bool], what: str, *, may_die: bool = False) -> int:
    """Return how often the service died until something was so, each time started again."""
    deadline, deaths = time.monotonic() + REST_TIMEOUT_S, 0
    pause_s = 0.05
    while time.monotonic() < deadline:
        if not daemon.is_running:
            assert may_die, f"it ended with {daemon.wait()}: {daemon.text()[-3000:]}"
            assert daemon.wait() == -9, f"it ended with {daemon.wait()}: {daemon.text()[-3000:]}"
            deaths += 1
            daemon.start()
        if is_so():
            return deaths
        time.sleep(pause_s)
        pause_s = min(0.1, 1.2 * pause_s)
    raise AssertionError(f"not {what} within {REST_TIMEOUT_S:g} s: {daemon.text()[-4000:]}")


def all_have(referee: Referee, image: str) -> Callable[[], bool]:
    """Return whether every cluster has a version."""
    return lambda: set(referee.images().values()) == {image}


def recorded(daemon: Daemon) -> dict[str, tuple[str, bool]]:
    """By cluster the revision that the journal has in force, and whether it is completed."""
    with Journal.open(daemon.journal, read_only=True) as journal:
        found = journal.rollout_records().get("default", {})
    return {name: (record.revision, bool(record.completed_at)) for name, record in found.items()}


def trial(folder: Path, point: str) -> int:
    """Two commits over six clusters, the service killed at a fail point; how often it died.

    Raises:
        AssertionError: a cluster went back, or had a version before the gates of earlier stages were passed.
    """
    with scene(folder) as (_, store, daemon, referee):
        put(store, "nginx:1")
        daemon.start(RECONCILER_FAIL_POINT=point)
        deaths = until(daemon, all_have(referee, "nginx:1"), "the first revision everywhere", may_die=True)
        revision = put(store, "nginx:2")
        deaths += until(daemon, all_have(referee, "nginx:2"), "the second revision everywhere", may_die=True)
        ended = dict.fromkeys(CLUSTERS, (revision, True))
        deaths += until(daemon, lambda: recorded(daemon) == ended, "completed everywhere", may_die=True)
        assert not referee.wrong, referee.wrong
        assert {name for name, image in referee.seen if image == "nginx:2"} == set(CLUSTERS)
    return deaths


def points(folder: Path) -> list[str]:
    """The fail points that the same commits pass, by number and name."""
    trace = folder / "points"
    with scene(folder / "traced") as (_, store, daemon, referee):
        put(store, "nginx:1")
        daemon.start(RECONCILER_FAIL_POINT_LOG=str(trace))
        until(daemon, all_have(referee, "nginx:1"), "the first revision everywhere")
        revision = put(store, "nginx:2")
        until(daemon, lambda: recorded(daemon) == dict.fromkeys(CLUSTERS, (revision, True)), "completed everywhere")
        assert daemon.stop() == 0
    return trace.read_text().splitlines()
