"""Of several processes at most one may write at any time, whatever becomes of them, of their requests and of the Lease.

Whoever is driven here is the real elector; time, the API server, and what happens to a process are made up.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK, Identity
from reconciler.clock import rfc3339
from reconciler.controller.service.elector import Elector
from reconciler.errors import AlreadyExists, ClusterUnreachable, InvalidObject, ObjectNotFound, WriteConflict
from reconciler.kube import MemberCluster
from tests.fakes.virtual_time import run_virtual

DURATION_S = 15
TROUBLE_S = 90.0
CALM_S = 120.0
"""Longer than a stop, the end of a Lease, and the wait of who makes a new one."""
NONSENSE: tuple[dict[str, Any], ...] = (
    {"holderIdentity": ""},
    {"holderIdentity": None},
    {"holderIdentity": "somebody"},
    {"holderIdentity": 7},
    {"leaseDurationSeconds": -1},
    {"leaseDurationSeconds": None},
    {"leaseTransitions": 2**31 - 1},
    {"leaseTransitions": -3},
    {"leaseTransitions": "x", "leaseDurationSeconds": 2},
)
"""Texts that a person may write into a Lease."""
_GVK = GVK("coordination.k8s.io", "v1", "Lease")


class Server:
    """One API server that keeps one Lease, and counts its versions."""

    def __init__(self) -> None:
        self.body: dict[str, Any] | None = None
        self.version = 0
        self.is_away = False
        self.transitions: list[int] = []

    def live(self) -> LiveObject:
        assert self.body is not None
        metadata = {**self.body["metadata"], "uid": "u", "resourceVersion": str(self.version)}
        identity = Identity("coordination.k8s.io", "Lease", "fleet-system", "fleet-f")
        return LiveObject(identity=identity, gvk=_GVK, uid="u", resource_version=str(self.version),
                          body={**self.body, "metadata": metadata})  # fmt: skip

    def write(self, body: dict[str, Any], resource_version: str | None) -> LiveObject:
        if resource_version is None and self.body is not None:
            raise AlreadyExists("hub", "it is there")
        if resource_version is not None and self.body is None:
            raise ObjectNotFound("hub", "it is gone")
        if resource_version is not None and resource_version != str(self.version):
            raise WriteConflict("hub", "it was changed")
        if not 0 <= body["spec"]["leaseTransitions"] < 2**31:
            raise InvalidObject("hub", "leaseTransitions: an int32")
        self.version += 1
        self.body = body
        self.transitions.append(body["spec"]["leaseTransitions"])
        return self.live()

    def delete(self) -> None:
        self.body = None

    def edit(self, spec: dict[str, Any]) -> None:
        """A person writes something into it that has no sense."""
        if self.body is not None:
            self.version += 1
            self.body = {**self.body, "spec": {**self.body["spec"], **spec}}


class Process:
    """A process that may be stopped, whose requests are slow or lost, and whose clock began at another time."""

    def __init__(self, name: str, server: Server, chance: random.Random) -> None:
        self.name = name
        self._server = server
        self._chance = chance
        self._stopped_until_s = 0.0
        self._offset_s = chance.uniform(0, 1e6)
        self.elector = self._born()
        self._life = asyncio.ensure_future(self._live())

    def _born(self) -> Elector:
        holder = f"{self.name}-{self._chance.random()}"
        member = cast("MemberCluster", self)
        return Elector(member, self, self.since_boot_s, fleet="f", holder=holder, duration_s=DURATION_S)

    async def _live(self) -> None:
        while True:
            await self.elector.campaign()
            await self.elector.keep()

    async def end(self) -> None:
        """End without a word, as kill -9 does."""
        self._life.cancel()
        await asyncio.gather(self._life, return_exceptions=True)

    async def again(self) -> None:
        """Die, and be started again."""
        await self.end()
        self.elector = self._born()
        self._life = asyncio.ensure_future(self._live())

    def stop_for(self, seconds: float) -> None:
        self._stopped_until_s = asyncio.get_running_loop().time() + seconds

    # A clock

    def since_boot_s(self) -> float:
        return asyncio.get_running_loop().time() + self._offset_s

    def now(self) -> str:
        return rfc3339(self._chance.uniform(1, 2e9))  # The wall clock is worth nothing.

    def monotonic_s(self) -> float:
        return self.since_boot_s()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._awake()

    async def _awake(self) -> None:
        while (left_s := self._stopped_until_s - asyncio.get_running_loop().time()) > 0:
            await asyncio.sleep(left_s)

    # A member cluster

    async def find(self, *_: Any) -> LiveObject | None:
        def read() -> LiveObject | None:
            return self._server.live() if self._server.body is not None else None

        return await self._asked(cast("Callable[[], LiveObject]", read))

    async def create(self, gvk: GVK, namespace: str, name: str, body: dict[str, Any], **_: Any) -> LiveObject:
        if gvk.kind == "Namespace":
            return cast("LiveObject", None)
        return await self._asked(lambda: self._server.write(body, None))

    async def apply(
        self, gvk: GVK, namespace: str, name: str, body: dict[str, Any], *, resource_version: str, **_: Any
    ) -> LiveObject:
        return await self._asked(lambda: self._server.write(body, resource_version))

    async def _asked(self, do: Callable[[], LiveObject]) -> LiveObject:
        await self._awake()
        await asyncio.sleep(self._delay_s())
        if self._server.is_away:
            raise ClusterUnreachable("hub", "no answer")
        answer: LiveObject | Exception
        try:
            answer = do()
        except Exception as error:
            answer = error
        await asyncio.sleep(self._delay_s())
        await self._awake()
        if self._chance.random() < 0.05:
            raise ClusterUnreachable("hub", "the answer was lost")
        if isinstance(answer, Exception):
            raise answer
        return answer

    def _delay_s(self) -> float:
        return self._chance.choice((0.001, 0.01, 0.1, 1.0, 4.0)) if self._chance.random() < 0.3 else 0.005


async def _world(seed: int) -> None:
    chance = random.Random(seed)
    server = Server()
    processes = [Process(name, server, chance) for name in "abc"]
    loop = asyncio.get_running_loop()
    led_at_s = -1.0

    async def watch(until_s: float) -> None:
        nonlocal led_at_s
        while loop.time() < until_s:
            writing = [each.name for each in processes if each.elector.writing_left_s() > 0]
            assert len(writing) <= 1, f"{writing} may write at {loop.time():.2f}"
            led_at_s = loop.time() if writing else led_at_s
            await asyncio.sleep(0.05)

    async def trouble() -> None:
        happenings: list[Callable[[], Awaitable[None]]] = [
            lambda: chance.choice(processes).again(),
            lambda: _done(lambda: chance.choice(processes).stop_for(chance.uniform(0.5, 40))),
            lambda: _done(lambda: setattr(server, "is_away", chance.random() < 0.4)),
            lambda: _done(server.delete),
            lambda: _done(lambda: server.edit(chance.choice(NONSENSE))),
        ]
        while loop.time() < TROUBLE_S:
            await asyncio.sleep(chance.expovariate(0.2))
            await chance.choice(happenings)()
        server.is_away = False

    try:
        await asyncio.gather(watch(TROUBLE_S), trouble())
        await watch(loop.time() + CALM_S)
        # A slow answer may end writing for a moment.
        assert loop.time() - led_at_s < DURATION_S, "nobody leads after all"
    finally:
        await asyncio.gather(*(each.end() for each in processes))


async def _done(work: Callable[[], None]) -> None:
    work()


@settings(max_examples=150, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_at_most_one_process_may_write(seed: int) -> None:
    run_virtual(_world(seed))


class Unheard(Process):
    async def create(self, gvk: GVK, namespace: str, name: str, body: dict[str, Any], **more: Any) -> LiveObject:
        made = await super().create(gvk, namespace, name, body, **more)
        if gvk.kind == "Namespace":
            return made
        raise ClusterUnreachable("hub", "the answer was lost")


async def _unheard() -> None:
    process = Unheard("a", Server(), random.Random(1))
    loop = asyncio.get_running_loop()
    try:
        while not process.elector.writing_left_s():
            await asyncio.sleep(0.1)
        assert loop.time() >= DURATION_S
    finally:
        await process.end()


def test_who_does_not_hear_that_it_made_the_lease_waits_as_long() -> None:
    run_virtual(_unheard())
