"""What the leader decides over all shards: division by room, failover, what runs once; and who takes over what.

Source: ADR 22. The scene is that of `test_shards`: m1 is of shard a, m2 and m3 of shard b.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from reconciler.sim import ClusterSpec, background_fleet
from reconciler.sim.cluster import NodeSpec
from tests.e2e.daemon_process import Daemon
from tests.e2e.test_shards import CLUSTERS, Scene, journal_of, start
from tests.fakes.documents import policy, web

DYNAMIC = {
    "clusterAffinity": {"clusterNames": ["m1", "m2", "m3"]},
    "replicaScheduling": {
        "replicaSchedulingType": "Divided",
        "replicaDivisionPreference": "Weighted",
        "weightPreference": {"dynamicWeight": "AvailableReplicas"},
    },
}
ONE_CLUSTER = {
    "clusterAffinity": {"clusterNames": ["m1", "m3"]},
    "spreadConstraints": [{"spreadByField": "cluster", "minGroups": 1, "maxGroups": 1}],
}
pytestmark = pytest.mark.timeout(300)


def asking(replicas: int, cpu: str, image: str = "nginx:1") -> dict[str, Any]:
    """A Deployment whose pods each ask for so much."""
    made = web(image, replicas)
    made["spec"]["template"]["spec"]["containers"][0]["resources"] = {"requests": {"cpu": cpu}}
    return made


@contextmanager
def scene(folder: Path, **cpu: str) -> Iterator[Scene]:
    """`cpu`: of the node of a cluster; 4 where nothing is said."""
    specs = [ClusterSpec(name=name, nodes=(NodeSpec(name="n1", cpu=cpu.get(name, "4")),)) for name in CLUSTERS]
    with background_fleet(specs, folder) as fleet:
        found = Scene(folder, fleet)
        with found.leader, found.a, found.b:
            yield found


def test_replicas_are_divided_by_the_room_that_all_shards_have(tmp_path: Path) -> None:
    with scene(tmp_path, m1="2", m2="4", m3="6") as found:
        found.store.write("web.yaml", asking(12, "500m"), policy("web", "Deployment", placement=DYNAMIC))
        found.store.commit()
        start(found)
        found.until(lambda: found.replicas() == {"m1": 2, "m2": 4, "m3": 6}, "them to be divided by room")
        # More of them, with less room left: everybody divides the rest alike.
        found.store.write("web.yaml", asking(18, "500m"), policy("web", "Deployment", placement=DYNAMIC))
        found.store.commit()
        found.until(lambda: sum(found.replicas().values()) == 18, "all to be assigned")
        found.until(lambda: _is_whole(found, 18), "all shards to be in step")


def test_what_breaks_in_one_shard_is_taken_over_by_another(tmp_path: Path) -> None:
    terms = {"failover": {"application": {"decisionConditions": {"tolerationSeconds": 1}, "purgeMode": "Graciously"}}}
    with scene(tmp_path) as found:
        made = policy("web", "Deployment", placement=ONE_CLUSTER)
        made["spec"] |= terms
        found.store.write("web.yaml", web("nginx:1", 2), made)
        found.store.commit()
        start(found)
        found.until(lambda: len(found.replicas()) == 1, "it to be in one cluster")
        (before,) = found.replicas()
        (other,) = {"m1", "m3"} - {before}
        found.until(lambda: _available(found, before) == 2, "it to serve there")
        found.fleet.call(lambda box: box[before].set_node_ready("n1", is_ready=False))
        found.until(lambda: _available(found, other) == 2, "the other shard to serve it")


def test_a_second_leader_goes_on_where_the_first_was_killed(tmp_path: Path) -> None:
    with scene(tmp_path, m1="2", m2="4", m3="6") as found:
        second = found.process("second")
        with second:
            found.store.write("web.yaml", asking(12, "500m"), policy("web", "Deployment", placement=DYNAMIC))
            found.store.commit()
            start(found)
            second.start()
            found.until(lambda: found.replicas() == {"m1": 2, "m2": 4, "m3": 6}, "them to be divided by room")
            found.leader.kill()
            found.store.write("web.yaml", asking(12, "500m", "nginx:2"), policy("web", "Deployment", placement=DYNAMIC))
            found.store.commit()
            found.until(lambda: _images(found) == {"nginx:2"}, "the next leader to let the commit pass")
            assert found.replicas() == {"m1": 2, "m2": 4, "m3": 6}, "nothing is divided anew"


def test_a_journal_that_was_of_one_shard_knows_nothing_of_another(tmp_path: Path) -> None:
    """Each process has had each shard at the end, with the journal of the other one."""
    with scene(tmp_path) as found:
        one, two, three = (found.process(name, "--role", "applier") for name in ("one", "two", "three"))
        with one, two, three:
            found.put("1")
            found.store.commit()
            found.leader.start()
            one.start()
            found.until(lambda: len(_held_by(found, one)) == 1, "one to have a shard")
            two.start()
            found.until(lambda: found.everywhere("1"), "two to have the other one")
            of_one, of_two = _held_by(found, one), _held_by(found, two)
            three.start()
            one.kill()
            found.until(lambda: _held_by(found, three) == of_one, "three to have taken over from one")
            one.start()
            found.put("2")
            found.store.commit()
            found.until(lambda: found.everywhere("2"), "the next commit to be everywhere")
            two.kill()
            found.until(lambda: _held_by(found, one) == of_two, "one to have taken over from two")
            found.store.write("settings.yaml")
            found.store.commit()
            found.until(lambda: not found.where("ConfigMap", "settings"), "what left the store to be gone")


def test_a_cluster_that_is_away_changes_hands_when_it_is_back(tmp_path: Path) -> None:
    with scene(tmp_path) as found:
        found.put("1")
        found.store.commit()
        start(found)
        found.until(lambda: found.everywhere("1"), "all to be there")
        found.fleet.wait(lambda box: box.servers["m2"].stop())
        found.shard({"m2": "a"})
        found.put("2")
        revision = found.store.commit()
        found.until(lambda: found.status(found.a)["revision"] == revision, "the new one to know of it")
        found.until(lambda: found.values()["m1"] == "2", "the others to go on")
        assert found.mark("m2")["shard"] == "b"
        found.fleet.wait(lambda box: box.servers["m2"].start())
        found.until(lambda: found.everywhere("2"), "it to have changed hands")
        assert found.mark("m2")["shard"] == "a"


def _is_whole(found: Scene, replicas: int) -> bool:
    return sum(_available(found, name) for name in ("m1", "m2", "m3")) == replicas


def _available(found: Scene, cluster: str) -> int:
    live = found.get(cluster, "Deployment", "web") or {}
    return int(live.get("status", {}).get("availableReplicas", 0))


def _images(found: Scene) -> set[str]:
    bodies = [found.get(cluster, "Deployment", "web") for cluster in ("m1", "m2", "m3")]
    return {each["spec"]["template"]["spec"]["containers"][0]["image"] for each in bodies if each is not None}


def _held_by(found: Scene, process: Daemon) -> set[str]:
    """The shards whose Lease a process holds, by the journal in the marks of its clusters."""
    uuid = journal_of(process)
    marks = {"a": found.mark("m1"), "b": found.mark("m2")}
    return {shard for shard, mark in marks.items() if mark.get("journal") == uuid and mark.get("shard") == shard}
