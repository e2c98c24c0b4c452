"""Which clusters are whose, with shards and with clusters that have a process of their own. Source: ADR 21; ADR 22."""

from __future__ import annotations

from reconciler.daemon.observing.reach import Reach, pulling
from reconciler.model.cluster import Cluster
from reconciler.model.fleet import Fleet, FleetSettings, HighAvailability
from reconciler.stages.shards import SHARD_LABEL

CLUSTERS = {
    "m1": Cluster(name="m1", labels={SHARD_LABEL: "a"}),
    "m2": Cluster(name="m2", labels={SHARD_LABEL: "b"}),
    "far": Cluster(name="far", pulls=True),
}


def fleet(*shards: str) -> Fleet:
    ha = HighAvailability(cluster="m1", shards=shards)
    return Fleet(revision="1", settings=FleetSettings(name="f", ha=ha), clusters=CLUSTERS)


def test_without_shards_one_process_has_all_that_do_not_pull() -> None:
    assert Reach().own(fleet()) == {"m1", "m2"}
    assert Reach().elsewhere(fleet()) == {"far"}


def test_with_shards_the_leader_has_none_and_each_applier_its_own() -> None:
    assert Reach().own(fleet("a", "b")) == set()
    assert Reach(applies=True, shard="a").own(fleet("a", "b")) == {"m1"}
    assert Reach(applies=True, shard="b").elsewhere(fleet("a", "b")) == {"m1", "far"}


def test_an_applier_that_holds_no_lease_has_none() -> None:
    assert Reach(applies=True).own(fleet("a", "b")) == set()


def test_a_command_of_a_person_is_for_all_clusters_whatever_shards_there_are() -> None:
    assert pulling(fleet("a", "b")) == pulling(fleet()) == {"far"}
