"""The part of a process in its fleet (alone, standby or leader), and the control loop while it acts.

The loop knows nothing of it: a leader runs one, and ends it before it stops leading. Source: design#one-leader; ADR 20.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from math import inf
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.fleet import Fleet, HighAvailability
from reconciler.clock import since_boot_s, wait_for, within
from reconciler.containment import fault_fields, try_await, try_call
from reconciler.controller import timing
from reconciler.controller.loop import ControlLoop
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.service.elector import Elector
from reconciler.controller.service.takeover import HandoverFile, catch_up, left_by, read_unread, take_over
from reconciler.controller.store_follower import StoreFollower
from reconciler.controller.tasks import beside, either, first_of
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.vitals.service_vitals import RoundPhase
from reconciler.errors import ConfigurationError, Deposed, FleetHeld, MemberClusterError, StoreIsOlder
from reconciler.kube.member_clusters import MemberClusters
from reconciler.lease import Handover, HandoverTooLarge
from reconciler.report.status.remedies import STANDBY

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
    """The time for which a leader holds the Lease. `over` is set when its control loop has to begin again."""

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
        is_expected = isinstance(fault, (MemberClusterError, HandoverTooLarge))
        extra = {"event": "HandoverFailed", "error": str(fault), **({} if is_expected else fault_fields())}
        text = "timers, orders and caps of now would be lost if another process led"
        self._transitions.enter("handover", str(fault), logging.WARNING, text, **extra)
        return False

    async def read_unread(self) -> None:
        """Read marks of clusters that answer at last; the loop begins again with them."""
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

    async def must_yield_to(self, error: FleetHeld) -> bool:
        """Return whether this process must stop leading: the Lease is lost, or a mark has a later term.

        If the Lease was lost while a mark was read, the term of this process is unknown.

        Raises FleetHeld: the mark is of one that holds no Lease, while this process leads.
        """
        if self.elector.term is not None and not isinstance(error, Deposed):
            raise error
        log.warning("a mark has a later term", extra={"event": "Deposed", "error": str(error)})
        if not isinstance(error, Deposed):
            return True
        raised = await try_await(within(self.elector.raise_term(error.term), timing.PROMPT_S))
        return not raised.value


class Leadership:
    """The part of this process, for every writer. Until anything is known it stands by, and nothing may be written."""

    def __init__(self) -> None:
        self.is_alone = False
        """The fleet has no Lease."""
        self.leaders: frozenset[str] = frozenset()
        """Journals of processes that led under the Lease."""
        self._elector: Elector | None = None

    def become(self, elector: Elector | None = None, *, is_alone: bool = False) -> None:
        """Lead by an elector, which writes for as long as it holds the Lease; alone; or, of neither, stand by."""
        self.is_alone, self._elector = is_alone, elector

    def term(self) -> int | None:
        """The term in which this process leads; None: there is no Lease, or it does not hold it."""
        return self._elector.term if self._elector is not None else None

    def writing_left_s(self) -> float:
        """So long a write may take that begins now; 0: none may."""
        if self.is_alone:
            return inf
        return self._elector.writing_left_s() if self._elector is not None else 0.0


class FleetProcess:
    """One process of a fleet. `loop` is the control loop that runs now; None: it stands by."""

    def __init__(self, parts: LoopParts, leadership: Leadership, name: str) -> None:
        """Nothing is read yet. `name`: of this process, and of no other one ever."""
        self.loop: ControlLoop | None = None
        self._parts, self._leadership, self._name = parts, leadership, name
        self._members = parts.opened
        """The clusters as the last loop left them: the next one goes on with their clients."""
        self._no_lease = ""
        """The error for which the cluster of the Lease could not be opened last."""
        self._follower = StoreFollower(parts)
        self._transitions = Transitions()
        self._is_behind = False
        """True if this process had to let another one lead, since the store that it reads is older than what was."""

    async def run(self, stop: asyncio.Event) -> None:
        """Play the part that the store and the Lease give, until `stop` is set.

        | part | begins | ends |
        |---|---|---|
        | alone | the store names no Lease, or this process applies to named clusters alone | the store names one |
        | standby | the store names a Lease, or the leader lost it | it is taken; the store names another one, or none |
        | leader | the Lease was taken | it is lost, or left to others; the store names another one, or none |

        Raises:
            JournalError: nothing may be done that cannot be recorded.
            FleetHeld: another journal holds the fleet.
            ConfigurationError: an option is unusable.
        """
        await self._read_first(stop)
        while not stop.is_set():
            # A Lease says who leads the fleet; who applies to named clusters does not.
            ha = self._fleet.settings.ha if self._parts.access.clusters.is_whole else None
            self._parts = replace(self._parts, ha=ha)
            if ha is None:
                self._leadership.become(is_alone=True)
                await self._act(self._parts, stop)
                continue
            async with self._lease_context(ha) as context:
                await self._standby(context, stop)
                if context is not None and context.elector.term is not None and not stop.is_set():
                    await self._leader(context, stop)

    @property
    def _fleet(self) -> Fleet:
        assert self._follower.fleet is not None, "it was read before any part is played"
        return self._follower.fleet

    @property
    def _is_other_part(self) -> bool:
        return self._parts.is_other_part(self._fleet)

    async def _read_first(self, stop: asyncio.Event) -> None:
        while not stop.is_set():
            fleet = await self._follower.read()
            if fleet is not None:
                # The person who starts the service must see the faults of its options.
                self._parts.access.clusters.check(fleet)
                self._parts.configs_of(fleet)
                return
            await first_of(stop.wait(), self._store_changed())

    async def _store_changed(self) -> None:
        await self._follower.changed()
        await self._parts.access.clock.sleep(timing.MOMENT_S)

    async def _act(self, parts: LoopParts, *ends: asyncio.Event) -> None:
        opened = self._members.reached_by(parts.configs_of(self._fleet))
        parts.vitals.leads = True
        parts.journal.record_led_by("")
        self.loop = loop = ControlLoop(replace(parts, opened=opened), self._follower, self._fleet)
        parts.vitals.loop = loop
        try:
            async with either(*ends) as end:
                await loop.run(end)
        finally:
            self.loop, self._members, parts.vitals.loop = None, loop.members, None

    # Standby

    @asynccontextmanager
    async def _lease_context(self, ha: HighAvailability) -> AsyncIterator[LeaderContext | None]:
        """Open the cluster of the Lease, which is given back at the end; None: it cannot be reached."""
        parts, fleet = self._parts, self._fleet
        self._leadership.become()
        async with MemberClusters.open(
            parts.configs_of(fleet), agent=parts.agent, clock=parts.access.clock, answered=parts.vitals.answered
        ) as members:
            member = members.get(ha.cluster)
            if member is None:
                why = str(members.failed.get(ha.cluster, f"the store has no cluster {ha.cluster}"))
                self._transitions.enter("lease", why, logging.ERROR, "nobody can lead from here",
                                 event="LeaseUnreachable", cluster=ha.cluster, error=why, todo=STANDBY)  # fmt: skip
                self._no_lease = why
                yield None
                return
            name = fleet.settings.name
            names = {"fleet": name, "holder": self._name}
            elector = Elector(member, parts.access.clock, since_boot_s, **names, duration_s=ha.lease_duration_s)
            try:
                yield LeaderContext(elector=elector, left=HandoverFile(member, name), members=members)
            finally:
                self._leadership.become()
                await elector.release()

    async def _standby(self, context: LeaderContext | None, stop: asyncio.Event) -> None:
        log.info("standing by", extra={"event": "StandsBy"})
        self._parts.vitals.stand_by()
        leads, changed, known, last_leader = asyncio.Event(), asyncio.Event(), self._fleet.clusters, ""
        works = {"store of a standby": self._watch_store(changed)}
        if context is not None:
            works["campaign"] = self._campaign(context.elector, leads)
        async with beside(works), either(stop, leads) as over:
            while not (over.is_set() or self._is_other_part):
                leader = context.elector.holder if context is not None else ""
                if leader and leader != last_leader:
                    last_leader = leader
                    log.info("standing by", extra={"event": "StandsBy", "why": f"{leader} leads"})
                fault = context.elector.fault if context is not None else self._no_lease
                led_by = leader or (f"nobody; {fault}" if fault else "nobody yet")
                self._parts.journal.record_led_by(led_by)
                words = f"{leader} leads" if leader else f"led by {led_by}"
                self._parts.beat(RoundPhase.IDLE, text=f"standing by; {words}")
                # A large commit takes longer to read than a Lease lasts that nobody renews.
                if not await wait_for(over, timing.LOOK_S, self._parts.access.clock) and changed.is_set():
                    changed.clear()
                    is_read = await self._follower.read() is not None
                    if is_read and (context is None or self._fleet.clusters != known):
                        return  # The Lease may be reached in another way now.

    async def _watch_store(self, changed: asyncio.Event) -> None:
        while True:
            await self._store_changed()
            changed.set()

    async def _campaign(self, elector: Elector, leads: asyncio.Event) -> None:
        """Wait for the Lease; who had to give it up for an old store waits until another one could have taken it."""
        if self._is_behind:
            self._is_behind = False
            await self._parts.access.clock.sleep(elector.duration_s)
        await elector.campaign()
        leads.set()

    # Leader

    async def _leader(self, context: LeaderContext, stop: asyncio.Event) -> None:
        lost = asyncio.Event()
        async with beside({"lease": _keep_lease(context.elector, lost)}):
            self._parts.beat(RoundPhase.IDLE, text="taking over")
            await first_of(stop.wait(), lost.wait(), context.elector.may_write())
            term = await self._begin_term(context, stop, lost)
            if term is not None:
                await self._lead(term, stop, lost)

    async def _begin_term(self, context: LeaderContext, stop: asyncio.Event, lost: asyncio.Event) -> LeaderTerm | None:
        """Take over from the last leader; None: this process must not lead now."""
        parts = self._parts
        if stop.is_set() or lost.is_set():
            return None
        try:
            left = await context.left.read()
            known = self._fleet.clusters
            await catch_up(parts, self._follower, left.revision if left is not None else "")
            if stop.is_set() or lost.is_set() or self._is_other_part:
                return None
            if self._fleet.clusters != known:
                context = replace(context, members=reached_now(parts, self._fleet, context.members))
            ours = parts.access.clusters.cut(self._fleet)
            handover = await take_over(
                ours, parts.journal, context.members, context.elector, context.left, parts.access.clock
            )
        except (MemberClusterError, HandoverTooLarge, StoreIsOlder) as error:
            self._is_behind = isinstance(error, StoreIsOlder)
            log.warning("this process cannot lead", extra={"event": "LeadFailed", "error": str(error)})
            return None
        if handover is None:
            return None
        parts.journal.record_in_force(self._fleet.revision, parts.store.good_blobs)
        log.info("leading", extra={"event": "Leads", "why": f"term {context.elector.term}"})
        return LeaderTerm(context, parts, self._follower, handover)

    async def _lead(self, term: LeaderTerm, stop: asyncio.Event, lost: asyncio.Event) -> None:
        self._follower.leave_once = term.leave_once
        try:
            async with beside({"handover": term.leave(), "unread marks": term.read_unread()}):
                while not (stop.is_set() or lost.is_set() or self._is_other_part):
                    await self._act_in(term, stop, lost)
        finally:
            self._follower.leave_once = None

    async def _act_in(self, term: LeaderTerm, stop: asyncio.Event, lost: asyncio.Event) -> None:
        """Act until an event is set, marks of another cluster can be read, or a mark has a term above ours."""
        self._leadership.leaders = frozenset(term.taken.leaders)
        self._leadership.become(term.elector)
        term.over.clear()
        try:
            await self._act(term.parts, term.over, stop, lost)
        except FleetHeld as error:
            self._leadership.become()
            if await term.must_yield_to(error):
                lost.set()
        await term.leave_once()


async def _keep_lease(elector: Elector, lost: asyncio.Event) -> None:
    """Keep the Lease; `lost` is set when it is."""
    try:
        why = await elector.keep()
        log.warning("this process leads no more", extra={"event": "LeadLost", "why": why, "todo": STANDBY})
    finally:
        lost.set()
