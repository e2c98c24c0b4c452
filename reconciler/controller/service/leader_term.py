"""The term of a leader: what it keeps up for the next one, and clusters whose marks could not be read at its beginning.

Source: ADR 20.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.clock import within
from reconciler.containment import fault_fields, try_await, try_call
from reconciler.controller import timing
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.service.elector import Elector
from reconciler.controller.service.takeover import HandoverFile, left_by, read_unread
from reconciler.controller.store_follower import StoreFollower
from reconciler.controller.vitals.logs import Transitions
from reconciler.errors import ConfigurationError, Deposed, FleetHeld, MemberClusterError
from reconciler.kube.member_clusters import MemberClusters
from reconciler.lease import Handover, HandoverTooLarge

log = logging.getLogger("reconciler")

_CHECKED_EVERY: Final = 10
"""Once in so many times the written handover is checked: a person may have changed it."""


class LeaderContext(Struct, frozen=True, kw_only=True):
    """The Lease, the handover beside it, and the clusters on connections on which writing is not bound to a leader."""

    elector: Elector
    left: HandoverFile
    members: MemberClusters


def reached_now(parts: LoopParts, fleet: Fleet, members: MemberClusters) -> MemberClusters:
    """Return the clusters of the fleet as they are reached now; as before where the kubeconfig is unusable."""
    configs = try_call(parts.configs_of, fleet)
    return members.reached_by(configs.value) if configs.value is not None else members


class LeaderTerm:
    """The time for which a leader holds the Lease. `over` is set when its control loop has to begin anew."""

    def __init__(self, context: LeaderContext, parts: LoopParts, follower: StoreFollower, handover: Handover) -> None:
        self.over = asyncio.Event()
        self.taken = handover
        self.elector = context.elector
        self._context, self._parts, self._follower = context, parts, follower
        self._transitions = Transitions()
        self._one_by_one = asyncio.Lock()

    @property
    def parts(self) -> LoopParts:
        """Return the parts of the control loop: clusters with unread marks are left alone."""
        why = ConfigurationError("its marks could not be read since this process leads; it is left alone until then")
        return replace(self._parts, left_alone=dict.fromkeys(self.taken.unread, why))

    async def leave(self) -> None:
        """Keep up what the next leader has to know."""
        written, looks = "", 0
        while True:
            await self._parts.access.clock.sleep(timing.TICK_S)
            looks += 1
            if looks % _CHECKED_EVERY == 0:
                spoiled = await try_await(within(self._context.left.is_spoiled(), timing.PROMPT_S))
                written = "" if spoiled.value else written
            version = self._parts.journal.version
            if version != written and await self.leave_once():
                written = version

    async def leave_once(self) -> bool:
        """Write the present handover; return whether that is done. A failure is logged."""
        if self.elector.term is None:
            return False
        async with self._one_by_one:
            journal = self._parts.journal
            left = left_by(journal, self.elector, self.taken)
            fault = (await try_await(self._context.left.write(left, journal.count_left))).fault
        if fault is None:
            self._transitions.leave("handover", "the next leader can know everything again", event="HandoverWritten")
            return True
        is_told = isinstance(fault, (MemberClusterError, HandoverTooLarge))
        extra = {"event": "HandoverFailed", "error": str(fault), **({} if is_told else fault_fields())}
        text = "timers, orders and caps of now would be lost if another process led"
        self._transitions.enter("handover", str(fault), logging.WARNING, text, **extra)
        return False

    async def read_unread(self) -> None:
        """Read marks of clusters that answer at last; the loop begins anew with them."""
        parts = self._parts
        while self.taken.unread:
            await parts.access.clock.sleep(timing.CHECK_S)
            fleet = self._follower.fleet
            assert fleet is not None, "a leader has read the store"
            # It may be reached in another way by now.
            members = reached_now(parts, fleet, self._context.members)
            ours = parts.access.clusters.cut(fleet)
            read = await try_await(read_unread(ours, parts.journal, members, self.taken.unread, parts.access.clock))
            if read.fault is not None:
                self._transitions.fault("unread", read.fault, "marks cannot be read", **fault_fields())
            elif read.value is not None and read.value != frozenset(self.taken.unread):
                self.taken = replace(self.taken, unread=tuple(sorted(read.value)))
                self.over.set()

    async def gives_way_to(self, error: FleetHeld) -> bool:
        """Return whether this process must stop leading: the Lease is lost, or a mark has a later term.

        If the Lease was lost while a mark was read, the term of this process is unknown.

        Raises:
            FleetHeld: the mark is of one that holds no Lease, while this process leads.
        """
        if self.elector.term is not None and not isinstance(error, Deposed):
            raise error
        log.warning("a mark has a later term", extra={"event": "Deposed", "error": str(error)})
        if not isinstance(error, Deposed):
            return True
        raised = await try_await(within(self.elector.raise_term(error.term), timing.PROMPT_S))
        return not raised.value
