"""A cluster is let go of by who had it, or in the place of a shard that nobody leads. Source: ADR 22."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, cast

import pytest

from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.round.mark import Mark, holder_name, read_mark
from reconciler.daemon.shards.custody import Custody, let_go
from reconciler.errors import ObjectNotFound, WriteConflict
from reconciler.model.fleet import HighAvailability
from reconciler.model.observation import LiveObject
from reconciler.model.refs import GVK, Identity
from reconciler.stages.leadership import Lease, given_back, lease_body, lease_name

HA = HighAvailability(cluster="hub", lease_duration_s=10, shards=("a", "b"))
DATA = {"fleet": "shop", "journal": "j", "epoch": "3", "instance": "t", "term": "2", "shard": "a", "rollout.x": "kept"}


class FakeCluster:
    """Objects by name, with a version for each; whoever writes has to name the one that is there."""

    name = "m1"

    def __init__(self) -> None:
        self.bodies: dict[str, tuple[int, dict[str, Any]]] = {}

    def put(self, name: str, body: Mapping[str, Any]) -> None:
        version = self.bodies[name][0] + 1 if name in self.bodies else 1
        self.bodies[name] = version, dict(body)

    async def get(self, gvk: GVK, namespace: str, name: str) -> LiveObject:
        if name not in self.bodies:
            raise ObjectNotFound(self.name, "not found")
        version, body = self.bodies[name]
        identity = Identity(gvk.group, gvk.kind, namespace, name)
        return LiveObject(gvk=gvk, identity=identity, uid="u", resource_version=str(version), body=body)

    async def apply(
        self, gvk: GVK, namespace: str, name: str, body: dict[str, Any], *, resource_version: str, **_: Any
    ) -> LiveObject:
        if resource_version != str(self.bodies[name][0]):
            raise WriteConflict(self.name, "somebody else wrote it")
        self.put(name, body)
        return await self.get(gvk, namespace, name)

    @property
    def member(self) -> MemberCluster:
        return cast("MemberCluster", self)

    def mark(self) -> Mark:
        async def read() -> Mark:
            return read_mark(await self.get(GVK("", "v1", "ConfigMap"), "fleet-system", holder_name("shop")))

        found: Mark = run(read())
        return found


def run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.run(work)


@pytest.fixture
def cluster() -> FakeCluster:
    found = FakeCluster()
    found.put(holder_name("shop"), {"data": DATA})
    return found


def test_who_lets_go_leaves_everything_else_of_the_mark(cluster: FakeCluster) -> None:
    assert run(let_go(cluster.member, "shop", lambda mark: mark.journal == "j"))
    found = cluster.mark()
    assert found.is_released
    assert (found.journal, found.epoch, found.term, found.shard) == ("j", 3, 2, "a")
    assert found.entries == {"rollout.x": "kept"}


def test_a_mark_of_somebody_else_is_left(cluster: FakeCluster) -> None:
    assert not run(let_go(cluster.member, "shop", lambda mark: mark.journal == "other"))
    assert not cluster.mark().is_released


def test_a_cluster_without_a_mark_is_free() -> None:
    assert run(let_go(FakeCluster().member, "shop", lambda mark: True))


class Scene:
    """The cluster of the Leases, and a clock."""

    def __init__(self) -> None:
        self.hub = FakeCluster()
        self.now_s = 100.0
        self.custody = Custody(self.hub.member, "shop", HA, lambda: self.now_s)

    def renew(self, holder: str) -> None:
        lease = Lease(holder=holder, duration_s=10, transitions=2)
        self.put(lease if holder else given_back(lease, ""))

    def put(self, lease: Lease) -> None:
        self.hub.put(lease_name("shop", "a"), lease_body(lease_name("shop", "a"), "fleet-system", lease))

    def is_led(self) -> bool:
        return bool(run(self.custody.is_led("a")))


def test_a_shard_is_led_until_nobody_has_renewed_for_as_long_as_the_lease_lasts() -> None:
    scene = Scene()
    scene.renew("somebody")
    assert scene.is_led()
    scene.now_s += 9
    assert scene.is_led()
    scene.renew("somebody")
    scene.now_s += 9
    assert scene.is_led(), "it was renewed between two looks"
    scene.now_s += 11
    assert not scene.is_led()


def test_a_lease_that_was_given_back_is_free_and_one_that_is_not_there_is_believed_only_after_a_while() -> None:
    scene = Scene()
    assert scene.is_led(), "somebody may have deleted it while its holder goes on"
    scene.now_s += 11
    assert not scene.is_led()
    scene.renew("")
    assert not scene.is_led()
    scene.put(Lease(holder="", duration_s=10, transitions=2))
    assert scene.is_led(), "a hand emptied it, and whoever held it may not know yet"


@pytest.mark.parametrize(
    ("holder", "data", "is_free"),
    [
        ("somebody", DATA, False),
        ("", DATA, True),
        ("", {key: value for key, value in DATA.items() if key != "term"}, False),
    ],
)
def test_only_what_nobody_leads_is_let_go_of_in_its_place(
    holder: str, data: dict[str, str], is_free: bool, cluster: FakeCluster
) -> None:
    scene = Scene()
    scene.renew(holder)
    cluster.put(holder_name("shop"), {"data": data})
    found = run(scene.custody.take_from_nobody({"m1": cluster.member}, {"m1": cluster.mark()}, "mine"))
    assert found == ({"m1"} if is_free else set())
    assert cluster.mark().is_released is is_free


def test_who_took_the_cluster_meanwhile_keeps_it(cluster: FakeCluster) -> None:
    scene = Scene()
    scene.renew("")
    seen = cluster.mark()
    cluster.put(holder_name("shop"), {"data": {**DATA, "epoch": "4", "instance": "another"}})
    assert run(scene.custody.take_from_nobody({"m1": cluster.member}, {"m1": seen}, "mine")) == set()
    assert not cluster.mark().is_released


def test_what_this_journal_held_without_a_lease_is_let_go_of(cluster: FakeCluster) -> None:
    scene = Scene()
    scene.renew("somebody")
    cluster.put(holder_name("shop"), {"data": {"fleet": "shop", "journal": "mine", "epoch": "3", "instance": "t"}})
    marks = {"m1": cluster.mark()}
    assert run(scene.custody.take_from_nobody({"m1": cluster.member}, marks, "other")) == set()
    assert run(scene.custody.take_from_nobody({"m1": cluster.member}, marks, "mine")) == {"m1"}
    assert cluster.mark().is_released
