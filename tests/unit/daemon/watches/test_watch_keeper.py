from __future__ import annotations

from typing import Any, cast

from reconciler.adapters.journal.mirror import Ledger
from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.watches.watch_keeper import WatchKeeper
from reconciler.daemon.watches.watches import Watches
from reconciler.model.fleet import Fleet
from reconciler.model.ledger import AppliedRow
from reconciler.model.refs import GVK, Identity
from tests.fakes.worlds import config_map, deployment, fleet_of, job

CONFIG_MAP, DEPLOYMENT, JOB = GVK("", "v1", "ConfigMap"), GVK("apps", "v1", "Deployment"), GVK("batch", "v1", "Job")


class Kept:
    """Says what would be watched, cluster by cluster; members are their names."""

    def __init__(self) -> None:
        self.now: dict[str, frozenset[GVK]] = {}
        self.keeper = WatchKeeper(cast("Watches", self))
        self.times = 0

    def drop(self, member: str) -> None:
        del self.now[member]

    def keep(self, member: str, kinds: frozenset[GVK], selector: str) -> None:
        self.now[member] = kinds
        self.times += 1

    def follow(
        self, fleet: Fleet, ledger: Ledger | None = None, *names: str, anew: bool = False
    ) -> dict[str, frozenset[GVK]]:
        members: Any = {name: name for name in names or ("m1", "m2")}
        self.keeper.follow(fleet, ledger or {}, cast("dict[str, MemberCluster]", members), anew=anew)
        return self.now


def row(gvk: GVK) -> dict[Identity, AppliedRow]:
    identity = Identity(gvk.group, gvk.kind, "demo", "old")
    return {identity: AppliedRow(cluster="m1", gvk=gvk, identity=identity)}


def test_kinds_of_the_store_are_watched_everywhere_and_applied_ones_where_they_were() -> None:
    now = Kept().follow(fleet_of(config_map()), {"m1": row(JOB)})
    assert now == {"m1": {CONFIG_MAP, JOB}, "m2": {CONFIG_MAP}}


def test_a_kind_that_comes_is_watched_and_one_that_goes_is_not() -> None:
    kept = Kept()
    kept.follow(fleet_of(config_map()))
    assert kept.follow(fleet_of(config_map(), deployment()))["m2"] == {CONFIG_MAP, DEPLOYMENT}
    assert kept.follow(fleet_of(deployment(), config_map("other"), job()))["m2"] == {CONFIG_MAP, DEPLOYMENT, JOB}
    assert kept.follow(fleet_of(deployment()))["m2"] == {DEPLOYMENT}


def test_a_kind_whose_last_copy_left_is_no_longer_watched() -> None:
    kept = Kept()
    kept.follow(fleet_of(config_map()), {"m1": row(JOB)})
    assert kept.follow(fleet_of(config_map()), {})["m1"] == {CONFIG_MAP}


def test_watches_are_left_alone_where_nothing_differs_unless_all_are_looked_after() -> None:
    kept, fleet = Kept(), fleet_of(config_map())
    kept.follow(fleet)
    kept.follow(fleet)
    assert kept.times == 2
    kept.follow(fleet, anew=True)
    assert kept.times == 4


def test_a_cluster_that_left_the_fleet_is_no_longer_watched() -> None:
    kept = Kept()
    kept.follow(fleet_of(config_map()))
    assert kept.follow(fleet_of(config_map()), {}, "m2").keys() == {"m2"}
    assert kept.follow(fleet_of(config_map()), {}, "m1", "m2").keys() == {"m1", "m2"}
