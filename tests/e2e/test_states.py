"""The state of every object in reports and in API servers, while things break one after another.

Source: design#promise-3; design#fights; design#foreign-objects; design#guards.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.scene import CLUSTERS, Scene, running
from tests.real_clusters import wait_until
from tests.unit.cli.command_line import run
from tests.yaml_text import load_yaml

pytestmark = pytest.mark.apiserver


@pytest.fixture
def scene(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Scene]:
    with running(Scene(tmp_path, three_clusters)) as found:
        yield found


def test_what_is_said_is_what_is(scene: Scene) -> None:
    scene.until("m1", {"synced": 6})  # a to d, web, and the namespace
    scene.until("m2", {"synced": 2})
    wait_until(lambda: not scene.troubles(), "all to be well", seen=scene.seen)
    scene.check()
    for breaks in (a_roll_out_is_stuck, a_foreign_object_is_in_the_way, two_writers_fight, a_guard_holds_deletions,
                   a_person_suspends_a_cluster, a_cluster_is_away, a_cluster_leaves_the_store):  # fmt: skip
        breaks(scene)


def a_roll_out_is_stuck(scene: Scene) -> None:
    """In sync, and green nowhere: its image cannot be pulled."""
    scene.put_deployment("no.such/image:1")
    scene.store.commit()
    scene.cannot_pull("no.such/image:1")
    why = "its image cannot be pulled (ImagePullBackOff: "
    scene.until_trouble("m1", "web", sync="Synced", health="Degraded", healthWhy=why)
    scene.daemon.says("HealthDegraded")
    counted = 'object_health{cluster="m1",health="Degraded"} 1.0'
    wait_until(lambda: counted in scene.page("/metrics"), "it to be counted")


def a_foreign_object_is_in_the_way(scene: Scene) -> None:
    """Somebody else made one of that name."""
    foreign = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "e", "namespace": scene.namespace},
               "data": {"value": "theirs"}}  # fmt: skip
    scene.clusters["m2"].apply(foreign)
    scene.put("e", "1", "m2")
    scene.store.commit()
    scene.until("m2", {"synced": 2, "refused": 1})
    scene.daemon.says("ObjectRefused")
    scene.check()


def two_writers_fight(scene: Scene) -> None:
    """While we hold back, what they wrote stands, and nothing calls it Synced."""
    for number in range(20):
        if "FightDetected" in scene.daemon.text():
            break
        scene.by_hand("m1", "b", f"theirs-{number}")
        wait_until(lambda: scene.held_by("m1")["b"] == "1" or "FightDetected" in scene.daemon.text(), "a heal")
    scene.by_hand("m1", "b", "theirs at last")
    row = scene.until_trouble("m1", "b", state="fought")
    assert "by-hand" in row["why"]
    assert scene.held_by("m1")["b"] == "theirs at last"
    scene.check()


def a_guard_holds_deletions(scene: Scene) -> None:
    """Two at once are one too many."""
    for name in ("c", "d"):
        scene.put(name, "")
    scene.store.commit()
    assert scene.until_trouble("m1", "c", state="held", by="guard")["sync"] == "OutOfSync"
    scene.check()


def a_person_suspends_a_cluster(scene: Scene) -> None:
    """Check that pending changes wait for that person."""
    done = run("suspend", "cluster", "m3", "--reason", "freeze", "--journal", str(scene.journal))
    assert done.code == 0, done.err
    scene.put("a", "2", *CLUSTERS)
    scene.store.commit()
    assert "freeze" in scene.until_trouble("m3", "a", state="held", by="suspended")["why"]
    scene.until("m2", {"synced": 2, "refused": 1})
    assert (scene.held_by("m3")["a"], scene.held_by("m2")["a"]) == ("1", "2")
    scene.check()


def a_cluster_is_away(scene: Scene) -> None:
    """Nobody knows anything of it, and everybody says so."""
    scene.clusters["m3"].stop()
    try:
        scene.until("m3", {"unknown": 2})
        (away,) = [entry for entry in scene.status()["clusters"] if entry["name"] == "m3"]
        assert (away["up"], bool(away["why"]), bool(away["lastSuccess"])) == (False, True, True)
        scene.check("m3")
    finally:
        scene.clusters["m3"].start()
    scene.until("m3", {"synced": 1, "held": 1})


def a_cluster_leaves_the_store(scene: Scene) -> None:
    """Check that its objects stay, and are not forgotten."""
    scene.store.write("clusters/m3.yaml")
    scene.put("a", "2", "m1", "m2")
    scene.store.commit()
    scene.until("m3", {"left": 2})
    assert scene.held_by("m3") == {"a": "1"}
    as_yaml = ("status", "--journal", str(scene.journal), "-o", "yaml")
    wait_until(lambda: load_yaml(run(*as_yaml).out) == scene.status(), "YAML to say what JSON does")
