"""The store's freshness at the beginning of a term: nothing older than the last leader's active revision.

Source: ADR 20. A clone of a Git URL is as old as its last fetch, and a standby that acted by it would undo reviewed
changes. A plain directory has no order, and is as it is.

Which part the process plays for its fleet: alone, standing by, or leading; and the control loop while it acts.

Source: design#one-leader; ADR 20. The loop knows nothing of it: a process that leads runs one, and has ended it when
it leads no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from enum import Enum, auto
from typing import Final, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.fleet import Fleet, HighAvailability
from reconciler.clock import since_boot_s
from reconciler.containment import fault_fields, try_await, try_call
from reconciler.controller import timing
from reconciler.controller.loop import ControlLoop
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.service.elector import Elector, LeaseTerms
from reconciler.controller.service.leadership import LeaderContext, Leadership, LeaderTerm
from reconciler.controller.service.takeover import HandoverFile, Taken, take_over
from reconciler.controller.store_follower import StoreFollower
from reconciler.controller.tasks import beside, either, ended, first_of, in_thread, start
from reconciler.controller.vitals.board import RoundPhase
from reconciler.controller.vitals.logs import Transitions
from reconciler.errors import FleetHeld, MemberClusterError, StoreError, StoreIsOlder
from reconciler.kube.member_clusters import MemberClusters
from reconciler.lease import HandoverTooLarge

log = logging.getLogger("reconciler")

_ASKED_MAX: Final = 5
"""So often at most: then another process may have what this one lacks."""


class _Age(Enum):
    """The relation of the store's content to a revision."""

    NOT_OLDER = auto()
    OLDER = auto()
    NOT_KNOWN = auto()
    """It was never fetched here: it is newer, or of a branch that was rewritten since."""


async def news(parts: LoopParts, follower: StoreFollower, fleet: Fleet, left: str) -> Fleet:
    """Return the fleet to lead by, after asking the store again. `left`: the last leader's active revision.

    A store that answers without that revision is trusted after as many answers.

    Raises:
        StoreIsOlder: this process must not lead by what it has.
    """
    told = Transitions(log)
    found = await _ask(parts, follower, fleet, left)
    for _ in range(_ASKED_MAX - 1):
        if found.age is _Age.NOT_OLDER:
            return found.fleet
        told.enter("older", found.why, logging.WARNING, "the store that was read is older than what was in force",
                   event="StoreIsOlder", rev=found.fleet.revision, error=found.why)  # fmt: skip
        await parts.clock.sleep(timing.LOOK_S)
        found = await _ask(parts, follower, found.fleet, left)
    if found.age is _Age.NOT_KNOWN and found.is_answered:
        log.warning(
            "going on without the revision that was in force: the store does not have it any more",
            extra={"event": "StoreRewritten", "rev": found.fleet.revision, "error": f"{left} is not there"},
        )
    elif found.age is not _Age.NOT_OLDER:
        raise StoreIsOlder(found.why)
    return found.fleet


class _StoreAnswer(NamedTuple):
    """The result of a question. `is_answered`: the store answered. `why`: the reason why it is not enough."""

    fleet: Fleet
    age: _Age
    is_answered: bool
    why: str


async def _ask(parts: LoopParts, follower: StoreFollower, fleet: Fleet, left: str) -> _StoreAnswer:
    asked = await try_await(parts.source.ask_now())
    if asked.fault is not None and not isinstance(asked.fault, StoreError):
        log.error("the store cannot be asked for a fault of the program", exc_info=asked.fault, extra=fault_fields())
    fleet = await follower.read() or fleet
    age = await in_thread(_age, parts, fleet.revision, left)
    cause = asked.fault or "nothing newer came"
    why = f"it is at {_short(fleet.revision)}, and {_short(left)} was in force: {cause}"
    return _StoreAnswer(fleet, age, asked.fault is None, why)


def _age(parts: LoopParts, revision: str, left: str) -> _Age:
    if left in ("", revision) or left.startswith("dir:") or revision.startswith("dir:"):
        return _Age.NOT_OLDER
    if left in parts.source.ancestry({left}, revision).order:
        return _Age.NOT_OLDER
    found = parts.source.ancestry({revision}, left)
    if left in found.missing or not found.order:
        return _Age.NOT_KNOWN
    return _Age.OLDER if revision in found.order else _Age.NOT_OLDER


def _short(revision: str) -> str:
    return revision[:12]


Opening = Callable[[Fleet], AbstractAsyncContextManager[MemberClusters]]
"""Clusters on connections of their own, on which writing is not bound to who leads."""


