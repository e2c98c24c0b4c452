"""A few points of the crash matrix on real clusters, judged from their audit logs. Source: design#promise-4."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.test_daemon_follows import Scene
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver

POINTS = (28, 41, 62, 75)


@pytest.mark.parametrize("point", POINTS)
def test_a_crash_repeats_and_loses_nothing(tmp_path: Path, three_clusters: ThreeClusters, point: int) -> None:
    scene = Scene(tmp_path, three_clusters)
    since = scene.marks()
    with scene.daemon:
        scene.put("stays", "m1", "m2", a="1")
        scene.put("moves", "m1", b="1")
        scene.put("goes", "m1", "m3", c="1")
        scene.store.commit()
        scene.daemon.start(RECONCILER_FAIL_POINT=str(point))
        reached(scene, ("m1", "stays", {"a": "1"}), ("m1", "moves", {"b": "1"}), ("m3", "goes", {"c": "1"}))
        scene.put("stays", "m1", "m2", a="2")
        scene.put("moves", "m2", b="2")
        scene.store.write("goes.yaml")
        scene.store.commit()
        reached(
            scene, ("m1", "stays", {"a": "2"}), ("m2", "stays", {"a": "2"}), ("m2", "moves", {"b": "2"}),
            ("m1", "moves", None), ("m1", "goes", None), ("m3", "goes", None),
        )  # fmt: skip
        wait_until(lambda: not scene.daemon.has_open_intents(), "no open intent")
    assert scene.daemon.starts == 2, "it died once"
    found = done(scene, since)
    assert {count for (verb, *_), count in found.items() if verb == "create"} == {1}, found
    deleted = {(cluster, name) for verb, cluster, name in found if verb == "delete"}
    assert deleted == {("m1", "moves"), ("m1", "goes"), ("m3", "goes")}


def reached(scene: Scene, *facts: tuple[str, str, dict[str, str] | None]) -> None:
    """Return once all is so; a daemon that died is started again."""

    def is_so() -> bool:
        if not scene.daemon.is_running:
            scene.daemon.start()
        return all(scene.data(cluster, name) == data for cluster, name, data in facts)

    wait_until(is_so, f"{facts}; the daemon said {scene.daemon.text()[-1500:]}")


def done(scene: Scene, since: dict[str, int]) -> Counter[tuple[str, str, str]]:
    """(create or delete, cluster, name) of our ConfigMaps, as far as they succeeded."""
    found: Counter[tuple[str, str, str]] = Counter()
    for name, cluster in scene.clusters.items():
        for event in cluster.writes(since[name], "fleet-reconciler/"):
            reference, code = event["objectRef"], event["responseStatus"]["code"]
            if reference.get("namespace") == scene.namespace and reference["resource"] == "configmaps":
                if code == 201:
                    found["create", name, reference["name"]] += 1
                elif event["verb"] == "delete" and code == 200:
                    found["delete", name, reference["name"]] += 1
    return found
