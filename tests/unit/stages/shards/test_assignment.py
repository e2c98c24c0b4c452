"""Which shard has which cluster. Source: design#shards; ADR 22."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.model.cluster import Cluster
from reconciler.model.fleet import Fleet, FleetSettings, HighAvailability
from reconciler.stages.shards import SHARD_LABEL, clusters_of, is_shard_name, preference, shard_of

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789", min_size=1, max_size=12)
SHARDS = st.sets(NAMES, min_size=1, max_size=6)


def cluster(name: str, label: str | None = None, *, pulls: bool = False) -> Cluster:
    return Cluster(name=name, labels={} if label is None else {SHARD_LABEL: label}, pulls=pulls)


def test_a_label_says_it_and_one_that_names_no_shard_leaves_the_cluster_to_nobody() -> None:
    assert shard_of(cluster("m1", "b"), ("a", "b")) == "b"
    assert shard_of(cluster("m1", "c"), ("a", "b")) is None
    assert shard_of(cluster("m1", "c"), ()) is None
    assert shard_of(cluster("m1"), ()) is None
    assert shard_of(cluster("m1", "a", pulls=True), ("a", "b")) is None


@given(clusters=st.sets(NAMES, max_size=30), shards=SHARDS)
def test_each_cluster_is_of_one_shard(clusters: set[str], shards: set[str]) -> None:
    ha = HighAvailability(cluster="x", shards=tuple(sorted(shards)))
    fleet = Fleet(
        revision="1", settings=FleetSettings(name="f", ha=ha), clusters={name: cluster(name) for name in clusters}
    )
    parts = [clusters_of(shard, fleet) for shard in shards]
    assert sum(map(len, parts)) == len(clusters)
    assert frozenset().union(*parts) == clusters


@given(clusters=st.sets(NAMES, max_size=30), shards=SHARDS, other=NAMES)
def test_a_shard_that_comes_takes_from_all_and_moves_nothing_between_the_others(
    clusters: set[str], shards: set[str], other: str
) -> None:
    for name in clusters:
        before, after = shard_of(cluster(name), shards), shard_of(cluster(name), shards | {other})
        assert after in (before, other)


@given(shards=SHARDS, process=st.text(max_size=20))
def test_a_process_asks_for_every_shard_in_some_order(shards: set[str], process: str) -> None:
    assert sorted(preference(shards, process)) == sorted(shards)


def test_shards_have_about_as_many_clusters_each() -> None:
    found = Counter(shard_of(cluster(f"cluster-{number}"), ("a", "b", "c", "d")) for number in range(1000))
    assert found.keys() == {"a", "b", "c", "d"}
    assert min(found.values()) > 200


@pytest.mark.parametrize(
    ("name", "is_one"),
    [("a", True), ("eu-west-1", True), ("", False), ("A", False), ("a.b", False), ("-a", False), ("a" * 41, False)],
)
def test_what_may_name_a_shard(name: str, is_one: bool) -> None:
    assert is_shard_name(name) is is_one
