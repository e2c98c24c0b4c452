"""The control loop: batches of events become rounds, which read, plan, write and record. Everything else only sends.

Source: design#events-are-nudges: a round always reads state and enforces it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import chain

from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import EventKind
from reconciler.api.refs import Identity
from reconciler.controller import timing
from reconciler.controller.cluster_reads.clusters_needed import causes
from reconciler.controller.cluster_reads.members import answered_by
from reconciler.controller.cluster_reads.read_clusters import ReadExtent, remembered, with_objects
from reconciler.controller.cluster_reads.scope import ReadScope, joined, scope_of
from reconciler.controller.cluster_reads.slow_clusters import LateReadings
from reconciler.controller.event_handler import EventHandler
from reconciler.controller.inbox import (
    ClusterChanged,
    ClusterScope,
    Inbox,
    LoopCommand,
    LoopEvent,
    LoopOrder,
    LoopTimer,
    ObjectsChanged,
    PendingWork,
    Published,
    Stopped,
    StoreChanged,
    TimerDue,
    work_of,
)
from reconciler.controller.loop_state import Established, LoopParts, State, exchanged, reconnected
from reconciler.controller.reader import Arriving, Reader, StagedRounds
from reconciler.controller.recorder import Recorder
from reconciler.controller.retries.caches import Garbage, RoundCaches
from reconciler.controller.retries.health_cache import PodDiagnostics
from reconciler.controller.round.dry_runs import Contents, dry_run
from reconciler.controller.round.failed_changes import Looked, health_read, with_holders
from reconciler.controller.store_follower import StoreFollower, concerns_everything, needs_other_members
from reconciler.controller.tasks import beside, in_thread, once_set
from reconciler.controller.vitals.service_vitals import RoundPhase, log_progress
from reconciler.controller.watches.kind_watches import Watches, WatchKeeper
from reconciler.controller.watches.polls import Polls
from reconciler.controller.writer import Writer
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.incremental import changed_keys
from reconciler.kube.client import MemberCluster
from reconciler.kube.member_clusters import MemberClusters
from reconciler.planner import Round, plan_round


class ControlLoop:
    """One fleet, one journal, one task."""

    def __init__(
        self,
        parts: LoopParts,
        follower: StoreFollower | None = None,
        fleet: Fleet | None = None,
        inbox: Inbox | None = None,
    ) -> None:
        """Nothing is read before `run`. `fleet`: what `follower` has read into force already, with its members."""
        self._parts = parts
        self._inbox, self._stop = inbox or Inbox(), asyncio.Event()
        self._inbox.send(StoreChanged(), LoopCommand(LoopOrder.LOOK))
        self._published = Published(State(members=parts.opened, access_stamp=parts.access_stamp(), fleet=fleet))
        self._memory = memory = RoundCaches(parts.access.clock, self._inbox)
        self._memory.restores.recall(parts.journal.events(kind=EventKind.CLUSTER_WENT_BACK), parts.journal.versions())
        self._pods = PodDiagnostics(memory.healths, parts.access.interpreters, parts.access.clock)
        self._garbage = Garbage()
        self._contents = Contents(parts.access.clock)
        self._established = Established()
        self._follower = follower or StoreFollower(parts)
        self._stages = StagedRounds(parts, self._follower, self._inbox)
        self._reader, self._writer = Reader(parts, memory), Writer(parts, memory)
        self._recorder = Recorder(parts, memory, self._inbox)
        self._handler = EventHandler(parts, self._published, self._inbox, memory, self._established)
        self._late = LateReadings(self._inbox)
        parts.holder.inbox = self._inbox
        self._polls = Polls(self._handler, parts.access.clock)
        self._keeper = WatchKeeper(Watches(self._handler, parts.access.clock), self._polls)

    def wake(self) -> None:
        """Something outside changed: a suspension began or ended."""
        self._inbox.send(LoopCommand(LoopOrder.LOOK))

    def reload(self) -> None:
        """Have the next round read the kubeconfig again; while it is unusable, the one in force stays."""
        if self._parts.access.keys is not None:
            self._parts.access.keys.again()
        self._parts.vitals.is_reloading = True
        self._inbox.send(LoopCommand(LoopOrder.RELOAD))

    @property
    def members(self) -> MemberClusters:
        """The clusters as they are reached now."""
        return self._published.value.members

    async def run(self, stop: asyncio.Event) -> None:
        """Work until `stop` is set; wait a limited time for running writes.

        Raises JournalError: nothing may be done that cannot be recorded; FleetHeld: another journal holds the fleet.
        """
        self._stop = stop
        self._parts.follow_keys(self._inbox)
        state, pause_s = self.initial_state(), 0.0
        try:
            clock, latest, inbox = self._parts.access.clock, self._published, self._inbox
            background = {
                "store": self._watch_store(),
                "away": self._watch_absent(),
                "kinds": self._memory.kind_faults.watch(latest, inbox),
                "pods": self._pods.watch(latest),
                "restores": self._memory.restores.watch(latest, clock, inbox),
                "polls": self._polls.run(),
                "start": log_progress(self._parts.vitals, clock),
                "stop of the loop": once_set(stop, partial(self._inbox.send, Stopped())),
            }
            async with beside(background):
                while not stop.is_set():
                    events = await inbox.batch(pause_s, clock)
                    if stop.is_set():
                        break
                    state, pause_s = await self.reconcile(state, events)
                    self._published.publish(state)
                    self._parts.vitals.is_reloading = LoopCommand(LoopOrder.RELOAD) in inbox
                # Let writes under way end; the rest is looked into at the next start, as after a crash.
                if busy := sorted(self._memory.workers.busy):
                    self._parts.beat(RoundPhase.IDLE, text=f"ending, waiting for writes to {', '.join(busy)}")
                    await self._memory.workers.close(timing.LEAVE_S)
                    self._with_applied(state)
                self._recorder.keep_versions()
        finally:
            await self.close()

    def initial_state(self) -> State:
        """Return the state of a start: as the journal has it."""
        state = replace(self._published.value, known=remembered(self._parts.journal))
        self._published.publish(state)
        return state

    async def close(self) -> None:
        """End what goes on beside the rounds."""
        await self._memory.workers.close()
        await self._late.close()
        await self._memory.away.close()
        await self._stages.close()
        await self._keeper.close()

    # Rounds

    async def reconcile(self, state: State, events: Iterable[LoopEvent]) -> tuple[State, float]:
        """Return the state after a batch of events, and the seconds until it is called again, events or not.

        Nothing else changes the state: steps return another one, and tasks beside the loop see what was published.
        """
        parts, clock = self._parts, self._parts.access.clock
        state = self._established.record(state, parts.journal)
        if work_of(events).is_empty:
            events = tuple(self._due(state))
        if work_of(events).is_empty and not (self._memory.workers.is_end_due or self._memory.workers.is_part_due):
            return self._rest(state)
        state = self._with_applied(state)
        batch = (*events, *self._inbox.take())
        work = work_of(batch)
        if work.is_empty:
            return state, 0.0
        self._garbage.is_due = True
        state, work = await self._with_store(state, work)
        self._published.publish(state)
        fleet = state.fleet
        parts.round_log.batch_taken(batch, fleet.revision if fleet is not None else "", clock)
        if fleet is None:
            await clock.sleep(timing.TICK_S)
            self._inbox.send(StoreChanged(), LoopCommand(LoopOrder.LOOK))
            return state, 0.0
        if parts.is_other_part(fleet):
            self._stop.set()  # Another process may lead now: whoever runs this loop decides that first.
            return state, 0.0
        started_s, now, before = clock.monotonic_s(), clock.now(), state
        for name in sorted(work.restored):
            self._handler.went_back(name, now)
        for name in work.restored | work.answering:
            self._keeper.drop(name)
        state, rescheduled, arriving = await self._reader.read(state, fleet, work, now)
        work = self._with_observed(before, state, work)
        state, work = await self._stages.stage(state, self._reader, work, now)
        self._published.publish(state)
        scope = None if work.everything else self._scope(state, fleet, work, rescheduled, arriving)
        # A commit that changes nothing has a round too, which asks no cluster: what is shown names its revision.
        is_shown = state.picture is not None and state.picture.schedule.fleet.revision == fleet.revision
        if scope is not None and scope.is_empty and is_shown:
            return (self._recorder.report_rollouts(state) if state.rollouts != before.rollouts else state), 0.0
        planned, snapshot, health = await self._planned(state, fleet, scope, now)
        parts.round_log.planned(planned, snapshot)
        state = replace(state, schemas=snapshot.schemas)
        if self._stop.is_set():
            return state, 0.0
        self._writer.begin(planned, snapshot, state.reachable)
        await self._written(state)
        applied = self._memory.workers.collect(of_this_round=True)
        results = tuple(chain.from_iterable(each.results for each in applied))
        state = self._recorder.record(state, planned, snapshot, results, health)
        self._published.publish(state)
        for each in applied:
            self._handler.caught_up(each)
        self._handler.round_ends()
        self._memory.workers.round_ends()
        self._memory.restores.forget(replaced := state.replaced)
        members = {name: member for name, member in state.members.items() if name not in replaced}
        self._keeper.follow(planned.schedule, state.known.ledger, members, anew=scope is None)
        parts.vitals.durations_s["round"] = clock.monotonic_s() - started_s
        return state, 0.0

    def _rest(self, state: State) -> tuple[State, float]:
        """Return the state after what is done while nothing is due, and the seconds until something is."""
        clock = self._parts.access.clock
        busy = ", ".join(sorted(self._memory.workers.busy))
        self._parts.beat(RoundPhase.IDLE, text=f"waiting for writes to {busy}" if busy else "")
        self._garbage.idle(clock.monotonic_s())
        state, news_s = self._recorder.report_news(state)
        if self._stages.is_due(state):
            self._inbox.send(TimerDue(LoopTimer.STAGES))
        most_s = self._memory.workers.pause_s if busy else timing.CHECK_S
        return state, min(self._due_s(state) - clock.monotonic_s(), most_s, news_s)

    def _due(self, state: State) -> Iterator[LoopEvent]:
        now_s = self._parts.access.clock.monotonic_s()
        yield from self._reader.due(state, now_s)
        if now_s >= self._stages.next_s:
            yield TimerDue(LoopTimer.STAGES)
        yield ObjectsChanged(frozenset(self._memory.unfinished.looks.due()))
        for cluster, identity in self._memory.unfinished.retries.due():
            yield ClusterChanged(cluster, frozenset({identity}))

    def _due_s(self, state: State) -> float:
        unfinished = self._memory.unfinished
        return min(self._reader.next_s(state), unfinished.retries.next_s, unfinished.looks.next_s, self._stages.next_s)

    def _with_applied(self, state: State) -> State:
        begun_s = self._parts.access.clock.monotonic_s()
        applied = self._memory.workers.collect(parts=self._stop.is_set() or self._memory.workers.is_part_due)
        if applied:
            state = self._recorder.record_ended(state, applied, self._parts.access.clock.now())
            self._published.publish(state)
            for each in applied:
                self._handler.caught_up(each)
            self._memory.workers.recorded(begun_s)
        return state

    async def _with_store(self, state: State, work: PendingWork) -> tuple[State, PendingWork]:
        """Return the state as store and kubeconfig say now, as far as they are due, and the work with what changed."""
        before, fleet = state.fleet, await self._follower.read() if work.store else None
        if fleet is not None:
            state = replace(state, fleet=fleet, schedule=None)
            if before is None:
                # The person who starts the service must see the faults of its options.
                state, _ = exchanged(state, self._parts.configs_of(fleet))
            elif needs_other_members(before, fleet):
                state, work = self._reconnected(state, fleet, work)
            if needs_other_members(before, fleet):
                own = self._parts.access.clusters.own(fleet)
                self._memory.away.queue.keep(own)
                self._memory.kind_faults.keep(own)
            is_everything = work.everything or concerns_everything(before, fleet)
            work = replace(work, everything=is_everything)
            if before is not None and not is_everything:
                # The clusters that are new, or otherwise than before, are met and looked at.
                others = set(changed_keys(before.clusters, fleet.clusters)) & fleet.clusters.keys()
                work = replace(work, clusters=work.clusters | others)
        if work.reconnect and state.fleet is not None:
            self._memory.unfinished.forgive(state.fleet.clusters)
            state, work = self._reconnected(state, state.fleet, work)
        return state, work

    def _reconnected(self, state: State, fleet: Fleet, work: PendingWork) -> tuple[State, PendingWork]:
        state, others = reconnected(self._parts, state, fleet)
        return state, replace(work, clusters=work.clusters | others)

    def _with_observed(self, before: State, state: State, work: PendingWork) -> PendingWork:
        """Return the work with what this reading asks for in this round; what it asks for in the next one is sent."""
        observed, known = state.observations.clusters, before.observations.clusters
        # What could not be observed since it was identified is identified again.
        silent = [cluster.name for cluster in observed.values() if not cluster.reachable]
        fell_silent = [name for name in silent if isinstance(state.reachable.get(name), MemberCluster)]
        self._inbox.send(*map(ClusterChanged, fell_silent))
        # With other unlistable kinds, the reported problems of a cluster change.
        otherwise = {name for name in observed.keys() & known.keys() if causes(observed[name]) != causes(known[name])}
        work = replace(work, clusters=work.clusters | otherwise)
        if work.clusters and not state.known.has_history and not state.is_anybody_away:
            # Deletions wait for one round over everything, in which nobody is away: this can be it.
            work = replace(work, everything=True)
        return work

    def _scope(
        self, state: State, fleet: Fleet, work: PendingWork, rescheduled: frozenset[Identity], arriving: Arriving
    ) -> ReadScope:
        assert state.schedule is not None, "a reading decides"
        return scope_of(
            state.schedule,
            state.known.ledger,
            identities=rescheduled | work.identities | self._memory.unfinished.confirming,
            copies=joined(work.copies, arriving),
            clusters=work.clusters & self._parts.access.clusters.own(fleet),
            unfinished=self._memory.unfinished.held,
        )

    async def _planned(
        self, state: State, fleet: Fleet, scope: ReadScope | None, now: str
    ) -> tuple[Round, FleetSnapshot, Looked]:
        """Read and plan the scope; None: everything. Return the plan as far as it may be made, and its inputs."""
        parts, schedule = self._parts, state.schedule
        assert schedule is not None, "a reading decides"
        if scope is not None:
            copies = len(scope.identities) * len(fleet.clusters) + sum(map(len, scope.copies.values()))
        else:
            wanted = sum(len(binding.targets) for binding in schedule.bindings.values())
            copies = wanted + sum(map(len, state.known.ledger.values()))
        progress = parts.counted(RoundPhase.READ, copies, len(state.reachable))
        read = partial(self._late.read, connected=len(state.members)) if scope is not None else self._late.read_all
        extent = ReadExtent(
            scope=scope,
            schemas=state.schemas,
            at_fault=self._memory.kind_faults.at_fault(),
            elsewhere=parts.access.clusters.elsewhere(fleet),
            undecided=self._reader.undecided_in(state),
            read=read,
            keys=parts.access.keys,
        )
        self._handler.round_begins()
        snapshot = await with_objects(
            state.snapshot(fleet, parts.access.interpreters, now), schedule, state.reachable, extent, progress
        )
        listed = (snapshot.members[name] for name in (scope.clusters if scope is not None else ()))
        if scope is not None and any(isinstance(one, Read) and not one.objects.keys() <= scope.only for one in listed):
            # Of what is there beside it, only a round over everything sees where else they are.
            self._inbox.send(LoopCommand(LoopOrder.LOOK))
        snapshot = self._memory.workers.without(snapshot)
        parts.beat(RoundPhase.PLAN, copies)
        planned = await in_thread(plan_round, snapshot, schedule)
        health = await in_thread(health_read, planned, snapshot)
        asking = partial(parts.beat, RoundPhase.DRY_RUN)
        busy = self._memory.workers.busy
        free = {name: member for name, member in answered_by(state.reachable).items() if name not in busy}
        is_asked_first = self._memory.unfinished.is_asked_first
        planned = await dry_run(planned, free, snapshot, is_asked_first, progress=asking, within_s=timing.PROMPT_S)
        planned = await self._contents.add(planned, free, fleet.settings, timing.PROMPT_S)
        return with_holders(self._writer.restrained(planned, snapshot), state.held_elsewhere), snapshot, health

    async def _written(self, state: State) -> None:
        """Until everything is written; after the grace only for as long as nothing else is to be done, and not long."""
        clock = self._parts.access.clock
        begun_s = clock.monotonic_s()
        grace_s, patience_s = begun_s + timing.WRITE_GRACE_S, begun_s + timing.PATIENCE_S
        while self._memory.workers.is_of_this_round_open:
            now_s = clock.monotonic_s()
            is_wanted = self._inbox.has_work or self._stop.is_set() or now_s >= min(self._due_s(state), patience_s)
            if is_wanted and now_s >= grace_s:
                return
            until_s = grace_s if is_wanted else min(self._due_s(state), patience_s)
            await self._inbox.arrival(max(until_s, now_s) - now_s, clock)
            self._parts.beat(RoundPhase.WRITE)

    # What is sent between rounds

    async def _watch_store(self) -> None:
        while True:
            await self._follower.changed()
            self._inbox.send(StoreChanged())
            await self._parts.access.clock.sleep(timing.MOMENT_S)

    async def _watch_absent(self) -> None:
        clock = self._parts.access.clock
        while True:
            await clock.sleep(timing.TICK_S)
            state, keys = self._published.value, self._parts.access.keys
            self._inbox.changed(keys.renewed() if keys is not None and keys.closed else ())
            if state.is_anybody_away and self._parts.access_stamp() != state.access_stamp:
                self._inbox.send(LoopCommand(LoopOrder.RECONNECT))  # What a cluster refuses may have been renewed.
            back = await self._memory.away.reconnected(state.members, state.known.cluster_uids, state.reachable)
            self._inbox.send(*(ClusterChanged(name, ClusterScope.ANSWERS_AGAIN) for name in back))
