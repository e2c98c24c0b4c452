"""A leader's duties go on after a write that was made and whose answer nobody heard. Source: ADR 20."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any, cast

import pytest

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import GVK
from reconciler.clock import within
from reconciler.controller.service.takeover import HandoverFile
from reconciler.errors import ClusterUnreachable, WriteConflict
from reconciler.kube import MemberCluster
from reconciler.lease import Handover
from tests.fakes.virtual_time import run_virtual
from tests.properties.test_leadership import Process, Server

MINE = Handover(journal="mine", term=3, revision="r1")


def _first() -> int:
    """Ignore how often something was left."""
    return 0


class Hub(Process):
    """A cluster that makes the next writes without saying so."""

    def __init__(self, server: Server) -> None:
        self.unheard = 0
        super().__init__("a", server, random.Random(1))

    async def _live(self) -> None:
        """Nobody waits for a Lease here."""

    async def find(self, *_: Any) -> LiveObject | None:
        return self._server.live() if self._server.body is not None else None

    async def create(self, gvk: GVK, namespace: str, name: str, body: dict[str, Any], **_: Any) -> LiveObject:
        if gvk.kind == "Namespace":
            return cast("LiveObject", None)
        return self._written(lambda: self._server.write(body, None))

    async def apply(
        self, gvk: GVK, namespace: str, name: str, body: dict[str, Any], *, resource_version: str, **_: Any
    ) -> LiveObject:
        return self._written(lambda: self._server.write(body, resource_version))

    def _written(self, write: Callable[[], LiveObject]) -> LiveObject:
        made = write()
        if self.unheard:
            self.unheard -= 1
            raise ClusterUnreachable("hub", "the answer was lost")
        return made


class Maps(Server):
    """It keeps one ConfigMap, in which no terms of a Lease are counted."""

    def write(self, body: dict[str, Any], resource_version: str | None) -> LiveObject:
        return super().write({**body, "spec": {"leaseTransitions": 0}}, resource_version)


@pytest.mark.parametrize("known", [0, 1])
def test_a_handover_is_written_again_after_an_answer_was_lost(known: int) -> None:
    async def scene() -> None:
        server = Maps()
        hub = Hub(server)
        file = HandoverFile(cast("MemberCluster", hub), "f")
        for number in range(known):
            await file.write(Handover(journal="mine", term=3, revision=f"r{number}"), _first)
        hub.unheard = 1
        with pytest.raises(ClusterUnreachable):
            await file.write(MINE, _first)
        await file.write(Handover(journal="mine", term=3, revision="r2"), _first)
        assert await HandoverFile(cast("MemberCluster", hub), "f").read() == Handover(
            journal="mine", term=3, revision="r2"
        )

    run_virtual(scene())


def test_a_handover_that_a_person_deleted_is_written_again() -> None:
    async def scene() -> None:
        server = Maps()
        file = HandoverFile(cast("MemberCluster", Hub(server)), "f")
        await file.write(MINE, _first)
        server.delete()
        await file.write(Handover(journal="mine", term=3, revision="r2"), _first)
        assert server.body is not None

    run_virtual(scene())


def test_a_handover_that_a_person_restored_is_written_over() -> None:
    async def scene() -> None:
        server = Maps()
        hub = cast("MemberCluster", Hub(server))
        other, mine = HandoverFile(hub, "f"), HandoverFile(hub, "f")
        await other.write(Handover(journal="other", term=2), _first)
        old = server.body
        await mine.read()
        await mine.write(MINE, _first)
        assert not await mine.is_spoiled()
        assert old is not None
        server.write(old, str(server.version))
        assert await mine.is_spoiled()
        await mine.write(MINE, _first)
        assert await other.read() == MINE

    run_virtual(scene())


def test_a_handover_of_a_later_leader_is_left_at_every_attempt() -> None:
    async def scene() -> None:
        hub = cast("MemberCluster", Hub(Maps()))
        mine, other = HandoverFile(hub, "f"), HandoverFile(hub, "f")
        await mine.write(MINE, _first)
        await other.read()
        await other.write(Handover(journal="other", term=4), _first)
        for _ in range(3):
            with pytest.raises(WriteConflict):
                await mine.write(Handover(journal="mine", term=3, revision="r2"), _first)
        assert await other.read() == Handover(journal="other", term=4)

    run_virtual(scene())


def test_a_lease_is_given_back_although_a_renewal_was_written_that_nobody_heard_of() -> None:
    async def scene() -> None:
        server = Server()
        process = Hub(server)
        await process.elector.campaign()
        assert server.body is not None
        server.write(server.body, str(server.version))  # The renewal that was under way when its task was ended.
        await process.elector.release()
        assert server.body["spec"].get("holderIdentity", "") == ""
        assert not process.elector.writing_left_s()

    run_virtual(scene())


def test_what_is_cancelled_just_as_its_work_ends_is_cancelled() -> None:
    async def scene() -> None:
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def keep() -> None:
            while True:
                await within(asyncio.shield(answer), 5)
                await asyncio.sleep(0)

        task = asyncio.ensure_future(keep())
        await asyncio.sleep(0)
        answer.set_result(None)
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=60)
        assert done
        assert task.cancelled()

    asyncio.run(scene())
