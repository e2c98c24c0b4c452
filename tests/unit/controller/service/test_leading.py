"""A leader finds a mark that is not its own. Source: design#one-leader; ADR 20."""

from __future__ import annotations

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from reconciler.api.fleet import Fleet
from reconciler.controller.service.leadership import FleetProcess, LeaderContext, Leadership, LeaderTerm
from reconciler.errors import Deposed, FleetHeld, JournalError
from reconciler.lease import Handover
from tests.unit.controller.test_loop import Running, running

TAKEN = Handover(journal="j", term=1, revision="r1")


class Elector:
    """A stand-in for an elector: the term in which it leads, and whether it can lead in a later one."""

    duration_s = 15.0

    def __init__(self, term: int | None, *, can_raise: bool = False) -> None:
        self.term, self._can_raise = term, can_raise

    def writing_left_s(self) -> float:
        return 0.0 if self.term is None else 5.0

    async def raise_term(self, over: int) -> bool:
        return self._can_raise


async def turned(scene: Running, elector: Elector, error: FleetHeld | None) -> tuple[Leadership, bool]:
    """The part of the process, and whether it has lost the Lease, after its loop has ended with an error.

    `error` None: the loop goes on.
    """
    leadership, stop, lost = Leadership(), asyncio.Event(), asyncio.Event()
    process = FleetProcess(scene.parts, leadership, "a")

    async def act(*_: object) -> None:
        if error is None:
            await asyncio.Event().wait()
        stop.set()
        raise error or AssertionError

    async def written(*_: object) -> None:
        """Ignore what the next leader has to know."""

    process._act = act  # type: ignore[assignment, method-assign] # the loop itself
    process._follower.fleet = Fleet(revision="r1")
    context = LeaderContext(
        elector=cast("Any", elector),
        left=cast("Any", SimpleNamespace(write=written, is_spoiled=written)),
        members=scene.parts.opened,
    )
    await process._lead(LeaderTerm(context, scene.parts, process._follower, TAKEN), stop, lost)
    return leadership, lost.is_set()


async def test_a_mark_that_is_read_after_the_lease_was_lost_ends_no_process(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        leadership, is_lost = await turned(scene, Elector(None), FleetHeld("another journal"))
        assert (leadership.term(), leadership.writing_left_s(), is_lost) == (None, 0.0, True)
        _, is_lost = await turned(scene, Elector(None), Deposed("a later term", 4))
        assert is_lost


async def test_a_mark_with_a_later_term_is_led_over_where_the_lease_is_still_held(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        _, is_lost = await turned(scene, Elector(3, can_raise=True), Deposed("a later term", 4))
        assert not is_lost
        _, is_lost = await turned(scene, Elector(3), Deposed("a later term", 4))
        assert is_lost


async def test_one_without_a_lease_that_has_the_fleet_is_told_of(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        with pytest.raises(FleetHeld, match="another journal"):
            await turned(scene, Elector(3), FleetHeld("another journal"))


async def test_what_goes_on_beside_the_loop_does_not_end_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fails(_: LeaderTerm) -> None:
        raise JournalError("no room left")

    monkeypatch.setattr(LeaderTerm, "leave", fails)
    async with running(tmp_path) as scene:
        with pytest.raises(JournalError, match="no room left"):
            async with asyncio.timeout(60):
                await turned(scene, Elector(3), None)
