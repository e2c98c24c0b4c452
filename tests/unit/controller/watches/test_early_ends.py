"""Watches that do not last, on a server that counts and a clock of our own. Source: design#promise-6."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from reconciler.api.refs import GVK
from reconciler.controller.watches.handlers import WatchHandler
from reconciler.controller.watches.kind_watches import EarlyEnds, Watches
from reconciler.kube import MemberClusters, MemberConfig, UserAgent
from tests.fakes.clocks import TestClock
from tests.fakes.scripted_server import Asked, ScriptedServer, reply, status
from tests.fakes.waiting import until

POD = GVK("", "v1", "Pod")
HOUR_S = 3600.0
LIST = reply(200, {"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1",
                   "metadata": {"resourceVersion": "7"}, "items": []})  # fmt: skip
GONE = reply(410, status(410, "Expired", "too old resource version"))
ENDED = reply(200)
Watched = Callable[[TestClock, int], bytes]
"""The answer to the watch of that number, and the time that passes meanwhile."""


def discovery(*items: Any) -> bytes:
    return reply(200, {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": items})


PODS = {"resource": "pods", "responseKind": {"kind": "Pod"}, "scope": "Namespaced", "verbs": ["get", "list", "watch"]}
CORE = discovery({"metadata": {}, "versions": [{"version": "v1", "resources": [PODS]}]})


def event(number: int, kind: str = "MODIFIED") -> bytes:
    metadata = {"name": "a", "namespace": "demo", "uid": "u", "resourceVersion": str(number)}
    if kind == "BOOKMARK":
        metadata = {"resourceVersion": str(number)}
    told = {"type": kind, "object": {"kind": "Pod", "apiVersion": "v1", "metadata": metadata}}
    return reply(200, json.dumps(told).encode() + b"\n")


class Counted(WatchHandler):
    """One watched kind of one cluster, and what was asked for."""

    def __init__(self, clock: TestClock, asked: list[Asked]) -> None:
        self.clock, self._asked = clock, asked
        self.early = 0

    def ended_early(self, cluster: str) -> None:
        self.early += 1

    @property
    def lists(self) -> int:
        return sum("watch=1" not in found.target and "/pods" in found.target for found in self._asked)

    @property
    def watches(self) -> int:
        return sum("watch=1" in found.target for found in self._asked)

    async def until(self, fact: Callable[[], bool]) -> None:
        async with asyncio.timeout(60):
            await until(fact)

    async def hour(self) -> None:
        ends_s = self.clock.monotonic_s() + HOUR_S
        await self.until(lambda: self.clock.monotonic_s() >= ends_s)


@asynccontextmanager
async def watched(answer: Watched) -> AsyncIterator[Counted]:
    """A watch of pods on a server that answers each of them so."""
    clock = TestClock()

    def respond(asked: Asked) -> bytes:
        path = urlsplit(asked.target).path
        if path == "/api/v1/pods":
            return answer(clock, found.watches) if "watch=1" in asked.target else LIST
        return CORE if path == "/api" else discovery()

    async with ScriptedServer(by_target=respond) as server:
        found = Counted(clock, server.asked)
        configs = {"m1": MemberConfig(name="m1", server=server.url)}
        async with MemberClusters.open(configs, agent=UserAgent("f"), clock=clock, jitter=random.Random(1)) as members:
            watches = Watches(found, clock, random.Random(2).random)
            watches.keep(members["m1"], frozenset({POD}), "a=b")
            try:
                yield found
            finally:
                await watches.close()


async def test_a_watch_that_is_ended_at_once_is_opened_ever_more_rarely_and_resumes_where_it_was() -> None:
    async with watched(lambda clock, number: ENDED) as found:
        await found.hour()
        assert found.watches <= 2 * HOUR_S / 60 + 20
        assert found.lists == 1, "nothing was missed that a list could tell"
        assert found.watches - 1 <= found.early <= found.watches
        assert max(found.clock.slept) <= 60


async def test_a_server_that_says_gone_each_time_is_asked_ever_more_rarely() -> None:
    async with watched(lambda clock, number: GONE) as found:
        await found.hour()
        assert found.watches <= 2 * HOUR_S / 60 + 20
        assert found.lists <= found.watches + 1


async def test_a_watch_that_ends_when_its_time_is_up_goes_on_at_once() -> None:
    def lives(clock: TestClock, number: int) -> bytes:
        clock.advance(300)
        return event(number, "BOOKMARK")

    async with watched(lives) as found:
        await found.until(lambda: found.watches >= 20)
        assert found.clock.slept == []
        assert (found.lists, found.early) == (1, 0)


async def test_what_happened_during_a_watch_that_stayed_silent_is_told_by_a_list() -> None:
    def silent(clock: TestClock, number: int) -> bytes:
        clock.advance(150)
        return ENDED

    async with watched(silent) as found:
        await found.until(lambda: found.watches >= 10)
        assert found.lists >= found.watches - 1
        assert found.clock.slept == []


async def test_watches_that_tell_something_before_they_end_wait_no_longer_than_a_second() -> None:
    async with watched(lambda clock, number: event(number)) as found:
        await found.until(lambda: found.watches >= 30)
        assert all(0.5 <= pause_s <= 1.0 for pause_s in found.clock.slept)
        assert len(found.clock.slept) >= found.watches - 3


async def test_it_is_logged_when_watches_stop_lasting_and_when_they_last_again(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO", "reconciler")

    def later_well(clock: TestClock, number: int) -> bytes:
        if number < 12:
            return GONE
        clock.advance(300)
        return event(number, "BOOKMARK")

    async with watched(later_well) as found:
        await found.until(lambda: found.watches >= 20)
    told = [(record.levelname, record.__dict__["event"]) for record in caplog.records if "event" in record.__dict__]
    assert told == [("WARNING", "WatchesEndEarly"), ("INFO", "WatchesLast")]


def test_the_first_early_end_costs_nothing_and_a_failure_a_second() -> None:
    assert EarlyEnds(random.Random(1).random).ended_early_s() == 0
    assert 0.5 <= EarlyEnds(random.Random(1).random).ended_early_s(has_failed=True) <= 1
    early_ends = EarlyEnds(random.Random(1).random)
    for _ in range(100):
        assert early_ends.ended_early_s() <= 60
    early_ends.in_a_row = 0
    assert early_ends.ended_early_s() == 0
