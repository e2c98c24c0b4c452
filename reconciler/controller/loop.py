"""The control loop: one task that waits for a nudge, reads, plans, acts and records; everything else only nudges.

Source: design#events-are-nudges: a round always reads state and enforces it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from functools import partial
from itertools import chain

from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.ledger import EventKind
from reconciler.containment import fault_fields, try_await
from reconciler.controller import timing
from reconciler.controller.event_judge import EventHandler
from reconciler.controller.loop_state import Established, LoopParts, PendingWork, State, exchanged, reconnected
from reconciler.controller.reader import Differing, Reader
from reconciler.controller.reading.late import LateReadings
from reconciler.controller.reading.read_clusters import ReadExtent, RoundReading, remembered, with_objects
from reconciler.controller.reading.scope import ReadScope, has_strangers, joined, scope_of
from reconciler.controller.recorder import Recorder
from reconciler.controller.retries.caches import Garbage, RoundCaches
from reconciler.controller.retries.health_cache import PodDiagnostics
from reconciler.controller.retries.workers import TakingIn
from reconciler.controller.round.contents import Contents
from reconciler.controller.round.dry_runs import dry_run
from reconciler.controller.round.picture import planned_with_health, with_holders
from reconciler.controller.staged_rounds import StagedRounds
from reconciler.controller.store_follower import StoreFollower, concerns_everything, needs_other_members, other_clusters
from reconciler.controller.tasks import ended, in_thread, start
from reconciler.controller.vitals.board import RoundPhase
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.vitals.service_vitals import tell_progress
from reconciler.controller.watches.kind_watches import Watches, WatchKeeper
from reconciler.controller.watches.polls import Polls
from reconciler.controller.writer import Writer
from reconciler.kube.member_clusters import MemberClusters
from reconciler.store.local_source import wait_for

log = logging.getLogger("reconciler")


class ControlLoop:
    """One fleet, one journal, one task."""

    def __init__(self, parts: LoopParts, follower: StoreFollower | None = None, fleet: Fleet | None = None) -> None:
        """Nothing is read before `run`. `fleet`: what `follower` has read into force already, with its members."""
        self._parts = parts
        self._agenda, self._stop = PendingWork(), asyncio.Event()
        memory = RoundCaches(parts.clock, self._wake)
        self._lanes, self._unfinished = memory.lanes, memory.unfinished
        self._away, self._kind_faults = memory.away, memory.kind_faults
        self._restores = memory.restores
        self._restores.recall(parts.journal.events(kind=EventKind.CLUSTER_WENT_BACK), parts.journal.versions())
        self._ailments = PodDiagnostics(memory.healths, parts.interpreters, parts.clock)
        self._garbage = Garbage()
        self._contents = Contents(parts.clock)
        self._told = Transitions(log)
        self._taking_in = TakingIn(self._lanes, parts.clock)
        self._state = State(members=parts.opened, access_stamp=parts.access_stamp(), fleet=fleet)
        self._established = Established()
        self._follower = follower or StoreFollower(parts)
        self._stages = StagedRounds(parts, self._follower, self._wake)
        self._reader, self._writer = Reader(parts, memory), Writer(parts, memory)
        self._recorder = Recorder(parts, memory)
        self._judge = EventHandler(
            parts, lambda: self._state, lambda: self._agenda, memory, self._established, self._recorder.heard
        )
        self._late = LateReadings(self._judge.mark_in, self._judge.doubted, lambda: len(self._state.members))
        parts.holder.listen(self._judge.restored)
        self._polls = Polls(self._judge, parts.clock)
        self._keeper = WatchKeeper(Watches(self._judge.listeners, parts.clock), self._polls)

    def _wake(self) -> None:
        self._agenda.wake.set()

    def wake(self) -> None:
        """Something outside changed: a suspension began or ended."""
        self._agenda.mark_everything()

    def reload(self) -> None:
        """Have the next round read the kubeconfig again; while it is unusable, the one in force stays."""
        self._parts.ask_keys_again()
        self._parts.vitals.is_reloading = self._agenda.reload = self._agenda.reconnect = True
        self._agenda.mark_store()
        self._agenda.mark_everything()

    @property
    def members(self) -> MemberClusters:
        """The clusters as they are reached now."""
        return self._state.members

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; wait a limited time for running writes.

        Raises:
            JournalError: nothing may be done that cannot be recorded.
            FleetHeld: another journal holds the fleet.
        """
        self._stop = stop
        self._state = replace(self._state, known=remembered(self._parts.journal))
        self._parts.follow_keys(lambda identities: self._agenda.mark(*identities))
        tasks = [start(work, name, self._wake) for name, work in self._lookouts(stop).items()]
        try:
            while not stop.is_set():
                await self._wait()
                for task in tasks:
                    if task.done() and not stop.is_set():
                        task.result()
                if stop.is_set():
                    break
                await self._round()
            await self._leave()
        finally:
            await self._lanes.close()
            await self._late.close()
            await self._away.close()
            await self._stages.close()
            await ended(tasks)
            await self._keeper.close()

    async def _leave(self) -> None:
        """Let writes under way end; the rest is looked into at the next start, as after a crash."""
        if busy := sorted(self._lanes.busy):
            self._parts.beat(RoundPhase.IDLE, text=f"ending, waiting for writes to {', '.join(busy)}")
            await self._lanes.close(timing.LEAVE_S)
            self._take_in_ended(self._agenda)
        self._recorder.keep_versions()

    # What nudges

    def _lookouts(self, stop: asyncio.Event) -> dict[str, Coroutine[None, None, object]]:
        clock = self._parts.clock
        return {
            "store": self._watch_store(),
            "away": self._watch_absent(),
            "kinds": self._kind_faults.watch(lambda: self._state, self._begin_anew),
            "pods": self._ailments.watch(lambda: self._state.reachable),
            "restores": self._restores.watch(lambda: self._state.identified, clock, self._judge.restored),
            "polls": self._polls.run(),
            "start": tell_progress(self._parts.vitals, clock),
            "stop of the loop": stop.wait(),
        }

    async def _watch_store(self) -> None:
        while True:
            told = await try_await(self._parts.source.changed())
            if told.fault is not None:
                # Whether it changed is not known then, so it is read.
                text = "the store cannot be watched for a fault of the program; it is read now and then"
                self._told.fault("store", told.fault, text, **fault_fields())
                await self._parts.clock.sleep(timing.CHECK_S)
            self._agenda.mark_store()
            await self._parts.clock.sleep(timing.MOMENT_S)

    async def _watch_absent(self) -> None:
        clock = self._parts.clock
        while True:
            await clock.sleep(timing.TICK_S)
            state = self._state
            if state.is_anybody_away and self._parts.access_stamp() != state.access_stamp:
                self._agenda.mark_reconnect()  # What a cluster refuses may have been renewed.
            back = await self._away.reconnected(state.members, state.known.cluster_uids)
            for name in back:
                self._begin_anew(name)

    def _begin_anew(self, cluster: str) -> None:
        """A cluster, or a kind of it, answers again: read all of it, with new watches, since old ones may hang."""
        self._keeper.drop(cluster)
        self._agenda.mark_cluster(cluster)

    async def _wait(self) -> None:
        """Until there is something to do, or a timer is due."""
        clock = self._parts.clock
        self._beat_idle()
        while self._agenda.is_empty and not self._taking_in.is_end_due:
            most_s = self._taking_in.pause_s if self._lanes.busy else timing.CHECK_S
            pause_s = min(self._due_s() - clock.monotonic_s(), most_s)
            if pause_s <= 0:
                self._reader.mark(self._state, self._agenda, clock.monotonic_s())
                self._mark_due(clock.monotonic_s())
                continue
            self._agenda.wake.clear()
            self._garbage.idle(clock.monotonic_s())
            self._state, news_s = self._recorder.tell_news(self._state)
            if self._stages.is_due(self._state):
                self._agenda.mark_stages()
                return
            await wait_for(self._agenda.wake, min(pause_s, news_s), clock)
            self._state = self._established.record(self._state, self._parts.journal)
            self._beat_idle()
            if self._stop.is_set() or self._taking_in.is_part_due:
                return

    def _mark_due(self, now_s: float) -> None:
        if now_s >= self._stages.next_s:
            self._agenda.mark_stages()
        self._agenda.mark(*self._unfinished.due())
        for cluster, identity in self._unfinished.due_copies():
            self._agenda.mark_in(cluster, (identity,))

    def _due_s(self) -> float:
        """Return the time of the next timer."""
        return min(self._reader.next_s(self._state), self._unfinished.next_retry_s(), self._stages.next_s)

    def _beat_idle(self) -> None:
        busy = ", ".join(sorted(self._lanes.busy))
        self._parts.beat(RoundPhase.IDLE, text=f"waiting for writes to {busy}" if busy else "")

    # Rounds

    async def _round(self) -> None:
        agenda, self._agenda = self._agenda, PendingWork(everything=False, store=False, wake=self._agenda.wake)
        self._take_in_ended(agenda)
        if not agenda.is_empty:
            await self._work_off(agenda)
            self._garbage.round_ended()
        if agenda.reload:
            self._parts.vitals.is_reloading = self._agenda.reload

    def _take_in_ended(self, agenda: PendingWork) -> None:
        """Record finished writes, and enqueue their consequences."""
        begun_s = self._parts.clock.monotonic_s()
        ended = self._lanes.collect(parts=self._stop.is_set() or self._taking_in.is_part_due)
        if not ended:
            return
        self._state = self._recorder.record_ended(self._state, ended, self._parts.clock.now(), agenda)
        for each in ended:
            self._judge.caught_up(each)
        self._taking_in.took(begun_s)

    async def _work_off(self, agenda: PendingWork) -> None:
        if agenda.store:
            await self._read_store(agenda)
        fleet = self._state.fleet
        if fleet is not None and agenda.reconnect:
            self._unfinished.forgive(fleet.clusters)
            self._reconnect(fleet, agenda)
        if fleet is not None and self._parts.is_other_part(fleet):
            self._stop.set()  # Another process may lead now: whoever runs this loop decides that first.
            return
        if fleet is None:
            self._agenda.everything = True
            await self._parts.clock.sleep(timing.TICK_S)
            self._agenda.store = True
            return
        started_s, now = self._parts.clock.monotonic_s(), self._parts.clock.now()
        for name in sorted(agenda.restored):
            self._judge.went_back(name, now)
            self._keeper.drop(name)
        before, rollouts = self._state.observations.clusters, self._state.rollouts
        self._state, differing = await self._reader.read(self._state, fleet, agenda, now)
        agenda.clusters |= self._state.listed_otherwise(before)
        for name in self._state.fell_silent:
            self._agenda.mark_cluster(name)
        if agenda.clusters and not self._state.known.has_history and not self._state.is_anybody_away:
            # Deletions wait for one round over everything, in which nobody is away: this can be it.
            agenda.everything = True
        self._state, restaged = await self._stages.stage(self._state, self._reader, agenda, now)
        agenda.identities |= restaged
        scope = None if agenda.everything else self._scope(self._state, fleet, agenda, differing)
        if scope is not None and scope.is_empty:
            if self._state.rollouts != rollouts:
                self._state = self._recorder.tell_rollouts(self._state)
            return
        await self._pass(self._state, fleet, scope, now)
        self._parts.vitals.durations_s["round"] = self._parts.clock.monotonic_s() - started_s

    def _scope(self, state: State, fleet: Fleet, agenda: PendingWork, differing: Differing) -> ReadScope:
        """Return the scope of the round: rescheduled, enqueued and guarded objects."""
        assert state.decision is not None, "a reading decides"
        return scope_of(
            state.decision,
            state.known.ledger,
            identities=differing.identities | agenda.identities | self._unfinished.confirming,
            copies=joined(agenda.copies, differing.copies),
            clusters=agenda.clusters & self._parts.cluster_filter.own(fleet),
            unfinished=self._unfinished.held,
        )

    async def _read_store(self, agenda: PendingWork) -> None:
        fleet = await self._follower.read()
        if fleet is None:
            return
        before = self._state.fleet
        self._state = replace(self._state, fleet=fleet, decision=None)
        if before is None:
            # The person who starts the service must see the faults of its options.
            members = self._state.members.reached_by(self._parts.configs_of(fleet))
            self._state, _ = exchanged(self._state, members)
        elif needs_other_members(before, fleet):
            self._reconnect(fleet, agenda)
        if needs_other_members(before, fleet):
            own = self._parts.cluster_filter.own(fleet)
            self._away.keep(own)
            self._kind_faults.keep(own)
        if concerns_everything(before, fleet):
            agenda.mark_everything()
        else:
            agenda.mark_cluster(*other_clusters(before, fleet))

    def _reconnect(self, fleet: Fleet, agenda: PendingWork) -> None:
        self._state, other = reconnected(self._parts, self._state, fleet)
        agenda.mark_cluster(*other)

    async def _pass(self, state: State, fleet: Fleet, scope: ReadScope | None, now: str) -> None:
        """Read, plan, write and record the scope; None: everything."""
        parts, decision = self._parts, state.decision
        assert decision is not None, "a reading decides"
        copies = state.copies if scope is None else len(scope.identities) * len(fleet.clusters) + scope.size
        progress = parts.counted(RoundPhase.READ, copies, len(state.reachable))
        read = self._late.read if scope is not None else self._late.read_all
        extent = ReadExtent(scope=scope, schemas=state.schemas, progress=progress, read=read, open=parts.open)
        extent = replace(extent, at_fault=self._kind_faults.at_fault())
        extent = self._reader.within_reach(extent, state)
        self._judge.round_begins()
        snapshot = await with_objects(state.snapshot(fleet, parts.interpreters, now), decision, state.reachable, extent)
        if scope is not None and has_strangers(snapshot.members, scope):
            # Only a round over everything sees where else they are.
            self._agenda.mark_everything()
        snapshot = replace(snapshot, members=self._lanes.without(snapshot.members, snapshot.only))
        state = replace(state, schemas=snapshot.schemas)
        parts.beat(RoundPhase.PLAN, copies)
        planned, health = await in_thread(planned_with_health, snapshot, decision)
        asking = partial(parts.beat, RoundPhase.DRY_RUN)
        met = {name: member for name, member in state.reachable.items() if not isinstance(member, str)}
        free = {name: member for name, member in met.items() if name not in self._lanes.busy}
        is_asked_first = self._unfinished.is_asked_first
        planned = await dry_run(planned, free, snapshot, is_asked_first, progress=asking, within_s=timing.PROMPT_S)
        planned = await self._contents.add(planned, free, fleet.settings, timing.PROMPT_S)
        planned = with_holders(self._writer.restrained(planned, snapshot), state.held_elsewhere)
        if self._stop.is_set():
            return
        self._writer.begin(planned, snapshot, met)
        await self._written()
        ended = self._lanes.collect(of_this_round=True)
        results = tuple(chain.from_iterable(each.results for each in ended))
        reading = RoundReading(snapshot=snapshot, decision=decision, uids={})
        self._state = state = self._recorder.record(state, planned, reading, results, self._agenda, health)
        for each in ended:
            self._judge.caught_up(each)
        self._judge.round_ends()
        self._lanes.round_ends()
        self._keeper.follow(decision, state.known.ledger, state.members, anew=scope is None)

    async def _written(self) -> None:
        """Until everything is written; after the grace only for as long as nothing else is to be done, and not long."""
        clock, agenda = self._parts.clock, self._agenda
        begun_s = clock.monotonic_s()
        grace_s, patience_s = begun_s + timing.WRITE_GRACE_S, begun_s + timing.PATIENCE_S
        while self._lanes.is_of_this_round_open:
            now_s = clock.monotonic_s()
            is_wanted = not agenda.is_empty or self._stop.is_set() or now_s >= min(self._due_s(), patience_s)
            if is_wanted and now_s >= grace_s:
                return
            until_s = grace_s if is_wanted else min(self._due_s(), patience_s)
            agenda.wake.clear()
            await wait_for(agenda.wake, max(until_s, now_s) - now_s, clock)
            self._parts.beat(RoundPhase.WRITE)