class Process(Struct, frozen=True, kw_only=True):
    """The parts of a process. `name`: of this process, and of no other one ever."""

    parts: LoopParts
    leadership: Leadership
    opening: Opening
    name: str


class FleetProcess:
    """One process of a fleet. `loop` is the control loop that runs now; None: it stands by."""

    def __init__(self, process: Process) -> None:
        """Nothing is read yet."""
        self.loop: ControlLoop | None = None
        self._process = process
        self._parts = replace(process.parts, is_other_part=self._is_other_part, tell_revision=self._tell_revision)
        self._leadership = process.leadership
        self._members = process.parts.opened
        """The clusters as the last loop left them: the next one goes on with their clients."""
        self._follower = StoreFollower(self._parts)
        self._ha: HighAvailability | None = None
        self._told = Transitions(log)
        self._turn_now: LeaderTerm | None = None
        self._is_behind = False
        """True if this process had to let another one lead, since the store that it reads is older than what was."""

    async def run(self, stop: asyncio.Event) -> None:
        """Play the part that the store and the Lease give, until `stop` is set.

        Raises:
            JournalError: nothing may be done that cannot be recorded.
            FleetHeld: another journal holds the fleet.
            ConfigurationError: an option is unusable.
        """
        fleet = await self._first(stop)
        while fleet is not None and not stop.is_set():
            # A Lease says who leads the fleet; who applies to named clusters does not.
            self._ha = fleet.settings.ha if self._parts.cluster_filter.is_whole else None
            if self._ha is None:
                self._leadership.alone()
                fleet = await self._act(self._parts, fleet, stop)
            else:
                fleet = await self._with_lease(fleet, self._ha, stop)

    async def _tell_revision(self) -> None:
        if self._turn_now is not None:
            await self._turn_now.leave_once()

    def _is_other_part(self, ha: HighAvailability | None) -> bool:
        return self._parts.cluster_filter.is_whole and _terms(ha) != _terms(self._ha)

    async def _first(self, stop: asyncio.Event) -> Fleet | None:
        while not stop.is_set():
            fleet = await self._follower.read()
            if fleet is not None:
                # The person who starts the service must see the faults of its options.
                self._parts.cluster_filter.check(fleet)
                self._parts.configs_of(fleet)
                return fleet
            await first_of(stop.wait(), self._store_changed())
        return None

    async def _store_changed(self) -> None:
        """Return when the store is to be read again; a server that is followed is asked meanwhile."""
        told = await try_await(self._parts.source.changed())
        if told.fault is not None:
            text = "the store cannot be watched for a fault of the program; it is read now and then"
            self._told.fault("store", told.fault, text, **fault_fields())
            await self._parts.clock.sleep(timing.CHECK_S)
        await self._parts.clock.sleep(timing.MOMENT_S)

    async def _act(self, parts: LoopParts, fleet: Fleet, *ends: asyncio.Event) -> Fleet:
        """Run the control loop until an event is set, or the store gives another part; the fleet in force then."""
        opened = self._members.reached_by(parts.configs_of(fleet))
        parts.vitals.leads = True
        parts.journal.record_led_by("")
        self.loop = loop = ControlLoop(replace(parts, opened=opened), self._follower, fleet)
        try:
            async with either(*ends) as end:
                await loop.run(end)
        finally:
            self.loop, self._members = None, loop.members
        return self._follower.fleet or fleet

    async def _with_lease(self, fleet: Fleet, ha: HighAvailability, stop: asyncio.Event) -> Fleet:
        """Stand by until this process leads or the store says otherwise; then lead for as long as it does."""
        self._leadership.stand_by()
        async with self._process.opening(fleet) as members:
            member = members.get(ha.cluster)
            if member is None:
                why = str(members.failed.get(ha.cluster, f"the store has no cluster {ha.cluster}"))
                self._told.enter("lease", why, logging.ERROR, "nobody can lead from here",
                                 event="LeaseUnreachable", cluster=ha.cluster, error=why)  # fmt: skip
                return await self._stand_by(None, fleet, stop)
            name = fleet.settings.name
            terms = LeaseTerms(fleet=name, holder=self._process.name, duration_s=ha.lease_duration_s)
            elector = Elector(member, terms, self._parts.clock, since_boot_s)
            try:
                fleet = await self._stand_by(elector, fleet, stop)
                if elector.term is None or stop.is_set():
                    return fleet
                seat = LeaderContext(elector=elector, left=HandoverFile(member, name), members=members)
                return await self._lead(seat, fleet, stop)
            finally:
                self._leadership.stand_by()
                await elector.give_back()

    async def _stand_by(self, elector: Elector | None, fleet: Fleet, stop: asyncio.Event) -> Fleet:
        """Wait for the Lease, and read the store as it advances; the fleet that is in force then."""
        log.info("standing by", extra={"event": "StandsBy"})
        self._parts.vitals.stand_by()
        stopping = start(stop.wait(), "stop")
        campaign = start(self._campaign(elector), "campaign") if elector is not None else stopping
        changed = start(self._store_changed(), "store of a standby")
        told = ""
        try:
            while not (campaign.done() or stop.is_set() or self._is_other_part(fleet.settings.ha)):
                leader = elector.holder if elector is not None else ""
                if leader and leader != told:
                    told = leader
                    log.info("standing by", extra={"event": "StandsBy", "why": f"{leader} leads"})
                self._parts.journal.record_led_by(leader or "nobody yet")
                self._parts.beat(RoundPhase.IDLE, text=f"standing by; {leader} leads" if leader else "standing by")
                await asyncio.wait([campaign, stopping], timeout=timing.LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                if campaign.done():
                    break  # A large commit takes longer to read than a Lease lasts that nobody renews.
                if not changed.done():
                    continue
                changed = start(self._store_changed(), "store of a standby")
                found = await self._follower.read()
                if found is not None:
                    is_same_way = elector is not None and found.clusters == fleet.clusters
                    fleet = found
                    if not is_same_way and not campaign.done():
                        break  # The Lease may be reached in another way now.
            return fleet
        finally:
            await ended([campaign, stopping, changed])

    async def _campaign(self, elector: Elector) -> None:
        """Wait for the Lease; who had to give it up for an old store waits until another one could have taken it."""
        if self._is_behind:
            self._is_behind = False
            await self._parts.clock.sleep(elector.duration_s)
        await elector.campaign()

    async def _lead(self, seat: LeaderContext, fleet: Fleet, stop: asyncio.Event) -> Fleet:
        """Know what the last leader knew, then act for as long as the Lease is held."""
        parts, lost = self._parts, asyncio.Event()
        async with beside({"lease": seat.keep(lost)}):
            parts.beat(RoundPhase.IDLE, text="taking over")
            await first_of(stop.wait(), lost.wait(), seat.elector.settled())
            if stop.is_set() or lost.is_set():
                return fleet
            try:
                left = await seat.left.read()
                fleet, seat = await self._news(seat, fleet, left.revision if left is not None else "")
                if stop.is_set() or lost.is_set() or self._is_other_part(fleet.settings.ha):
                    return fleet
                ours = parts.cluster_filter.cut(fleet)
                taken = await take_over(ours, parts.journal, seat.members, seat.elector, seat.left, parts.clock)
            except (MemberClusterError, HandoverTooLarge, StoreIsOlder) as error:
                self._is_behind = isinstance(error, StoreIsOlder)
                log.warning("this process cannot lead", extra={"event": "LeadFailed", "error": str(error)})
                return fleet
            if taken is None:
                return fleet
            parts.journal.record_in_force(fleet.revision, parts.store.good_blobs)
            log.info("leading", extra={"event": "Leads", "why": f"term {seat.elector.term}"})
            while not (stop.is_set() or lost.is_set() or self._is_other_part(fleet.settings.ha)):
                fleet, taken = await self._turn(seat, fleet, taken, (stop, lost))
        return fleet

    async def _news(self, seat: LeaderContext, fleet: Fleet, left: str) -> tuple[Fleet, LeaderContext]:
        """The fleet to lead by, and the seat with its clusters reached as it says."""
        found = await news(self._parts, self._follower, fleet, left)
        if found.clusters != fleet.clusters:
            configs = try_call(self._parts.configs_of, found)
            if configs.value is not None:
                seat = replace(seat, members=seat.members.reached_by(configs.value))
        return found, seat

    async def _turn(
        self, seat: LeaderContext, fleet: Fleet, taken: Taken, ends: tuple[asyncio.Event, ...]
    ) -> tuple[Fleet, Taken]:
        """Act until an event is set, marks of another cluster can be read, or a mark has a term above ours."""
        turn = self._turn_now = LeaderTerm(seat, self._parts, fleet, taken)
        self._leadership.lead(seat.elector, frozenset(taken.leaders))
        try:
            async with beside({"handover": turn.leave(), "unread marks": turn.read_unread()}):
                fleet = await self._act(turn.parts, fleet, turn.over, *ends)
        except FleetHeld as error:
            self._leadership.stand_by()
            if await turn.gives_way_to(error):
                ends[-1].set()
        finally:
            self._turn_now = None
        await turn.leave_once()
        return fleet, turn.taken


def _terms(ha: HighAvailability | None) -> tuple[str, int] | None:
    return (ha.cluster, ha.lease_duration_s) if ha is not None else None
