"""How old what a shard tells is, by the clock of who reads; and when a shard tells. Source: ADR 22."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from msgspec.structs import replace

from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.shards.pictures import AGAIN_S, STALE_S, STUCK_S, Pictures, Teller
from reconciler.daemon.vitals.board import Shown
from reconciler.daemon.vitals.vitals import Vitals
from reconciler.engine import Round
from reconciler.errors import ClusterUnreachable, ObjectNotFound
from reconciler.model.observation import LiveObject
from reconciler.model.plan import Plan
from reconciler.model.refs import GVK, Identity
from reconciler.report.status.state_document import Picture
from reconciler.stages.shards import ShardPicture, ToldCluster, packed_picture, picture_body, picture_name
from reconciler.stages.state import Facts, ShardTold, StateTables
from tests.fakes.clocks import TestClock
from tests.fakes.worlds import NOW
from tests.properties.test_whole import of_shard, sharded
from tests.unit.stages.state.scenes import Scene

OF_B = ShardPicture(shard="b", process="box-2", revision="r1", clusters={"m2": ToldCluster(syncs={"synced": 2})})


class FakeHub:
    """The cluster of the Leases: objects with a version for each. `why`: why it does not answer."""

    name = "hub"

    def __init__(self) -> None:
        self.bodies: dict[str, tuple[int, Mapping[str, Any]]] = {}
        self.why = ""

    def put(self, name: str, body: Mapping[str, Any]) -> None:
        self.bodies[name] = self.bodies.get(name, (0, {}))[0] + 1, body

    def tell(self, picture: ShardPicture = OF_B, **changed: Any) -> None:
        name = picture_name("test", picture.shard)
        self.put(name, picture_body(name, "", picture, packed_picture(replace(picture, **changed)), NOW))

    async def get(self, gvk: GVK, namespace: str, name: str) -> LiveObject:
        if self.why:
            raise ClusterUnreachable(self.name, self.why)
        if name not in self.bodies:
            raise ObjectNotFound(self.name, "not found")
        version, body = self.bodies[name]
        identity = Identity(gvk.group, gvk.kind, namespace, name)
        return LiveObject(gvk=gvk, identity=identity, uid="u", resource_version=str(version), body=body)

    async def create(self, gvk: GVK, namespace: str, name: str, body: Mapping[str, Any], **_: Any) -> LiveObject:
        self.put(name, body)
        return await self.get(gvk, namespace, name)

    async def apply(self, gvk: GVK, namespace: str, name: str, body: Mapping[str, Any], **_: Any) -> LiveObject:
        return await self.create(gvk, namespace, name, body)


class Turns(TestClock):
    """A clock that lets something happen whenever somebody sleeps, and ends the sleeper after the last of it."""

    def __init__(self, *turns: Callable[[], object]) -> None:
        super().__init__()
        self._turns = list(turns)

    async def sleep(self, seconds: float) -> None:
        if not self._turns:
            raise asyncio.CancelledError
        self.advance(seconds)
        self._turns.pop(0)()


class Reader:
    """A process that reads what the others tell, at a time that the test says."""

    def __init__(self, hub: FakeHub, shard: str = "a") -> None:
        self.hub = hub
        self.now_s = 1000.0
        self.may_write = True
        teller = Teller(fleet="test", shards=("a", "b"), shard=shard, process="box-1")
        self.pictures = Pictures(
            cast("MemberCluster", hub), teller, lambda: self.may_write, since_boot_s=lambda: self.now_s
        )

    def read(self, after_s: float = 0.0) -> ShardTold:
        self.now_s += after_s
        return asyncio.run(self.pictures.read("2026-11-25T10:00:00Z")).told["b"]

    def keep(self, vitals: Vitals, folder: Path, clock: TestClock) -> None:
        async def work() -> None:
            with suppress(asyncio.CancelledError), Journal.open(folder / "journal.db") as journal:
                await self.pictures.keep(vitals, journal, clock)

        asyncio.run(work())


def test_what_lies_there_counts_once_something_new_was_told() -> None:
    reader = Reader(FakeHub())
    assert reader.read().why == "shard b has told nothing yet"
    reader.hub.tell()
    assert "nothing since this process looks" in reader.read().why, "it may be of last week"
    reader.hub.tell()
    found = reader.read()
    assert not found.why
    assert found.picture == OF_B


def test_what_was_told_grows_old_by_the_clock_of_who_reads() -> None:
    reader = Reader(FakeHub())
    for _ in range(2):
        reader.hub.tell()
        reader.read()
    assert not reader.read(after_s=STALE_S).why
    old = reader.read(after_s=1.0)
    assert old.why == "shard b has not told since 2026-11-25T10:00:00Z"
    assert reader.read() is old, "nothing is shown anew while nothing is otherwise"
    reader.hub.tell()
    assert not reader.read().why


def test_a_cluster_of_the_leases_that_is_away_is_named_once_what_was_told_is_old() -> None:
    reader = Reader(FakeHub())
    for _ in range(2):
        reader.hub.tell()
        reader.read()
    reader.hub.why = "refused\x1b[31m"
    assert not reader.read(after_s=5.0).why
    assert "it cannot be read: hub: " in reader.read(after_s=STALE_S).why


def test_what_is_not_understood_is_nothing_that_anybody_shows() -> None:
    reader = Reader(FakeHub())
    name = picture_name("test", "b")
    for packed in ("", packed_picture(replace(OF_B, shard="a"))):
        reader.hub.put(name, picture_body(name, "", OF_B, packed, NOW))
        found = reader.read()
        assert "is not understood" in found.why
        assert not found.clusters


def shown() -> Shown:
    scene = Scene("m1", "m2")
    scene.apply()
    own = of_shard(sharded(scene.facts()), "a")
    return Shown(picture=Picture(round=_round(own), state=StateTables().update(own), time=NOW))


def _round(facts: Facts) -> Round:
    return Round(decision=facts.decision, manifests=facts.manifests, plan=Plan(base="", head="r1"))


def test_a_shard_tells_again_that_nothing_is_otherwise_and_only_while_it_lives(tmp_path: Path) -> None:
    hub, vitals = FakeHub(), Vitals()
    reader, name = Reader(hub), picture_name("test", "a")
    seen: list[int] = []

    def look(after_s: float, **also: Any) -> Callable[[], None]:
        def turn() -> None:
            seen.append(hub.bodies[name][0] if name in hub.bodies else 0)
            reader.now_s += after_s
            for key, value in also.items():
                setattr(reader if key == "may_write" else vitals, key, value)
            clock.advance(after_s)

        return turn

    stuck = STUCK_S * 3
    clock = Turns(
        lambda: vitals.board.show(shown()),  # What was shown before the loop began is not told.
        look(1.0),  # It was told.
        look(AGAIN_S),  # Nothing is otherwise a moment later.
        look(AGAIN_S, may_write=False),  # It was told again after a while.
        look(AGAIN_S, may_write=True, allowance_s=stuck),  # Not without the Lease.
        look(stuck, allowance_s=0.0),  # With it.
        look(0.0),  # Not by a loop that is stuck.
    )
    vitals.heartbeat_s = clock.monotonic_s()
    reader.keep(vitals, tmp_path, clock)
    assert seen == [1, 1, 2, 2, 3, 3]
