"""Which part the process plays for its fleet: alone, standing by, or leading; and the control loop while it acts.

Source: design#one-leader; ADR 20. The loop knows nothing of it: a process that leads runs one, and has ended it when
it leads no more.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.adapters.clock import since_boot_s
from reconciler.adapters.kube.client import MemberCluster
from reconciler.adapters.kube.members import Members
from reconciler.containment import awaited, contained, fault_fields
from reconciler.daemon.leadership.candidacy import Candidacy
from reconciler.daemon.leadership.elector import Elector, Terms
from reconciler.daemon.leadership.handover import HandoverFile
from reconciler.daemon.leadership.leadership import Leadership
from reconciler.daemon.leadership.takeover import Taken, recall, take_over
from reconciler.daemon.loop.loop import ControlLoop
from reconciler.daemon.loop.parts import Parts
from reconciler.daemon.loop.store_follower import StoreFollower
from reconciler.daemon.observing.reach import Given
from reconciler.daemon.observing.several import Several
from reconciler.daemon.service.events import beside, either, ended, first_of
from reconciler.daemon.service.news import news
from reconciler.daemon.service.turn import Seat, Turn
from reconciler.daemon.shards.custody import Custody
from reconciler.daemon.shards.exchange import Exchange
from reconciler.daemon.shards.onlooker import Onlooker, Onlooking
from reconciler.daemon.shards.pictures import Pictures, Teller
from reconciler.daemon.vitals.logs import Transitions
from reconciler.errors import FleetHeld, MemberClusterError, StoreIsOlder
from reconciler.model.fleet import Fleet, HighAvailability
from reconciler.stages.leadership import HandoverTooLarge
from reconciler.stages.shards import preference

log = logging.getLogger("reconciler")

_LOOK_S: Final = 2.0
"""How often a process that stands by looks at the store."""
_SETTLE_S: Final = 0.2
"""Pause after a change of the store was told of."""
_HEARD_S: Final = 1.0
"""How often it is looked up whether each shard has told something."""
_UNTOLD_S: Final = 5.0
"""How often a store is read that cannot say whether it changed."""

Opening = Callable[[Fleet], AbstractAsyncContextManager[Members]]
"""Clusters on connections of their own, on which writing is not bound to who leads."""


class Process(Struct, frozen=True, kw_only=True):
    """What a process has to play its part. `name`: of this process, and of no other one ever."""

    parts: Parts
    leadership: Leadership
    opening: Opening
    name: str


class Player:
    """One process of a fleet. `loop` is the control loop that runs now; None: it stands by."""

    def __init__(self, process: Process) -> None:
        """Nothing is read yet."""
        self.loop: ControlLoop | None = None
        self._process = process
        self._parts = replace(process.parts, is_other_part=self._is_other_loop, tell_revision=self._tell_revision)
        self._leadership = process.leadership
        self._members = process.parts.opened
        """The clusters as the last loop left them: the next one goes on with their clients."""
        self._follower = StoreFollower(self._parts)
        self._reach = process.parts.reach
        """As it was asked for; while a Lease is held, that of the parts says of which shard, and what others tell."""
        self._ha: HighAvailability | None = None
        self._own: frozenset[str] = frozenset()
        """The clusters to which the loop that runs applies."""
        self._told = Transitions(log)
        self._turn_now: Turn | None = None
        self._is_behind = False
        """Whether this process had to let another one lead, since the store that it reads is older than what was."""

    async def run(self, stop: asyncio.Event) -> None:
        """Play the part that the store and the Lease give, until `stop` is set.

        Raises:
            JournalError: nothing may be done that cannot be recorded.
            FleetHeld: another journal holds the fleet.
            ConfigurationError: an option is unusable.
        """
        fleet = await self._first(stop)
        while fleet is not None and not stop.is_set():
            # A Lease says who leads the fleet, or a shard; who applies to named clusters needs none.
            self._ha = fleet.settings.ha if not self._reach.chosen else None
            if self._ha is not None:
                fleet = await self._with_lease(fleet, self._ha, stop)
            elif self._reach.applies:
                self._tell_no_shard("the Fleet document has no spec.ha")
                fleet = await self._stand_by(None, fleet, stop)
            else:
                self._leadership.alone()
                self._parts.vitals.board.take_in(None)
                self._parts.journal.record_told(None)
                self._own = self._parts.reach.own(fleet)
                fleet = await self._act(self._parts, fleet, stop)

    async def _tell_revision(self) -> None:
        if self._turn_now is not None:
            await self._turn_now.leave_once()

    def _is_other_part(self, fleet: Fleet) -> bool:
        return not self._reach.chosen and _terms(fleet.settings.ha) != _terms(self._ha)

    def _is_other_loop(self, fleet: Fleet) -> bool:
        """Whether the loop has to begin anew: clusters that go from one shard to another are taken over first."""
        is_sharded = self._ha is not None and bool(self._ha.shards)
        return self._is_other_part(fleet) or (is_sharded and self._parts.reach.own(fleet) != self._own)

    def _tell_no_shard(self, why: str) -> None:
        self._leadership.stand_by()
        text = "this process applies to nothing; it waits for a commit that names shards"
        self._told.enter("shard", why, logging.ERROR, text, event="NoShard", error=why)

    async def _first(self, stop: asyncio.Event) -> Fleet | None:
        while not stop.is_set():
            fleet = await self._follower.read()
            if fleet is not None:
                # Whoever starts the service is to be told what is wrong with its options.
                self._parts.reach.check(fleet)
                self._parts.configs_in_reach(fleet)
                return fleet
            await first_of(stop.wait(), self._store_changed())
        return None

    async def _store_changed(self) -> None:
        """Return when the store is to be read again; a server that is followed is asked meanwhile."""
        told = await awaited(self._parts.source.changed())
        if told.fault is not None:
            text = "the store cannot be watched for a fault of the program; it is read now and then"
            self._told.fault("store", told.fault, text, **fault_fields())
            await self._parts.clock.sleep(_UNTOLD_S)
        await self._parts.clock.sleep(_SETTLE_S)

    async def _act(self, parts: Parts, fleet: Fleet, *ends: asyncio.Event) -> Fleet:
        """Run the control loop until an event is set, or the store gives another part; the fleet in force then."""
        opened = self._members.reached_by(parts.configs_in_reach(fleet))
        parts.vitals.leads, parts.vitals.applies = True, parts.reach.applies
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
            shards = self._shards(ha)
            if not shards:
                asked = f"no shard {self._reach.shard}" if self._reach.shard else "none"
                self._tell_no_shard(f"spec.ha.shards of the Fleet document has {asked}")
                return await self._stand_by(None, fleet, stop)
            self._told.leave("shard", "the Fleet document names shards", event="ShardNamed")
            electors = {shard: self._elector(member, fleet.settings.name, ha, shard) for shard in shards}
            candidacy = Candidacy(electors, self._parts.clock)
            try:
                fleet = await self._stand_by(candidacy, fleet, stop, self._onlooker(ha, member, fleet))
                if candidacy.won is None or stop.is_set():
                    return fleet
                return await self._lead(self._seat(candidacy.won, ha, member, members, fleet), fleet, stop)
            finally:
                self._leadership.stand_by()
                self._parts = replace(self._parts, reach=self._reach)
                await candidacy.give_back()

    def _shards(self, ha: HighAvailability) -> list[str]:
        """The shards whose Leases this process asks for, the empty name being that of the fleet."""
        if not self._reach.applies:
            return [""]
        wanted = preference(ha.shards, self._process.name)
        return [shard for shard in wanted if self._reach.shard in ("", shard)]

    def _elector(self, member: MemberCluster, fleet: str, ha: HighAvailability, shard: str) -> Elector:
        terms = Terms(fleet=fleet, holder=self._process.name, duration_s=ha.lease_duration_s, shard=shard)
        return Elector(member, terms, self._parts.clock, since_boot_s)

    def _seat(
        self, elector: Elector, ha: HighAvailability, member: MemberCluster, members: Members, fleet: Fleet
    ) -> Seat:
        """What this process sits on from now on; its parts are those of the shard that it got."""
        name, shard, exchange, pictures = fleet.settings.name, elector.shard, None, None
        custody = Custody(member, name, ha, since_boot_s)
        if ha.shards:

            def may_write() -> bool:
                return elector.writing_left_s() > 0

            exchange = Exchange(member, name, shard, ha.shards, may_write, custody.is_led)
            teller = Teller(fleet=name, shards=ha.shards, shard=shard, process=self._process.name)
            pictures = Pictures(member, teller, may_write, since_boot_s)
            given: Given = exchange if self._reach.given is None else Several(exchange, self._reach.given)
            self._parts = replace(self._parts, reach=replace(self._reach, shard=shard, given=given))
        return Seat(
            elector=elector,
            left=HandoverFile(member, name, shard),
            members=members,
            custody=custody,
            exchange=exchange,
            pictures=pictures,
        )

    def _onlooker(self, ha: HighAvailability, member: MemberCluster, fleet: Fleet) -> Onlooker | None:
        """Who shows what the shards tell while this process stands by; None: there are none."""
        if not ha.shards:
            return None
        parts = self._parts
        teller = Teller(fleet=fleet.settings.name, shards=ha.shards, shard="", process=self._process.name)
        with_ = Onlooking(
            member=member,
            interpreters=parts.interpreters,
            board=parts.vitals.board,
            journal=parts.journal,
            clock=parts.clock,
            source=parts.source.name,
        )
        return Onlooker(with_, Pictures(member, teller, lambda: False, since_boot_s))

    async def _stand_by(
        self, elector: Candidacy | None, fleet: Fleet, stop: asyncio.Event, onlooker: Onlooker | None = None
    ) -> Fleet:
        """Wait for the Lease, and read the store as it advances; the fleet that is in force then."""
        log.info("standing by", extra={"event": "StandsBy"})
        self._parts.vitals.stand_by()
        stopping = asyncio.ensure_future(stop.wait())
        campaign = asyncio.ensure_future(self._campaign(elector)) if elector is not None else stopping
        changed = asyncio.ensure_future(self._store_changed())
        looks_on = asyncio.ensure_future(onlooker.keep(lambda: fleet)) if onlooker is not None else stopping
        told = ""
        try:
            while not (campaign.done() or stop.is_set() or self._is_other_part(fleet)):
                leader = elector.holder if elector is not None else ""
                if leader and leader != told:
                    told = leader
                    log.info("standing by", extra={"event": "StandsBy", "why": f"{leader} leads"})
                self._parts.journal.record_led_by(leader or "nobody yet")
                self._parts.beat(f"standing by; {leader} leads" if leader else "standing by")
                await asyncio.wait([campaign, stopping], timeout=_LOOK_S, return_when=asyncio.FIRST_COMPLETED)
                if looks_on.done() and not stop.is_set():
                    looks_on.result()  # It goes on for ever, so that it has failed: see `beside`.
                if campaign.done():
                    break  # A large commit takes longer to read than a Lease lasts that nobody renews.
                if not changed.done():
                    continue
                changed = asyncio.ensure_future(self._store_changed())
                found = await self._follower.read()
                if found is not None:
                    is_same_way = elector is not None and found.clusters == fleet.clusters
                    fleet = found
                    if not is_same_way and not campaign.done():
                        break  # The Lease may be reached in another way now.
            return fleet
        finally:
            await ended([campaign, stopping, changed, looks_on])

    async def _campaign(self, elector: Candidacy) -> None:
        """Wait for the Lease; who had to give it up for an old store waits until another one could have taken it."""
        if self._is_behind:
            self._is_behind = False
            await self._parts.clock.sleep(elector.duration_s)
        await elector.campaign()

    async def _lead(self, seat: Seat, fleet: Fleet, stop: asyncio.Event) -> Fleet:
        """Know what the last leader knew, then act for as long as the Lease is held."""
        parts, lost = self._parts, asyncio.Event()
        async with beside(seat.keep(lost)):
            parts.beat("taking over")
            await first_of(stop.wait(), lost.wait(), seat.elector.settled())
            if stop.is_set() or lost.is_set():
                return fleet
            try:
                left = await seat.left.read()
                fleet, seat = await self._news(seat, fleet, left.revision if left is not None else "")
                if stop.is_set() or lost.is_set() or self._is_other_part(fleet):
                    return fleet
                if left is None and seat.exchange is not None and not seat.elector.shard:
                    told = await seat.exchange.told_before()
                    await recall(fleet, parts.journal, seat.members, told, parts.clock)
                ours = parts.reach.cut(fleet)
                taken = await take_over(ours, parts.journal, seat.members, seat.elector, seat.left, parts.clock)
            except (MemberClusterError, HandoverTooLarge, StoreIsOlder, FleetHeld) as error:
                # Another process can lead: it has a newer store, or knows what this one cannot.
                self._is_behind = isinstance(error, (StoreIsOlder, FleetHeld))
                log.warning("this process cannot lead", extra={"event": "LeadFailed", "error": str(error)})
                return fleet
            if taken is None:
                return fleet
            parts.journal.record_in_force(fleet.revision, parts.store.good_blobs)
            fleet = await self._hear_all(seat, fleet, (stop, lost))
            log.info("leading", extra={"event": "Leads", "why": f"term {seat.elector.term}"})
            while not (stop.is_set() or lost.is_set() or self._is_other_part(fleet)):
                fleet, taken = await self._turn(seat, fleet, taken, (stop, lost))
        return fleet

    async def _news(self, seat: Seat, fleet: Fleet, left: str) -> tuple[Fleet, Seat]:
        """The fleet to lead by, and the seat with its clusters reached as it says."""
        found = await news(self._parts, self._follower, fleet, left)
        if found.clusters != fleet.clusters:
            configs = contained(self._parts.configs_of, found)
            if configs.value is not None:
                seat = replace(seat, members=seat.members.reached_by(configs.value))
        return found, seat

    async def _hear_all(self, seat: Seat, fleet: Fleet, ends: tuple[asyncio.Event, ...]) -> Fleet:
        """Wait until each shard has told something once: what is divided by room would be divided without theirs."""
        exchange, parts = seat.exchange, self._parts
        if exchange is None:
            return fleet
        if seat.elector.shard:
            await exchange.read(parts.journal)
            return fleet
        changed = asyncio.ensure_future(self._store_changed())
        try:
            await exchange.read(parts.journal)
            while not (exchange.is_complete or any(end.is_set() for end in ends) or self._is_other_part(fleet)):
                parts.beat(f"waiting for the first word of shard {', '.join(exchange.awaited)}")
                await parts.clock.sleep(_HEARD_S)
                await exchange.read(parts.journal)
                if changed.done():
                    changed = asyncio.ensure_future(self._store_changed())
                    fleet = await self._follower.read() or fleet
            return fleet
        finally:
            await ended([changed])

    def _exchanging(self, seat: Seat) -> list[Coroutine[None, None, None]]:
        parts = self._parts
        if seat.exchange is None or seat.pictures is None:
            parts.vitals.board.take_in(None)
            parts.journal.record_told(None)
            return []
        return [
            seat.exchange.keep(parts.vitals.board, parts.journal, parts.clock, stirred=self._stirred),
            seat.pictures.keep(parts.vitals, parts.journal, parts.clock),
        ]

    def _stirred(self) -> None:
        if self.loop is not None:
            self.loop.nudge()

    async def _turn(
        self, seat: Seat, fleet: Fleet, taken: Taken, ends: tuple[asyncio.Event, ...]
    ) -> tuple[Fleet, Taken]:
        """Act until an event is set, marks of another cluster can be read, or a mark has a term above ours."""
        own = self._parts.reach.own(fleet)
        arrivals = own - self._parts.journal.cluster_uids().keys() if seat.exchange is not None else frozenset[str]()
        taken = replace(taken, unread=taken.unread | arrivals)
        self._own = own
        turn = self._turn_now = Turn(seat, self._parts, fleet, taken)
        self._leadership.lead(seat.elector, frozenset(taken.leaders))
        await turn.read_unread_once()
        try:
            async with beside(turn.leave(), turn.read_unread(), turn.let_go(), *self._exchanging(seat)):
                fleet = await self._act(turn.parts, fleet, turn.over, *ends)
        except FleetHeld as error:
            self._leadership.stand_by()
            if await turn.gives_way_to(error):
                ends[-1].set()
        finally:
            self._turn_now = None
        await turn.leave_once()
        return fleet, turn.taken


def _terms(ha: HighAvailability | None) -> tuple[str, int, tuple[str, ...]] | None:
    return (ha.cluster, ha.lease_duration_s, ha.shards) if ha is not None else None
