"""Keep observations, schedule and Rollouts up to date: who answers, what there is room for, where everything goes."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import partial
from math import inf

from msgspec.structs import replace

from reconciler.api.binding import Constraint
from reconciler.api.clusters import Observations, UnlistedCause
from reconciler.api.fleet import DriftMode, Fleet
from reconciler.api.ledger import Event, EventKind, Intent, JournalSnapshot, Ledger
from reconciler.api.problem import Problem
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.containment import fault_fields
from reconciler.controller import timing
from reconciler.controller.cluster_reads.clusters_needed import is_news, is_room_needed, scaled_by
from reconciler.controller.cluster_reads.members import answered_by
from reconciler.controller.cluster_reads.read_clusters import answering, observe_members, remembered
from reconciler.controller.cluster_reads.scope import Copies, copies_since, joined, left_since
from reconciler.controller.inbox import Inbox, LoopEvent, LoopTimer, ObjectsChanged, PendingWork, TimerDue
from reconciler.controller.loop_state import LoopParts, State
from reconciler.controller.retries.caches import RoundCaches
from reconciler.controller.rollouts.rollout_controller import RolloutController
from reconciler.controller.rollouts.rollout_inputs import RevisionsInForce, RolloutInputs, away_in
from reconciler.controller.round.recover import recover
from reconciler.controller.store_follower import StoreFollower
from reconciler.controller.tasks import in_thread
from reconciler.controller.timetable import Ticks
from reconciler.controller.vitals.logs import Transitions, log_events
from reconciler.controller.vitals.service_vitals import RoundPhase
from reconciler.errors import HeldByCopy
from reconciler.kube.client import MemberCluster
from reconciler.observations import in_force, moment_of, wait_s
from reconciler.placement import closed_by
from reconciler.planner import former_windows
from reconciler.policy import Closed, closed_clusters
from reconciler.render import arrivals, changed_identities
from reconciler.rollouts import Begun, changed_by_staging, rollout_events
from reconciler.scheduler import Schedule, ScheduleTables, schedule_fleet, undecided

Arriving = Mapping[str, Collection[Identity]]
"""By cluster objects that only come there, and are unchanged elsewhere."""


class Reader:
    """The first half of a round, and the times at which it is due by itself."""

    def __init__(self, parts: LoopParts, memory: RoundCaches) -> None:
        """Everything is due at once. What workers write is not looked into before its answers are in."""
        self._parts, self._memory = parts, memory
        self._tables = ScheduleTables()
        self._decided: Schedule | None = None
        self._decided_under: frozenset[Constraint] = frozenset()
        self.copies: Copies = {}
        """The clusters of each applied object, as of the last schedule."""
        self._transitions = Transitions()
        self._ledger: Ledger = {}
        self._ticks = Ticks(parts)
        self._next_resync_s = 0.0
        self._next_capacity_s = 0.0
        self._undecided: tuple[Schedule, Mapping[Identity, Problem]] | None = None
        self._recovered_s = 0.0

    @property
    def decided(self) -> Schedule:
        """The last schedule, as HEAD has it."""
        assert self._decided is not None, "a reading decides"
        return self._decided

    def next_s(self, state: State) -> float:
        """Return the time of its next work."""
        return min(self._next_resync_s, self._next_capacity_s, self._next_recovery_s(state), self._ticks.next_s)

    def due(self, state: State, now_s: float) -> Iterator[LoopEvent]:
        """Yield the timers that are due."""
        if now_s >= self._next_resync_s:
            if state.fleet is None or state.fleet.settings.drift_mode is not DriftMode.POLL:
                yield TimerDue(LoopTimer.RESYNC)
            else:
                # Each cluster has a turn of its own, and only what waits is due here.
                self._next_resync_s = now_s + state.fleet.settings.resync_s
                yield ObjectsChanged(self._memory.unfinished.held)
        if now_s >= self._next_capacity_s or self._ticks.is_due:
            yield TimerDue(LoopTimer.CAPACITY)
        if now_s >= self._next_recovery_s(state):
            yield TimerDue(LoopTimer.UNANSWERED)

    async def read(
        self, state: State, fleet: Fleet, work: PendingWork, now: str
    ) -> tuple[State, frozenset[Identity], Arriving]:
        """Return the state with a schedule, the rescheduled objects, and those that only come to a cluster."""
        changed, before = set[Identity](), self._decided
        recovered: Mapping[str, Collection[Identity]] = {}
        if work.everything or work.clusters:
            names = None if work.everything else work.clusters & self._parts.access.clusters.own(fleet)
            state = await self._meet(state, fleet, now, names)
            if names is None:
                self._next_resync_s = self._parts.access.clock.monotonic_s() + fleet.settings.resync_s
        if not work.everything:
            state, recovered, left = await self._recover(state, fleet)
            changed |= left
            is_void = work.store and state.schedule is None
            if LoopTimer.CAPACITY in work.timers or (is_void and is_room_needed(fleet, self._decided)):
                # A commit is divided by the present capacity, not by that before the last round.
                state = await self._observe(state, fleet, now)
        copied = {f"cluster {cluster}": why for cluster, why in state.held_elsewhere.items()}
        # An order may be newer than the cached journal.
        closed = copied | closed_by(in_force(self._parts.journal.suspensions(), now))
        state = replace(state, observations=replace(state.observations, closed=closed))
        if state.schedule is None or self._decided_under != frozenset(state.known.observations.constraints):
            self._parts.beat(RoundPhase.DECIDE, len(fleet.templates))
            state, decided_anew = await in_thread(self._schedule, state, fleet, now)
            changed |= decided_anew
        is_room_read = work.everything or work.clusters or LoopTimer.CAPACITY in work.timers
        if self._parts.access.clusters.is_whole and is_room_read:
            state, due = await self._ticks.run(state, now, partial(self._decide_under, fleet, now))
            changed |= due
            state = self._ticks.plan_next(state, now)
        if work.everything:
            return state, frozenset(), {}
        copies: dict[str, set[Identity]] = {}
        if before is not None and before is not self.decided:
            arriving = arrivals(before, self.decided, changed)
            for identity, clusters in arriving.items():
                for cluster in clusters:
                    copies.setdefault(cluster, set()).add(identity)
            changed -= arriving.keys()
        return state, frozenset(changed), joined(copies, recovered)

    def _next_recovery_s(self, state: State) -> float:
        """Return when unanswered writes are inspected; those of an unreachable cluster wait for it."""
        reachable = state.reachable
        is_due = any(isinstance(reachable.get(intent.cluster), MemberCluster) for intent in self._lost(state))
        return self._recovered_s + timing.LOOK_S if is_due else float("inf")

    def _lost(self, state: State) -> list[Intent]:
        return [intent for intent in state.known.unanswered if self._is_lost(intent)]

    def _is_lost(self, intent: Intent) -> bool:
        """Return whether nobody waits for the answer, and its object can be read."""
        is_at_fault = self._memory.kind_faults.is_at_fault(intent.cluster, intent.gvk)
        return not (is_at_fault or self._memory.workers.is_under_way(intent.cluster, intent.identity))

    async def _recover(
        self, state: State, fleet: Fleet
    ) -> tuple[State, Mapping[str, frozenset[Identity]], set[Identity]]:
        """Inspect unanswered writes: return them by cluster, and the consequences of vanished objects."""
        parts, before = self._parts, state.known.ledger
        if not self._lost(state):
            return state, {}, set()
        about = await recover(parts.journal, state.reachable, fleet, self._is_lost, self._report_fault)
        if about:
            state = replace(state, known=remembered(parts.journal))
        self._recovered_s = parts.access.clock.monotonic_s()
        left = left_since(before, state.known.ledger)
        if left:
            state = replace(state, schedule=None)
        return state, about, {*left, *scaled_by(left, before, self._parts.access.interpreters)}

    def _report_fault(self, intent: Intent, fault: Exception) -> None:
        text = "an unanswered request cannot be looked into for a fault of the program; it is tried again"
        subject = (intent.cluster, intent.identity)
        self._transitions.fault(subject, fault, text, **fault_fields(*subject))

    def _decide_under(self, fleet: Fleet, now: str, state: State, under: Observations) -> tuple[State, set[Identity]]:
        known = replace(state.known.observations, constraints=under.constraints, previous=under.previous)
        return self._schedule(replace(state, known=replace(state.known, observations=known)), fleet, now)

    async def _meet(self, state: State, fleet: Fleet, now: str, names: Collection[str] | None) -> State:
        """Identify, lock and observe clusters. `names`: these alone; None: all."""
        parts = self._parts
        parts.beat(RoundPhase.MEET)
        known = remembered(parts.journal)
        own = parts.access.clusters.own(fleet)
        reachable, uids = await answering(fleet, state.members, known.cluster_uids, own if names is None else names)
        held = state.held_elsewhere
        if not fleet.settings.observe_only:
            members = list(answered_by(reachable).values())
            left = {name: why for name, why in held.items() if names is not None and name not in names}
            held = left | await self._hold(members, fleet, known, now)
            known = remembered(parts.journal)  # The marks may have told it something.
        else:
            # Nothing is held, so what another journal recorded there is read with the first meeting.
            first = [member for name in uids.keys() - known.cluster_uids.keys()
                     if isinstance(member := reachable.get(name), MemberCluster)]  # fmt: skip
            unread = await parts.holder.read_back(first, fleet.settings.name)
            uids = {name: uid for name, uid in uids.items() if name not in unread}
            known = remembered(parts.journal)
        parts.journal.record_clusters(uids)
        known = replace(known, cluster_uids={**uids, **known.cluster_uids})
        if names is not None:
            left_alone = {name: member for name, member in state.reachable.items() if name in own}
            reachable = dict(sorted({**left_alone, **reachable}.items()))
        state = replace(state, known=known, reachable=reachable, held_elsewhere=held)
        if names is None:
            state, _, _ = await self._recover(state, fleet)
        return await self._observe(state, fleet, now, names)

    async def _hold(
        self, members: list[MemberCluster], fleet: Fleet, known: JournalSnapshot, now: str
    ) -> dict[str, str]:
        """Per cluster why it is not written to: a copy of this journal holds the fleet. The others are held.

        Also when nothing is to be written. Where writing is suspended, the first change after that writes the mark.
        """
        name, holder = fleet.settings.name, self._parts.holder
        copies = await holder.copies(members, name)
        scopes = {suspension.scope for suspension in in_force(known.suspensions, now)}
        free = [member for member in members if not {"fleet", f"cluster {member.name}"} & scopes]
        unheld = [member for member in free if member.name not in copies]
        # No other waits for one that hangs here: a worker holds its cluster before it writes, however long it takes.
        failed = await holder.hold(unheld, name, within_s=timing.PROMPT_S)
        copies |= {cluster: error.message for cluster, error in failed.items() if isinstance(error, HeldByCopy)}
        for cluster, why in copies.items():
            self._transitions.enter(cluster, why, logging.ERROR, "a copy of this journal holds the fleet",
                                    event="FleetHeld", cluster=cluster, error=why)  # fmt: skip
        return copies

    async def _observe(self, state: State, fleet: Fleet, now: str, names: Collection[str] | None = None) -> State:
        """Observe the clusters (`names`: these alone); the schedule is void if anything that matters is different."""
        self._parts.beat(RoundPhase.OBSERVE, len(fleet.templates))
        interpreters, members = self._parts.access.interpreters, state.reachable
        if names is not None:
            members = {name: member for name, member in members.items() if name in names}
        observed = await observe_members(fleet, members, state.known, interpreters, now, decided=self._decided)
        if names is not None:
            others = {name: cluster for name, cluster in state.observations.clusters.items() if name in fleet.clusters}
            observed = replace(observed, clusters=dict(sorted({**others, **observed.clusters}.items())))
        self._memory.kind_faults.observed(observed.clusters)
        schedule = None if is_news(observed, state.observations) else state.schedule
        state = replace(state, observations=observed, schedule=schedule)
        state = self._ticks.with_times(state) if self._parts.access.clusters.is_whole else state
        has_capacity = any(cluster.nodes is not None for cluster in observed.clusters.values())
        causes = {one.cause for cluster in observed.clusters.values() for one in cluster.unlisted}
        is_soon = has_capacity or causes - {UnlistedCause.RIGHT_MISSING}
        pause_s = timing.CAPACITY_S if is_soon else timing.RIGHTS_S if causes else float("inf")
        due_s = self._parts.access.clock.monotonic_s() + pause_s
        # A cluster that is observed by itself does not put off all the others.
        self._next_capacity_s = due_s if names is None else min(self._next_capacity_s, due_s)
        return state

    def _schedule(self, state: State, fleet: Fleet, now: str) -> tuple[State, set[Identity]]:
        """Schedule what depends on a difference; return the rescheduled objects."""
        known, ledger, before = state.known.observations, state.known.ledger, self._decided
        observations = replace(state.observations, previous=known.previous, constraints=known.constraints)
        self.copies, self._ledger = copies_since(self.copies, self._ledger, ledger), ledger
        schedule = schedule_fleet(
            fleet,
            observations,
            now,
            interpreters=self._parts.access.interpreters,
            copies=self.copies,
            tables=self._tables,
        )
        state = replace(state, observations=observations, schedule=schedule)
        self._decided, self._decided_under = schedule, frozenset(known.constraints)
        return state, changed_identities(before, schedule, self._tables.changed)

    def undecided_in(self, state: State) -> Mapping[Identity, Problem]:
        """Return what cannot be decided in this process, which applies to some clusters alone."""
        schedule, chosen = state.schedule, self._parts.access.clusters
        assert schedule is not None, "a reading decides"
        if chosen.is_whole:
            return {}
        if self._undecided is None or self._undecided[0] is not schedule:
            self._undecided = schedule, undecided(schedule, chosen.own(schedule.fleet), state.known.ledger)
        return self._undecided[1]


_LASTING = (EventKind.ROLLOUT_PAUSED, EventKind.APPROVAL_AWAITED, EventKind.PINNED)


class StagedRounds:
    """Stages the schedule of each round, and keeps the last result."""

    def __init__(self, parts: LoopParts, follower: StoreFollower, inbox: Inbox) -> None:
        self._parts = parts
        self._stager = RolloutController(
            RevisionsInForce(parts.source, follower.at),
            parts.access.clock,
            JournalSnapshot(),  # The journal is read each time.
            (parts.journal, parts.holder.enter),
            within_s=timing.GRACE_S,
            inbox=inbox,
            prometheus=parts.prometheus,
        )
        self._before: Schedule | None = None
        self._closed: Mapping[str, Closed] = {}
        self._opens_s = inf
        self._lasting: set[Begun] | None = None
        """Unfinished steps in history when the process began."""

    @property
    def next_s(self) -> float:
        """Return the time of the next change by time alone, by the monotonic clock."""
        return min(self._stager.next_s, self._opens_s)

    def is_due(self, state: State) -> bool:
        """Return whether something can change now: by the clock, or by a new observation."""
        if self._parts.access.clock.monotonic_s() >= self.next_s:
            return True
        return self._stager.is_news(state.reported)

    async def close(self) -> None:
        """Wait for no cluster any more."""
        await self._stager.close()

    async def stage(self, state: State, reader: Reader, work: PendingWork, now: str) -> tuple[State, PendingWork]:
        """Return the state with the staged schedule, and the work with what this adds to it.

        That are objects that it renders differently, and clusters in which a window opened or closed.

        Raises FleetHeld: another journal holds the fleet.
        """
        decided = reader.decided
        fleet = decided.fleet
        former = former_windows(state.known.losses.guards, fleet)
        closed = closed_clusters(fleet.settings.windows, fleet.clusters.values(), moment_of(now), former)
        turned = {name for name in {*closed, *self._closed} if closed.get(name) != self._closed.get(name)}
        self._closed = closed
        opens_in_s = wait_s((window.until for window in closed.values()), now)
        self._opens_s = self._parts.access.clock.monotonic_s() + opens_in_s + timing.SURELY_OVER_S
        look = RolloutInputs(
            reachable=state.reachable,
            journal=state.known,
            copies=reader.copies,
            away=away_in(state.reachable, state.held_elsewhere, state.observations.closed),
            closed={name: window.until for name, window in self._closed.items()},
            reported=state.reported,
        )
        schedule = await self._stager.stage(decided, look, now)
        journal, known = self._parts.journal, {each.rollout: each for each in state.rollouts}
        if self._lasting is None:
            self._lasting = {(EventKind(event.kind), event.subject) for event in journal.lasting(_LASTING)}
        number, events = journal.complete_rounds(), list[Event]()
        for each in self._stager.progress:
            about = (f"rollout {each.rollout}/", f"rollout {each.rollout} @ ")
            begun_before = [begun for begun in self._lasting if begun[1].startswith(about)]
            events += rollout_events(known.get(each.rollout), each, now, number=number, begun=begun_before)
        if events:
            journal.record_events(events)
            log_events(events, self._parts.commits.words)
        changed = changed_by_staging(self._before, schedule)
        self._before = schedule
        # A commit that changes a Rollout alone changes no object, and a round over none would not tell its problems.
        is_news = _problems(self._stager.progress) != _problems(state.rollouts)
        identities, clusters = work.identities.union(changed), work.clusters | (turned & fleet.clusters.keys())
        work = replace(work, everything=work.everything or is_news, identities=identities, clusters=clusters)
        return replace(state, schedule=schedule, rollouts=self._stager.progress), work


def _problems(rollouts: Iterable[RolloutProgress]) -> set[Problem]:
    return {problem for each in rollouts for problem in each.problems}
