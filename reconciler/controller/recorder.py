"""The last part of a round: record it, and remember what the next one must look at again."""

from __future__ import annotations

import logging
from collections.abc import Collection, Mapping, Sequence
from itertools import chain
from typing import Final

from msgspec.structs import replace

from reconciler.api.clusters import Member, Read
from reconciler.api.ledger import Ledger
from reconciler.api.plan import Cause
from reconciler.api.problem import with_problems
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Staging
from reconciler.controller import timing
from reconciler.controller.cluster_reads.clusters_needed import scaled_by
from reconciler.controller.cluster_reads.read_clusters import remembered
from reconciler.controller.cluster_reads.scope import left_since
from reconciler.controller.inbox import ClusterChanged, Inbox, LoopCommand, LoopOrder
from reconciler.controller.loop_state import LoopParts, State
from reconciler.controller.retries.caches import RoundCaches
from reconciler.controller.retries.conflicts import EVENTS_WITH_UNDONE, THE_OBJECT, Undone
from reconciler.controller.retries.workers import ApplyResult
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.round.failed_changes import (
    Looked,
    facts_of,
    failures_after,
    last_contacts,
    log_faults,
    merged,
    with_completeness,
    with_faults,
)
from reconciler.controller.round.record_round import record_picture, remember
from reconciler.controller.round.reported_conditions import ReportedConditions
from reconciler.controller.round.writes import write_events
from reconciler.controller.vitals.logs import SyncTransitions, log_events
from reconciler.controller.vitals.service_vitals import RoundPhase, snapshot_of
from reconciler.controller.writer import unmade
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.incremental import changed_keys
from reconciler.journal.events import EventFilter
from reconciler.observations import PATIENCE_S, age_s, in_force, is_waiting, stalled, timer_of, waiting_times
from reconciler.planner import Round
from reconciler.report.status.state_document import StateOfFleet
from reconciler.report.status.status_document import StatusTables
from reconciler.scheduler import Schedule
from reconciler.state import THE_SERVER, StateTables

log = logging.getLogger("reconciler")

_REMEMBERED: Final = 10_000
"""So many events of history are looked through for fights when the service starts."""
_NEWS_SHARE = 10
"""So many times as long as that took, the next time is put off."""


