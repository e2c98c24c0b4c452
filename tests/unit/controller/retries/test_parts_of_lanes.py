"""The results of a lane are handed over part by part, with the events and the wishes that concern it.

Source: ADR 14; design#promise-6.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from reconciler.api.clusters import LiveObject, Read
from reconciler.api.plan import Action, Cause, Change
from reconciler.api.refs import GVK, Identity
from reconciler.controller.inbox import Inbox
from reconciler.controller.retries.workers import ApplyResult, ClusterWorkers
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import WatchEvent
from tests.fakes.clocks import TestClock
from tests.fakes.worlds import fleet_of

CONFIG_MAP = GVK("", "v1", "ConfigMap")
A, B, C = (Identity("", "ConfigMap", "demo", name) for name in "abc")
NOW = "2026-11-21T10:00:00Z"


def result(identity: Identity) -> ChangeResult:
    change = Change(action=Action.CREATE, cluster="m1", gvk=CONFIG_MAP, identity=identity, cause=Cause.DECLARED)
    return ChangeResult(change=change, uid="u", resource_version="7")


def event(identity: Identity, version: str = "8", kind: str = "MODIFIED") -> WatchEvent:
    live = LiveObject(gvk=CONFIG_MAP, identity=identity, uid="u", resource_version=version, body={})
    return WatchEvent(type=kind, object=live)


def told(ended: list[ApplyResult]) -> list[tuple[set[Identity], list[Identity], list[Identity], set[Identity]]]:
    """Of each part: its identities, those of its results, of its events, and what was left out."""
    return [
        (
            set(found.identities),
            [each.change.identity for each in found.results],
            [each.object.identity for each in found.events],
            set(found.skipped),
        )
        for found in ended
    ]


class Scene:
    """A lane of m1 that writes a, b and c until it is told to end."""

    def __init__(self) -> None:
        self.lanes, self._results = ClusterWorkers(Inbox(), TestClock()), asyncio.Queue[list[ChangeResult]]()

    async def __aenter__(self) -> Scene:
        async def writing() -> AsyncIterator[list[ChangeResult]]:
            while results := await self._results.get():
                yield results

        identities = frozenset({A, B, C})
        self.lanes.begin("m1", writing(), revision="r1", now=NOW, identities=identities)
        await asyncio.sleep(0)
        return self

    async def made(self, *identities: Identity) -> None:
        """Its results are journaled."""
        self._results.put_nowait([result(identity) for identity in identities])
        while not self._results.empty():
            await asyncio.sleep(0)
        await asyncio.sleep(0)

    async def __aexit__(self, *_: object) -> None:
        await self.lanes.close()

    async def ended(self) -> None:
        self._results.put_nowait([])
        while not self.lanes.has_ended:
            await asyncio.sleep(0)


async def test_a_part_takes_its_events_and_its_wishes_along_and_is_under_way_no_more() -> None:
    async with Scene() as scene:
        lanes = scene.lanes
        assert told(lanes.collect()) == []
        for identity in (A, B):
            assert lanes.saw("m1", event(identity))
        lanes.skip("m1", [A, B])
        await scene.made(A)
        assert lanes.is_part_due
        assert not lanes.has_ended
        assert lanes.is_under_way("m1", A), "until the part is collected"
        assert told(lanes.collect()) == [({A}, [A], [A], {A})]
        assert [lanes.is_under_way("m1", identity) for identity in (A, B, C)] == [False, True, True]
        assert not lanes.saw("m1", event(A)), "it is judged as any other"
        assert lanes.busy == {"m1"}
        assert told(lanes.collect()) == []


async def test_no_event_is_kept_that_shows_just_what_was_written() -> None:
    async with Scene() as scene:
        lanes = scene.lanes
        lanes.saw("m1", event(A, "7"))
        for identity in (A, B, C):
            lanes.answered(result(identity))
        assert lanes.saw("m1", event(B, "7"))
        assert lanes.saw("m1", event(C, "7", "DELETED"))
        await scene.made(A, B, C)
        assert told(lanes.collect()) == [({A, B, C}, [A, B, C], [C], set())]


async def test_rounds_see_what_was_collected_and_not_the_rest() -> None:
    async with Scene() as scene:
        await scene.made(A)
        scene.lanes.collect()
        objects = {identity: event(identity).object for identity in (A, B, C)}
        members = {"m1": Read(name="m1", objects=objects)}
        snapshot = FleetSnapshot(fleet=fleet_of(), interpreters=BUILT_IN_KINDS, now=NOW, members=members)
        found = scene.lanes.without(snapshot).members["m1"]
        assert isinstance(found, Read)
        assert set(found.objects) == {A}
        assert found.under_way == {B, C}


async def test_the_last_part_has_all_that_is_left_and_what_was_wished_besides() -> None:
    other = Identity("", "ConfigMap", "demo", "other")
    async with Scene() as scene:
        lanes = scene.lanes
        await scene.made(A)
        lanes.collect()
        lanes.saw("m1", event(C))
        lanes.skip("m1", [other])
        await scene.made(B)
        await scene.ended()
        assert told(lanes.collect()) == [({B, C}, [B], [C], {other})]
        assert lanes.busy == frozenset()


async def test_lanes_that_go_on_are_left_alone_when_no_parts_are_asked_for() -> None:
    async with Scene() as scene:
        await scene.made(A)
        assert scene.lanes.collect(parts=False) == []
        await scene.ended()
        assert told(scene.lanes.collect(parts=False)) == [({A, B, C}, [A], [], set())]


async def test_what_was_journaled_before_a_lane_was_given_up_is_told() -> None:
    async with Scene() as scene:
        await scene.made(A)
        await scene.lanes.close()
        assert told(scene.lanes.collect()) == [({A}, [A], [], set())]


async def test_a_round_collects_parts_of_its_own_lanes_alone() -> None:
    async with Scene() as scene:
        scene.lanes.round_ends()
        await scene.made(A)
        assert scene.lanes.collect(of_this_round=True) == []
        assert len(scene.lanes.collect()) == 1


async def test_what_a_list_shows_of_a_write_is_looked_at_unless_it_is_what_was_made() -> None:
    async with Scene() as scene:
        lanes = scene.lanes
        lanes.answered(result(A))
        for version, identity in (("7", A), ("7", B), ("8", C)):
            lanes.listed("m1", event(identity, version).object)
        for identity in (B, C):
            lanes.answered(result(identity))
        await scene.made(A, B, C)
        assert told(lanes.collect()) == [({A, B, C}, [A, B, C], [], {C})]
