from __future__ import annotations

import asyncio
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow, Ledger
from reconciler.api.refs import GVK, Identity
from reconciler.controller.watches.handlers import ClusterTasks, PerClient
from reconciler.controller.watches.kind_watches import Watches, WatchKeeper
from reconciler.controller.watches.polls import Polls
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import MemberCluster
from reconciler.scheduler import schedule_fleet
from tests.fakes.worlds import config_map, deployment, fleet_of, job, policy

CONFIG_MAP, DEPLOYMENT, JOB = GVK("", "v1", "ConfigMap"), GVK("apps", "v1", "Deployment"), GVK("batch", "v1", "Job")
NAMESPACE = GVK("", "v1", "Namespace")


class Asked(PerClient[ClusterTasks[GVK]]):
    """Says what would be watched or polled, cluster by cluster, and how often."""

    def __init__(self) -> None:
        super().__init__(ClusterTasks)
        self.times, self.interval_s = 0, 0.0

    @property
    def now(self) -> dict[str, frozenset[GVK]]:
        return {name: found.kinds for name, found in self.clusters.items()}

    def every(self, interval_s: float) -> None:
        self.interval_s = interval_s

    def keep(self, member: MemberCluster, kinds: frozenset[GVK], selector: str) -> None:
        super().keep(member, kinds, selector)
        self.times += 1


class Kept:
    """The kinds that would be watched and polled, by cluster."""

    def __init__(self) -> None:
        self.watched, self.polled = Asked(), Asked()
        self.keeper = WatchKeeper(cast("Watches", self.watched), cast("Polls", self.polled))
        self.members = {name: SimpleNamespace(name=name) for name in ("m1", "m2")}

    @property
    def now(self) -> dict[str, frozenset[GVK]]:
        return self.watched.now

    def follow(
        self, fleet: Fleet, ledger: Ledger | None = None, *names: str, anew: bool = False
    ) -> dict[str, frozenset[GVK]]:
        members: Any = {name: self.members[name] for name in names or self.members}
        schedule = schedule_fleet(fleet, Observations(), "2026-11-21T10:00:00Z", interpreters=BUILT_IN_KINDS)
        self.keeper.follow(schedule, ledger or {}, cast("dict[str, MemberCluster]", members), anew=anew)
        return self.now


def store(*documents: dict[str, Any]) -> Fleet:
    return fleet_of(*documents, clusters=("m1", "m2"))


def row(gvk: GVK) -> dict[Identity, AppliedRow]:
    identity = Identity(gvk.group, gvk.kind, "demo", "old")
    return {identity: AppliedRow(cluster="m1", gvk=gvk, identity=identity)}


def test_kinds_are_watched_where_they_are_placed_and_where_they_were_applied() -> None:
    fleet = store(config_map(), policy("ConfigMap", "m1"), deployment(), policy("Deployment", "m1", "m2", name="d"))
    now = Kept().follow(fleet, {"m2": row(JOB)})
    assert now == {"m1": {CONFIG_MAP, DEPLOYMENT, NAMESPACE}, "m2": {DEPLOYMENT, NAMESPACE, JOB}}


def test_what_no_policy_places_is_watched_nowhere() -> None:
    assert Kept().follow(store(config_map(), job()), {"m1": row(JOB)}) == {"m1": {JOB}, "m2": set()}


def test_a_watch_begins_with_the_first_placement_of_a_kind_in_a_cluster_and_ends_with_the_last_copy() -> None:
    kept, documents = Kept(), (config_map(), deployment(), policy("Deployment", "m1", "m2", name="d"))
    kept.follow(store(*documents, policy("ConfigMap", "m1")))
    assert CONFIG_MAP not in kept.now["m2"]
    kept.follow(store(*documents, policy("ConfigMap", "m2")), {"m1": row(CONFIG_MAP)})
    assert CONFIG_MAP in kept.now["m2"]
    assert CONFIG_MAP in kept.now["m1"], "its copy has not left yet"
    kept.follow(store(*documents, policy("ConfigMap", "m2")), {"m1": {}})
    assert CONFIG_MAP not in kept.now["m1"]
    assert CONFIG_MAP in kept.now["m2"]