class Recorder:
    """Records what a round saw and did, and says what the state becomes by it."""

    def __init__(self, parts: LoopParts, memory: RoundCaches, inbox: Inbox) -> None:
        """Share what the rounds know. `inbox`: is sent what later rounds have to look at."""
        self._parts, self._memory = parts, memory
        self._inbox = inbox
        newest = parts.journal.newest_events(EventFilter(kinds=tuple(map(str, EVENTS_WITH_UNDONE))), _REMEMBERED)
        events = [event for _, event in reversed(newest)]
        self._memory.fights.remember(events, parts.access.clock.now(), parts.access.clock.monotonic_s())
        self._reported = ReportedConditions(parts.journal)
        self._members: Mapping[str, Member] = {}
        self._tables = StatusTables()
        self._states = StateTables()
        self._syncs = SyncTransitions()
        self._next_news_s = 0.0
        self._memory.contacts |= last_contacts(parts.journal.state())

    def record(
        self, state: State, planned: Round, snapshot: FleetSnapshot, results: tuple[ChangeResult, ...], health: Looked
    ) -> State:
        """Return the state after a round. `health`: of evaluated objects, as read.

        The order counts: the journal comes first, since all else is lost with the process; then what rounds remember,
        as the journal has it; then the retries, which rest on both; and last what is shown of all of it.
        """
        parts, before, now = self._parts, state.known, snapshot.now
        parts.beat(RoundPhase.RECORD)
        # Of a round over some objects, others may be placed again as well.
        placed, only = None, snapshot.only
        if only is not None and state.picture is not None:
            placed = only | changed_keys(state.picture.schedule.bindings, planned.schedule.bindings)
        remember(parts.journal, planned, snapshot, results, placed=placed, unrecorded=self._reported.news(results))
        self._inbox.send(*map(ClusterChanged, self._memory.kind_faults.record_reading(snapshot.members)))
        picture = merged(state.picture, planned, results, snapshot, self._memory.kind_faults.problems)
        known_timers = parts.journal.timers()
        timers = waiting_times(picture.plan.changes, known_timers, now, only)
        if timers != known_timers:
            parts.journal.record_timers(timers)
        known = remembered(parts.journal)
        # What a round calls the placement before it is the one recorded last, whether or not it decides again.
        observations = replace(state.observations, previous=known.observations.previous)
        state = replace(state, known=known, observations=observations, last_round_at=now)
        if known.has_history and not before.has_history and any(change.held for change in planned.plan.changes):
            # Deletions may go from now on. Only a round over everything sees where else such objects are.
            self._inbox.send(LoopCommand(LoopOrder.LOOK))
        self._memory.synced.mark_synced(planned, snapshot)
        self._memory.synced.mark_written(results)
        state = self._with_absent(state, snapshot)
        state = self._with_left(state, before.ledger)
        self._follow_retries(planned, snapshot, results, timers)
        for name, states in health.items():
            member = snapshot.members[name]
            assert isinstance(member, Read), "health was read there"
            self._memory.healths.read(member, states, None if only is None else only - member.unasked)
        if only is None:
            self.keep_versions()
        parts.vitals.rounds += 1
        self._members = {name: self._as_shown(member, only) for name, member in snapshot.members.items()}
        overdue = tuple(stalled(picture.plan.changes, timers, now))
        for problem in overdue:
            if state.picture is None or problem not in state.picture.plan.problems:
                extra = {"event": "MoveStalled", "cluster": problem.cluster, "why": problem.message}
                log.warning("a move makes no progress", extra=extra)
        unwatched = self._memory.kind_faults.unwatched_kinds.values()
        problems = with_problems(picture.plan.problems, overdue, self._memory.restores.problems(now), unwatched)
        picture = with_completeness(replace(picture, plan=replace(picture.plan, problems=problems)), self._members)
        # Those that were asked anything, or of which it is known why they could not be.
        heard = [name for name, member in snapshot.members.items()
                 if only is None or not isinstance(member, Read) or not only <= member.unasked]  # fmt: skip
        return self._store_status(state, picture, results, now, heard, only)

    def _follow_retries(
        self, planned: Round, snapshot: FleetSnapshot, results: tuple[ChangeResult, ...], timers: Mapping[str, str]
    ) -> None:
        now_s, changes = self._parts.access.clock.monotonic_s(), planned.plan.changes
        awaited = {change.copy for change in changes if self._memory.workers.is_awaited(*change.copy)}
        left = unmade(planned, results, awaited)
        pending = awaited | left | {result.change.copy for result in results if result.error}
        unfinished, only = self._memory.unfinished, snapshot.only
        retried = (identity for _, identity in unfinished.retries.keys)
        concerned = only if only is not None else {*planned.schedule.bindings, *unfinished.held, *retried}
        unfinished.follow(concerned, changes, pending, snapshot.is_asked)
        for copy in awaited:
            # No other try is due before its results are in, and the pauses go on from there.
            self._memory.unfinished.retries.take(copy)
        for change in filter(is_waiting, changes):
            left_s = PATIENCE_S - age_s(timers[timer_of(change.identity, change.cluster)], snapshot.now)
            if left_s > 0:
                self._memory.unfinished.looks.add_after(change.identity, left_s + 1)
        for result in results:
            self._after(result, now_s)
        for copy in left:
            if not unfinished.retries.is_waiting(copy):
                self._leave_alone(*copy, now_s)

    def keep_versions(self) -> None:
        """Record how far clusters have come, for the next process: one may be restored while none runs."""
        self._parts.journal.record_versions(self._memory.restores.newest())

    def _as_shown(self, member: Member, only: frozenset[Identity] | None) -> Member:
        if not isinstance(member, Read):
            return member
        before = self._members.get(member.name)
        if not isinstance(before, Read) or only is None:
            return Read(name=member.name, under_way=member.under_way, unread=member.unread)
        evaluated = only - member.unasked
        unread = {identity: why for identity, why in before.unread.items() if identity not in evaluated}
        under_way = (before.under_way - evaluated) | member.under_way
        return Read(name=member.name, under_way=under_way, unread={**unread, **member.unread})

    def record_ended(self, state: State, ended: Sequence[ApplyResult], now: str) -> State:
        """The state after writes that took longer than their round."""
        parts, before = self._parts, state.known
        results = tuple(chain.from_iterable(each.results for each in ended))
        with parts.journal.transaction():
            for each in ended:
                news = self._reported.news(each.results)
                parts.journal.record_events(write_events(parts.journal, each.revision, each.now, news))
        state = self._with_left(replace(state, known=remembered(parts.journal)), before.ledger)
        self._memory.synced.mark_written(results)
        now_s = parts.access.clock.monotonic_s()
        for result in results:
            self._after(result, now_s)
        for each in ended:
            member = self._members.get(each.cluster)
            if isinstance(member, Read):
                under_way = member.under_way - each.identities
                self._members = {**self._members, member.name: replace(member, under_way=under_way)}
        if state.picture is None:
            return state
        clusters = [each.cluster for each in ended]
        looked = frozenset(chain.from_iterable(each.identities for each in ended))
        written, plan = {result.change.copy for result in results if not result.error}, state.picture.plan
        left = tuple(change for change in plan.changes if change.held or change.copy not in written)
        picture = replace(state.picture, plan=replace(plan, changes=left))
        return self._store_status(state, picture, results, now, clusters, looked)

    def report_news(self, state: State) -> tuple[State, float]:
        """Return the state after reporting changes from events, and the seconds until the next report."""
        clock = self._parts.access.clock
        begun_s = clock.monotonic_s()
        now, due_at = clock.now(), self._reported.due_at()
        fights = state.reported.facts.fights if state.reported is not None else {}
        # When a field is undone during its pause, or the pause is over, no round may have anything to look at.
        is_turned = fights.keys() != self._memory.fights.current(begun_s, now).keys()
        if state.picture is None or not (self._memory.healths.has_news or is_turned or (due_at and due_at <= now)):
            return state, timing.TICK_S if due_at or fights else float("inf")
        if begun_s < self._next_news_s:
            return state, self._next_news_s - begun_s
        state = self.report_rollouts(state)
        self._next_news_s = max(self._next_news_s, clock.monotonic_s() + timing.TICK_S)
        return state, float("inf")

    def report_rollouts(self, state: State) -> State:
        """Return the state after reporting Rollouts, when no round is to follow."""
        if state.picture is None:
            return state
        return self._store_status(state, state.picture, (), self._parts.access.clock.now(), (), frozenset())

    def _with_left(self, state: State, before: Ledger) -> State:
        left = left_since(before, state.known.ledger)
        if not left:
            return state
        # Where an autoscaler is gone, what the store says of its target is in force again.
        self._inbox.changed({*left, *scaled_by(left, before, self._parts.access.interpreters)})
        # What followed it waits until it has left.
        self._inbox.changed(self._memory.unfinished.waiting)
        # What followed an owner's old copy stays for as long as that does, which a new schedule finds out.
        return replace(state, schedule=None)

    def _store_status(
        self,
        state: State,
        picture: Round,
        results: tuple[ChangeResult, ...],
        now: str,
        heard: Collection[str],
        only: frozenset[Identity] | None,
    ) -> State:
        """`heard`: the clusters that were asked and whose state is known. `only`: the evaluated objects."""
        parts, begun_s = self._parts, self._parts.access.clock.monotonic_s()
        fights = self._memory.fights.current(begun_s, now)
        before = state.reported.facts.failures if state.reported is not None else {}
        failures = failures_after(before, picture, results, fights)
        picture = with_faults(picture, before, failures)
        self._memory.contacts.update({name: now for name in heard if isinstance(self._members.get(name), Read)})
        facts = replace(
            facts_of(picture, self._members),
            failures=failures,
            health=self._memory.healths.snapshot(),
            fights=fights,
            journal=state.known,
            held_by=self._reported.held_by,
            left_with=_left_with(state, picture.schedule),
            last_contact=dict(self._memory.contacts),
            elsewhere=parts.access.clusters.elsewhere(picture.schedule.fleet),
            unlisted=self._memory.kind_faults.unlisted_by_cluster,
        )
        fleet_state = self._states.update(facts, only)
        status = StateOfFleet(
            round=picture,
            state=fleet_state,
            time=now,
            number=parts.journal.complete_rounds(),
            source=parts.source.name,
            source_error=parts.vitals.source_error,
            rollouts=state.rollouts,
        )
        document = record_picture(parts.journal, status, self._tables)
        log_faults(parts.vitals.snapshot.problems, picture.plan.problems)
        ongoing = self._memory.fights.ongoing(parts.access.clock.monotonic_s())
        events = self._reported.record_differences(fleet_state, self._states.turns, now, ongoing)
        if state.reported is None:
            log_events(self._reported.continuing(events, fights), parts.commits.words, goes_on=True)
        log_events(events, parts.commits.words)
        self._syncs.log_changes(fleet_state, now)
        self._publish(status, state, document["since"], heard)
        ends_s = parts.access.clock.monotonic_s()
        self._next_news_s = ends_s + (ends_s - begun_s) * _NEWS_SHARE
        return replace(state, picture=picture, reported=fleet_state)

    def _publish(self, picture: StateOfFleet, state: State, since: str, heard: Collection[str]) -> None:
        """Show it to whoever looks. How long the revision took to be in step counts once."""
        vitals, steps = self._parts.vitals, self._reported.steps
        snapshot = replace(
            snapshot_of(picture),
            observations=state.observations,
            since=since,
            servers=state.members.servers(),
            revision_active_since=steps.active_since,
            is_in_step_reported=steps.is_reported,
            last_round_at=state.last_round_at,
            suspended=tuple(suspension.scope for suspension in in_force(state.known.suspensions, picture.time)),
        )
        vitals.status.publish(snapshot)
        self._memory.doubted.difference_update(heard)
        if steps.fresh_s is not None:
            vitals.in_step_s.observe((), steps.fresh_s)

    def _with_absent(self, state: State, snapshot: FleetSnapshot) -> State:
        missing: dict[str, str] = {}
        for name, member in snapshot.members.items():
            if isinstance(member, Read):
                self._memory.away.queue.forget(name)
            elif name in state.members:
                self._memory.away.was_not_read(name)
                missing[name] = member.why
        # Until it answers, no other cluster waits for it.
        return replace(state, reachable={**state.reachable, **missing}) if missing else state

    def _after(self, result: ChangeResult, now_s: float) -> None:
        change = result.change
        if result.error:
            self._memory.unfinished.retry(change, is_paced=result.is_paced, is_sent=result.is_sent)
        elif change.cause is Cause.DRIFT:
            self._parts.vitals.drifts[change.cluster] += 1
        # The fields that others have undone: the cluster altered them, or they are healed.
        undone: Undone = {}
        if result.altered:
            undone = {field.path: (THE_SERVER,) for field in result.altered}
        elif not result.error and change.cause is Cause.DRIFT:
            undone = {field.path: (field.owner.manager,) if field.owner else () for field in change.fields}
            undone = undone or {THE_OBJECT: ()}
        if not result.error:
            self._memory.unfinished.written(*change.copy)
            written = [field.path for field in change.fields]
            known = self._memory.fights.end_altered(change.cluster, change.identity, written, now_s)
            undone = {path: who for path, who in undone.items() if path not in known}
        if undone and self._memory.fights.undone(change.cluster, change.identity, undone, now_s):
            self._parts.vitals.fights[change.cluster] += 1
        # What failed has a pause of its own: a fight about a field is no reason to leave an object missing for longer.
        if not result.error or result.altered:
            self._leave_alone(change.cluster, change.identity, now_s)

    def _leave_alone(self, cluster: str, identity: Identity, now_s: float) -> None:
        pause_s = self._memory.fights.pause_left_s(cluster, identity, now_s)
        if pause_s > 0:
            self._memory.unfinished.requeue_change(cluster, identity, pause_s)


def _left_with(state: State, schedule: Schedule) -> Mapping[Identity, str]:
    """Return by object that stays until its Rollout is through, or has just become due, the release that lacks it."""
    staging, before = schedule.staging or Staging(), state.reported.facts.left_with if state.reported else {}
    present = set(chain.from_iterable(state.known.ledger.values())) if before else set[Identity]()
    known = {one: release for one, release in before.items() if one in present}
    return {one: staging.release_of(one) for one in staging.lingering} | known
