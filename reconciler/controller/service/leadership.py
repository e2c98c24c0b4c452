"""The part of this process in its fleet, for every writer.

The leader, for a person who asks: nothing is written, and no clock is compared. Source: ADR 20.

Tasks beside the control loop of a leader: it renews the Lease, and writes the handover.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from enum import Enum, auto
from math import inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.refs import GVK
from reconciler.clock import within
from reconciler.containment import fault_fields, try_await, try_call
from reconciler.controller import timing
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.reading.members import told_fault
from reconciler.controller.round.hold import NAMESPACE
from reconciler.controller.service.elector import Elector
from reconciler.controller.service.takeover import HandoverFile, Taken, left_by, read_unread
from reconciler.controller.vitals.logs import Transitions
from reconciler.errors import ConfigurationError, Deposed, FleetHeld, MemberClusterError, ObjectNotFound
from reconciler.kube.client import MemberCluster
from reconciler.kube.connection.kubeconfig import MemberConfig
from reconciler.kube.member_clusters import MemberClusters
from reconciler.lease import HandoverTooLarge, lease_name, read_lease


class Part(Enum):
    """The part of this process in its fleet."""

    ALONE = auto()
    """The fleet has no Lease."""
    STANDBY = auto()
    """Another process leads, or nobody knows yet who does."""
    LEADER = auto()


class Leadership:
    """The part of this process. Until anything is known it stands by."""

    def __init__(self) -> None:
        """Nothing may be written yet."""
        self.part = Part.STANDBY
        self.leaders: frozenset[str] = frozenset()
        """Journals of processes that led under the Lease."""
        self._elector: Elector | None = None

    def alone(self) -> None:
        """There is no Lease."""
        self.part, self._elector = Part.ALONE, None

    def stand_by(self) -> None:
        """Write nothing."""
        self.part, self._elector = Part.STANDBY, None

    def lead(self, elector: Elector, leaders: frozenset[str]) -> None:
        """Write for as long as the Lease is held."""
        self.part, self._elector, self.leaders = Part.LEADER, elector, leaders

    def term(self) -> int | None:
        """The term in which this process leads; None: there is no Lease, or it does not hold it."""
        return self._elector.term if self._elector is not None else None

    def writing_left_s(self) -> float:
        """So long a write may take that begins now; 0: none may."""
        if self.part is Part.ALONE:
            return inf
        return self._elector.writing_left_s() if self._elector is not None else 0.0


_LEASE: Final = GVK("coordination.k8s.io", "v1", "Lease")


class Leading(Struct, frozen=True, kw_only=True):
    """The Lease's content and the handover. `holder`: the leader; empty: nobody, or unknown.

    `renewed`: the last renewal of the Lease, by its holder's clock. `has_handover`: whether there is a handover.
    `error`: the error of reading any of it.
    """

    cluster: str
    holder: str = ""
    term: int = 0
    renewed: str = ""
    has_handover: bool = False
    error: str = ""


async def who_leads(member: MemberCluster, fleet: str) -> Leading:
    """Return the content of the Lease and of the handover."""
    found = await try_await(within(_look(member, fleet), timing.PROMPT_S))
    if found.value is not None:
        return found.value
    if isinstance(found.fault, MemberClusterError):
        return Leading(cluster=member.name, error=found.fault.message)
    assert found.fault is not None, "what gives nothing has failed"
    is_silent = isinstance(found.fault, TimeoutError)
    why = "no answer in time" if is_silent else told_fault(member.name, found.fault)
    return Leading(cluster=member.name, error=why)


async def _look(member: MemberCluster, fleet: str) -> Leading:
    left = await HandoverFile(member, fleet).read()
    try:
        lease = read_lease((await member.get(_LEASE, NAMESPACE, lease_name(fleet))).body)
    except ObjectNotFound:
        return Leading(cluster=member.name, has_handover=left is not None)
    return Leading(
        cluster=member.name,
        holder=lease.holder,
        term=lease.transitions,
        renewed=lease.renewed,
        has_handover=left is not None,
    )


log = logging.getLogger("reconciler")

_CHECKED_EVERY: Final = 10
"""Once in so many times the written handover is checked: a person may have changed it."""


class LeaderContext(Struct, frozen=True, kw_only=True):
    """The context of a leader. `members`: clusters on connections of their own."""

    elector: Elector
    left: HandoverFile
    members: MemberClusters

    async def keep(self, lost: asyncio.Event) -> None:
        """Keep the Lease; `lost` is set when it is."""
        try:
            why = await self.elector.keep()
            log.warning("this process leads no more", extra={"event": "LeadLost", "why": why})
        finally:
            lost.set()


class LeaderTerm:
    """One run of the control loop of a leader. `over` is set when the loop has to begin anew."""

    def __init__(self, seat: LeaderContext, parts: LoopParts, fleet: Fleet, taken: Taken) -> None:
        """Nothing is asked yet."""
        self.over = asyncio.Event()
        self.taken = taken
        self._seat = seat
        self._parts = parts
        self._fleet = fleet
        self._told = Transitions(log)
        self._one_by_one = asyncio.Lock()

    @property
    def parts(self) -> LoopParts:
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
                spoiled = await try_await(within(self._seat.left.is_spoiled(), timing.PROMPT_S))
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
        written = await try_await(self._seat.left.write(left, self._parts.journal.count_left))
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
            configs = try_call(parts.configs_of, self._fleet)
            # It may be reached in another way by now.
            members = seat.members.reached_by(configs.value) if configs.value is not None else seat.members
            ours = parts.cluster_filter.cut(self._fleet)
            found = await try_await(read_unread(ours, parts.journal, members, self.taken.unread, parts.clock))
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
        raised = await try_await(within(self._seat.elector.raise_term(term), timing.PROMPT_S))
        return bool(raised.value)