def test_the_last_of_several_objects_ends_the_watch_of_their_kind() -> None:
    kept, claims = Kept(), policy("ConfigMap", "m1")
    both = store(config_map("a"), config_map("b"), claims)
    assert CONFIG_MAP in kept.follow(both)["m1"]
    assert CONFIG_MAP in kept.follow(store(config_map("b"), claims))["m1"]
    assert CONFIG_MAP not in kept.follow(store(claims))["m1"]


def test_another_version_of_a_kind_is_watched_instead() -> None:
    kept = Kept()
    for version in ("v1", "v1beta1"):
        widget = {**config_map(), "apiVersion": f"example.com/{version}", "kind": "Widget"}
        selectors = [{"apiVersion": f"example.com/{version}", "kind": "Widget"}]
        now = kept.follow(store(widget, policy("Widget", "m1", resourceSelectors=selectors)))
        assert now["m1"] == {GVK("example.com", version, "Widget"), NAMESPACE}


def test_one_kind_is_watched_where_there_is_nothing_so_that_a_lost_cluster_is_noticed() -> None:
    kept = Kept()
    assert kept.follow(store(config_map(), policy("ConfigMap", "m1")))["m2"] == {NAMESPACE}
    assert kept.follow(store(config_map()), {})["m2"] == set(), "nothing is placed anywhere"


def test_watches_are_left_alone_where_nothing_differs_unless_all_are_looked_after() -> None:
    kept, fleet = Kept(), store(config_map(), policy("ConfigMap", "m1"))
    kept.follow(fleet)
    kept.follow(fleet)
    assert kept.watched.times == 2
    kept.follow(fleet, anew=True)
    assert kept.watched.times == 4


def test_a_cluster_that_left_the_fleet_is_no_longer_watched() -> None:
    kept, fleet = Kept(), store(config_map(), policy("ConfigMap", "m1"))
    kept.follow(fleet)
    assert kept.follow(fleet, {}, "m2").keys() == {"m2"}
    assert kept.follow(fleet, {}, "m1", "m2").keys() == {"m1", "m2"}


def settings(mode: str) -> dict[str, Any]:
    spec = {"drift": {"mode": mode, "resync": "5m"}}
    return {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "test"}, "spec": spec}


def test_in_poll_mode_nothing_is_watched_and_every_kind_is_listed_everywhere() -> None:
    kept = Kept()
    kept.follow(store(settings("poll"), config_map(), policy("ConfigMap", "m1")), {"m2": row(JOB)})
    assert kept.now == {}
    assert kept.polled.now == {"m1": {CONFIG_MAP, NAMESPACE}, "m2": {CONFIG_MAP, NAMESPACE, JOB}}
    assert kept.polled.interval_s == 300


def test_a_change_of_the_mode_ends_what_was_done_before_in_every_cluster() -> None:
    kept, documents = Kept(), (config_map(), policy("ConfigMap", "m1"))
    kept.follow(store(settings("watch"), *documents))
    assert kept.now.keys() == {"m1", "m2"}
    kept.follow(store(settings("poll"), *documents))
    assert not kept.now
    assert kept.polled.now.keys() == {"m1", "m2"}
    kept.follow(store(settings("watch"), *documents))
    assert kept.now.keys() == {"m1", "m2"}
    assert not kept.polled.now


async def test_a_cluster_that_is_reached_otherwise_or_dropped_ends_all_that_was_asked_of_it() -> None:
    """One that is followed again over the same client stays as it is."""
    kept, fleet = Kept(), store(config_map(), policy("ConfigMap", "m1"))

    def asked() -> asyncio.Task[None]:
        kept.watched.clusters["m1"].begin(CONFIG_MAP, partial(asyncio.sleep, 3600), "asking")
        return kept.watched.clusters["m1"].tasks[CONFIG_MAP]

    kept.follow(fleet)
    first = asked()
    kept.follow(fleet, anew=True)
    assert asked() is first
    kept.members["m1"] = SimpleNamespace(name="m1")
    kept.follow(fleet)
    other = asked()
    kept.keeper.drop("m1")
    kept.follow(fleet)
    last = asked()
    await kept.keeper.close()
    await asyncio.gather(first, other, last, return_exceptions=True)
    assert [task.cancelled() for task in {first, other, last}] == [True, True, True]
