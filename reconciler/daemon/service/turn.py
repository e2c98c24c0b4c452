"""Tasks beside the control loop of a leader: it renews the Lease, and writes the handover."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.adapters.clock import within
from reconciler.adapters.kube.kubeconfig import MemberConfig
from reconciler.adapters.kube.members import Members
from reconciler.containment import awaited, contained, fault_fields
from reconciler.daemon import timing
from reconciler.daemon.leadership.elector import Elector
from reconciler.daemon.leadership.handover import HandoverFile
from reconciler.daemon.leadership.takeover import Taken, left_by, read_unread
from reconciler.daemon.loop.parts import Parts
from reconciler.daemon.vitals.logs import Transitions
from reconciler.errors import ConfigurationError, Deposed, FleetHeld, MemberClusterError
from reconciler.model.fleet import Fleet
from reconciler.stages.leadership import HandoverTooLarge

log = logging.getLogger("reconciler")

_CHECKED_EVERY: Final = 10
"""Once in so many times the written handover is checked: a person may have changed it."""


class Seat(Struct, frozen=True, kw_only=True):
    """The context of a leader. `members`: clusters on connections of their own."""

    elector: Elector
    left: HandoverFile
    members: Members

    async def keep(self, lost: asyncio.Event) -> None:
        """Keep the Lease; `lost` is set when it is."""
        try:
            why = await self.elector.keep()
            log.warning("this process leads no more", extra={"event": "LeadLost", "why": why})
        finally:
            lost.set()


class Turn:
    """One run of the control loop of a leader. `over` is set when the loop has to begin anew."""

    def __init__(self, seat: Seat, parts: Parts, fleet: Fleet, taken: Taken) -> None:
        """Nothing is asked yet."""
        self.over = asyncio.Event()
        self.taken = taken
        self._seat = seat
        self._parts = parts
        self._fleet = fleet
        self._told = Transitions(log)
        self._one_by_one = asyncio.Lock()

    @property
    def parts(self) -> Parts:
        """Return the parts of the control loop: clusters with unread marks are left alone."""
        return replace(self._parts, configs_of=self._configs_of)

    def _configs_of(self, fleet: Fleet) -> Mapping[str, MemberConfig | ConfigurationError]:
        why = ConfigurationError("its marks could not be read since this process leads; it is left alone until then")
        found = self._parts.configs_of(fleet)
        return {name: why if name in self.taken.unread else config for name, config in found.items()}

    async def leave(self) -> None:
        """Keep up what the next leader has to know."""
        told, looks = "", 0
        while True:
            await self._parts.clock.sleep(timing.TICK_S)
            looks += 1
            if looks % _CHECKED_EVERY == 0:
                spoiled = await awaited(within(self._seat.left.is_spoiled(), timing.PROMPT_S))
                told = "" if spoiled.value else told
            version = self._parts.journal.version
            if version != told and await self.leave_once():
                told = version

    async def leave_once(self) -> bool:
        """Write the present handover; return whether that is done. A failure is logged."""
        if self._seat.elector.term is None:
            return False
        async with self._one_by_one:
            return await self._leave()

    async def _leave(self) -> bool:
        left = left_by(self._parts.journal, self._seat.elector, self.taken)
        written = await awaited(self._seat.left.write(left, self._parts.journal.count_left))
        if written.fault is None:
            self._told.leave("handover", "the next leader can know everything again", event="HandoverWritten")
            return True
        is_told = isinstance(written.fault, (MemberClusterError, HandoverTooLarge))
        extra = {"event": "HandoverFailed", "error": str(written.fault), **({} if is_told else fault_fields())}
        text = "timers, orders and caps of now would be lost if another process led"
        self._told.enter("handover", str(written.fault), logging.WARNING, text, **extra)
        return False

    async def read_unread(self) -> None:
        """Read marks of clusters that answer at last; the loop begins anew with them."""
        parts, seat = self._parts, self._seat
        while self.taken.unread:
            await parts.clock.sleep(timing.CHECK_S)
            configs = contained(parts.configs_of, self._fleet)
            # It may be reached in another way by now.
            members = seat.members.reached_by(configs.value) if configs.value is not None else seat.members
            ours = parts.cluster_filter.cut(self._fleet)
            found = await awaited(read_unread(ours, parts.journal, members, self.taken.unread, parts.clock))
            if found.fault is not None:
                self._told.fault("unread", found.fault, "marks cannot be read", **fault_fields())
            elif found.value is not None and found.value != self.taken.unread:
                self.taken = replace(self.taken, unread=found.value)
                self.over.set()
                return

    async def gives_way_to(self, error: FleetHeld) -> bool:
        """Return whether this process must stop leading: the Lease is lost, or a mark has a later term.

        If the Lease was lost while a mark was read, the term of this process is unknown.

        Raises:
            FleetHeld: the mark is of one that holds no Lease, while this process leads.
        """
        if self._seat.elector.term is not None and not isinstance(error, Deposed):
            raise error
        log.warning("a mark has a later term", extra={"event": "Deposed", "error": str(error)})
        return not (isinstance(error, Deposed) and await self._raised_over(error.term))

    async def _raised_over(self, term: int) -> bool:
        """Return whether this process leads in a term above that of a mark."""
        raised = await awaited(within(self._seat.elector.raise_term(term), timing.PROMPT_S))
        return bool(raised.value)
