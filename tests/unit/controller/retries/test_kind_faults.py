"""Refused lists are reported until one of them is answered. Source: design#missing-right."""

from __future__ import annotations

import asyncio
import random
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from reconciler.api.clusters import Listed, LiveObject, NotRead, Read, Unlisted, UnlistedCause
from reconciler.api.refs import GVK, Identity
from reconciler.controller.retries.kind_faults import KindFaults
from reconciler.errors import KindNotRead
from reconciler.kube.answers import Listing
from tests.fakes.clocks import TestClock
from tests.fakes.worlds import fleet_of

if TYPE_CHECKING:
    from reconciler.kube import MemberCluster

MAPS, SCALERS = GVK("", "v1", "ConfigMap"), GVK("autoscaling", "v2", "HorizontalPodAutoscaler")
NO_MAPS = Unlisted(Listed(MAPS), UnlistedCause.RIGHT_MISSING, "no ConfigMap")
NO_SCALERS = Unlisted(Listed(SCALERS, "a"), UnlistedCause.RIGHT_MISSING, "no autoscaler in a")

FLEET = fleet_of()
SILENT = Unlisted(Listed(MAPS), UnlistedCause.NOT_READ, "no answer about ConfigMap")


def read(*listed: Listed, unlisted: tuple[Unlisted, ...] = ()) -> dict[str, Read]:
    return {"m1": Read(name="m1", listed=frozenset(listed), unlisted=unlisted)}


def told(faults: KindFaults) -> list[str]:
    return [found.message for found in faults.problems]


def test_a_refusal_stays_until_that_very_list_was_asked_for_again() -> None:
    faults = KindFaults(TestClock())
    faults.record_reading(read(NO_MAPS.what, NO_SCALERS.what, unlisted=(NO_MAPS, NO_SCALERS)))
    faults.record_reading(read())
    faults.record_reading(read(Listed(SCALERS, "b")))
    faults.record_reading({"m1": NotRead(name="m1", why="away")})
    assert sorted(told(faults)) == ["no ConfigMap", "no autoscaler in a"]
    faults.record_reading(read(NO_MAPS.what, unlisted=(NO_MAPS,)))
    faults.record_reading(read(Listed(SCALERS)))
    assert told(faults) == ["no ConfigMap"]
    faults.record_reading(read(NO_MAPS.what))
    assert told(faults) == []


def test_a_cluster_that_left_has_nothing_to_tell() -> None:
    faults = KindFaults(TestClock())
    faults.record_reading(read(unlisted=(NO_MAPS,)))
    faults.keep(frozenset({"m2"}))
    assert told(faults) == []


class _Silent:
    """A cluster that gives no answer about a kind until it is told to."""

    name = "m1"

    def __init__(self, *objects: LiveObject) -> None:
        self.asked = 0
        self.answers = self.converts = False
        self.objects = objects

    async def list_metadata(self, gvk: GVK, *, namespace: str, label_selector: str) -> Listing:
        self.asked += 1
        if not self.answers:
            raise KindNotRead(self.name, "no answer")
        return Listing(objects=self.objects)

    async def find(self, gvk: GVK, namespace: str, name: str) -> LiveObject:
        assert (namespace, name) == ("demo", "app")
        if not self.converts:
            raise KindNotRead(self.name, "conversion webhook: no answer")
        return self.objects[0]


async def test_a_list_that_comes_from_a_cache_is_no_sign_that_a_kind_can_be_read() -> None:
    """As while the conversion webhook of a kind hangs: it was told as read again, and as unread, each minute."""
    clock = TestClock()
    app = LiveObject(
        gvk=MAPS, identity=Identity("", "ConfigMap", "demo", "app"), uid="u", resource_version="1", body={}
    )
    member, faults = _Silent(app), KindFaults(clock, random.Random(0).random)
    member.answers = True
    faults.record_reading(read(unlisted=(SILENT,)))
    for member.converts, answered in ((False, set[str]()), (True, {"m1"})):
        clock.advance(100)
        faults.ask({"m1": cast("MemberCluster", member)}, FLEET, "")
        for _ in range(9):
            await asyncio.sleep(0)
        assert faults.answered() == answered
    await faults.close()


async def test_a_kind_is_asked_for_again_ever_more_rarely_and_at_last_once_a_minute() -> None:
    clock, silent, asked_s = TestClock(), _Silent(), list[float]()
    faults = KindFaults(clock, random.Random(0).random)
    members = {"m1": cast("MemberCluster", silent)}
    faults.record_reading(read(unlisted=(SILENT,)))
    for _ in range(600):
        before = silent.asked
        faults.ask(members, FLEET, "")
        await asyncio.sleep(0)
        assert faults.answered() == set()
        asked_s += [clock.monotonic_s()] * (silent.asked - before)
        clock.advance(1)
    gaps_s = [later - earlier for earlier, later in pairwise(asked_s)]
    assert asked_s[0] <= 2
    assert max(gaps_s) <= 60
    assert min(gaps_s[-5:]) >= 30
    assert len(asked_s) < 25
    assert faults.is_at_fault("m1", MAPS)
    silent.answers = True
    clock.advance(100)
    faults.ask(members, FLEET, "")
    await asyncio.sleep(0)
    assert faults.answered() == {"m1"}
    assert not faults.is_at_fault("m1", MAPS), "the next round asks for it"
    assert told(faults) == ["no answer about ConfigMap"], "and until then it is told"
    await faults.close()
