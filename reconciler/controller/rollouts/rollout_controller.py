"""The rollout controller of one fleet: evaluate gates, record beginnings, and stage the schedule.

A revision is written into the ConfigMap of a cluster, then into the journal, and then its first body is written: a
crash between two of these costs nothing. Source: ADR 18.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import inf
from operator import is_not

from msgspec.structs import replace

from reconciler.api.ledger import JournalSnapshot
from reconciler.api.rollout_progress import Begin, GateStatus, Record, RolloutProgress, Staging
from reconciler.api.rollouts import MetricCheck
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import Reachable
from reconciler.controller.inbox import Inbox
from reconciler.controller.rollouts.requests import Begun, Entering, Prometheus, no_prometheus
from reconciler.controller.rollouts.rollout_inputs import (
    Followed,
    LastMet,
    RevisionsInForce,
    RolloutInputs,
    Writing,
    followed_in,
    probes_of,
    with_conditions,
)
from reconciler.kube.client import MemberCluster
from reconciler.observations import wait_s
from reconciler.rollouts import (
    Records,
    SelectedTables,
    approved_since,
    begun_with,
    in_force,
    kept_problem,
    revisions_of,
    rollout_documents,
    staged,
    stand,
    with_ends,
    yielded,
)
from reconciler.scheduler import Schedule
from reconciler.state import FleetState

GateStatuses = dict[str, dict[str, GateStatus]]
"""By Rollout and cluster."""

_Standing = tuple[Schedule, Staging | None, dict[str, RolloutProgress]]


class RolloutController:
    """Stages one schedule after the other. Nothing is recorded where there is nobody to hold the fleet."""

    def __init__(
        self,
        revisions: RevisionsInForce,
        clock: Clock,
        known: JournalSnapshot,
        writing: Writing | None,
        *,
        within_s: float = timing.PROMPT_S,
        inbox: Inbox | None = None,
        prometheus: Prometheus | None = None,
    ) -> None:
        """`known`: as the journal has it. `writing`: where to record; None: nowhere.

        `within_s`: the wait for a cluster; `inbox`: is sent a later answer; None: nobody waits for one. `prometheus`:
        is asked for metrics of gates; None: there is none.
        """
        self._revisions = revisions
        self._prometheus = prometheus
        self._clock = clock
        self._journal = writing[0] if writing is not None else None
        self._records, self._documents = known.rollouts, known.rollout_documents
        self._older: dict[str, str] = {}
        """By Rollout the revision of its document, where that is not HEAD's."""
        self._current: tuple[Schedule, frozenset[str], Schedule] | None = None
        """The last schedule, and the Rollouts whose document is HEAD's, before the one with the documents in force."""
        self._entering = Entering(writing[1], clock, within_s, inbox or Inbox()) if writing is not None else None
        self._tables = SelectedTables()
        self._selected: tuple[object, ...] = ()
        self._followed: tuple[Followed, ...] = ()
        self._statuses: GateStatuses = {}
        self._last_met: LastMet = {}
        self._asks_conditions = False
        self._staged: tuple[tuple[object, ...], Schedule] | None = None
        """The last staged schedule, after what it rests on."""
        self._next_s = inf
        self.progress: tuple[RolloutProgress, ...] = ()

    @property
    def next_s(self) -> float:
        """Return the time of the next change by time alone, by the monotonic clock."""
        return min(self._next_s, self._entering.queue.next_s if self._entering is not None else inf)

    def is_news(self, state: FleetState | None) -> bool:
        """Return whether the clusters' probes differ from the last evaluation."""
        has_ended = self._entering is not None and self._entering.has_ended
        return bool(self.progress) and (has_ended or self._see(state) != self._statuses)

    async def stage(
        self, schedule: Schedule, look: RolloutInputs, now: str, only: Collection[str] | None = None
    ) -> Schedule:
        """The schedule as the revisions in force leave it. What begins is recorded, here and in the clusters.

        `now`: RFC 3339. `only`: these clusters alone may change, for nobody looked at the others; None: all.

        Raises FleetHeld: another journal holds the fleet.
        """
        if self._journal is not None:
            # A cluster's record, read when it was locked, may be in the journal by now.
            self._records, self._documents = self._journal.rollout_records(), self._journal.rollout_documents()
        schedule, staging, progresses = await self._stand(schedule, look, now)
        fleet = schedule.fleet
        self._documents = {rollout.name: self._older.get(rollout.name, fleet.revision) for rollout in fleet.rollouts}
        if self._journal is not None and not fleet.settings.observe_only:
            self._journal.record_rollout_documents(self._documents)
        if staging is None:
            self._forget_all_but(())
            self._selected, self._followed, self._statuses = (), (), {}
            self.progress, self._next_s = (), inf
            return schedule
        records = await self._record(schedule, progresses, look, now, only)
        progress = {name: _with_recorded(each, records[name]) for name, each in progresses.items()}
        if self._entering is not None:
            self._entering.drop_ended()
        self.progress = tuple(progress.values())
        again_in_s = wait_s((each.look_again for each in self.progress), now) + timing.SURELY_OVER_S
        if self._asks_conditions:
            again_in_s = min(again_in_s, timing.CHECK_S)
        self._next_s = self._clock.monotonic_s() + again_in_s
        return self._staged_by(schedule, replace(staging, in_force=in_force(records)), progress, look)

    async def close(self) -> None:
        """Wait for no cluster any more."""
        if self._entering is not None:
            await self._entering.close()

    async def as_recorded(self, schedule: Schedule, look: RolloutInputs, now: str) -> Schedule:
        """The schedule as the revisions that are recorded leave it; nothing begins, and no time of success ends."""
        schedule, staging, progress = await self._stand(schedule, look, now)
        if staging is None:
            return schedule
        recorded = in_force({name: self._records.get(name, {}) for name in progress})
        return self._staged_by(schedule, replace(staging, in_force=recorded), progress, look)

    async def _stand(self, schedule: Schedule, look: RolloutInputs, now: str) -> _Standing:
        """Return the schedule with the documents in force (HEAD's, or of a running release), and their progress."""
        over: frozenset[str] = frozenset()
        while True:
            guards = look.journal.losses.guards
            since = approved_since(guards.approved if guards is not None else {}, schedule.fleet, now)
            current = await self._with_documents(schedule, over, since)
            if not current.fleet.rollouts:
                return current, None, {}
            staging, progress = await self._stand_by(current, look, now)
            yielding = {rollout.name for rollout in current.fleet.rollouts if rollout.is_yielding}
            are_others_done = all(each.is_done for name, each in progress.items() if name not in yielding)
            done = {name for name in self._older if (are_others_done if name in yielding else progress[name].is_done)}
            if not done:
                for rollout in current.fleet.rollouts:
                    if older := self._older.get(name := rollout.name):
                        problem = kept_problem(rollout, schedule.fleet, older)
                        progress[name] = replace(progress[name], problems=(*progress[name].problems, problem))
                others = [each for name, each in sorted(progress.items()) if name not in yielding]
                for name in yielding.difference(*staging.rollouts.values()):
                    # Clusters without its record tell that it is new, also without a journal.
                    progress[name] = yielded(progress[name], others)
                return current, staging, progress
            over |= done

    async def _with_documents(self, schedule: Schedule, over: frozenset[str], since: Mapping[str, str]) -> Schedule:
        """Return the schedule with the documents in force, whose approvals end. `since`: when these were written."""
        head = schedule.fleet
        if self._current is not None and self._current[0] is schedule and self._current[1] >= over:
            return self._current[2]
        older = {name: at for name, at in self._documents.items() if at != head.revision and name not in over}
        fleets = {revision: await self._revisions.fleet(revision) for revision in sorted(set(older.values()))}
        written_in = {name: fleet for name, at in older.items() if (fleet := fleets[at]) is not None}
        for name, fleet in sorted(written_in.items()):
            # One that this revision lacks is held as the change of one that it has.
            lacking = {one.name for one in head.rollouts} - {one.name for one in fleet.rollouts} - over - older.keys()
            older |= dict.fromkeys(lacking, older[name])
            written_in |= dict.fromkeys(lacking, fleet)
        documents = rollout_documents(head, written_in)
        own = {rollout.name: rollout for rollout in head.rollouts}
        self._older = {name: older[name] for name, rollout in documents.items() if rollout is not own.get(name)}
        current = schedule
        if self._older or since:
            rollouts = tuple(with_ends(documents[name], since) for name in sorted(documents))
            current = replace(schedule, fleet=replace(head, rollouts=rollouts))
        self._current = schedule, over, current
        return current

    async def _stand_by(
        self, schedule: Schedule, look: RolloutInputs, now: str
    ) -> tuple[Staging, dict[str, RolloutProgress]]:
        fleet = schedule.fleet
        self._forget_all_but({rollout.name for rollout in fleet.rollouts})
        selection = self._follow(schedule)
        late = self._entering.not_ready() if self._entering is not None else {}
        former = look.journal.former or fleet.revision
        begun_now = begun_with(schedule, selection, self._records, look.copies, former, now)
        for name, records in begun_now.items():
            begun = {cluster: {name: record} for cluster, record in records.items()}
            if self._entering is not None and not schedule.fleet.settings.observe_only:
                # Where it cannot be written now, the journal alone knows it until something begins there.
                await self._enter(schedule, look.reachable, begun)
            self._take(name, records)
        known = self._records
        recorded = _recorded(schedule, known, now) | set(self._documents.values())
        pins = {pin for rollout in fleet.rollouts for pin in rollout.pins.values()}
        facts = await self._revisions.of(fleet, recorded, pins)
        sights = await self._probe(look, fleet.settings.prometheus, now)
        away = {**late, **look.away}
        facts = replace(facts, sights=sights, away=away, closed=look.closed, applied=look.copies)
        return stand(schedule, selection, known, facts, now)

    def _follow(self, schedule: Schedule) -> Staging:
        """Return the templates of Rollouts, computed once: each event needs them."""
        fleet, selection = schedule.fleet, self._tables.update(schedule)
        inputs = (selection, fleet.rollouts, fleet.clusters)
        if not self._selected or self._selected[0] is not selection or self._selected[1:] != inputs[1:]:
            self._followed = followed_in(fleet, selection)
        self._selected = inputs
        return selection

    def _see(self, state: FleetState | None) -> GateStatuses:
        return {
            each.name: probes_of(each, self._records.get(each.name, {}), state, self._last_met)
            for each in self._followed
        }

    async def _probe(self, look: RolloutInputs, prometheus: str, now: str) -> GateStatuses:
        """Return the health probes of Rollouts' copies, with conditions and metrics of gates."""

        async def metrics(checks: tuple[MetricCheck, ...], cluster: str, begun_at: str) -> GateStatus | None:
            known = self._prometheus
            if known is None or known.name != prometheus:
                return no_prometheus(prometheus)
            return await known.verdict(checks, cluster, begun_at, now)

        self._statuses = self._see(look.reported)
        statuses: GateStatuses = dict(self._statuses)
        self._asks_conditions = False
        for each in self._followed:
            known, plain = self._records.get(each.name, {}), self._statuses[each.name]
            on_their_way = {name for name, record in known.items() if record.revision and not record.completed_at}
            gates = [one.stage.gate for name, one in each.layout.stage_of.items() if name in on_their_way]
            if any(gate.checks or gate.metrics for gate in gates):
                self._asks_conditions = True
                statuses[each.name] = await with_conditions(each, known, plain, look, metrics)
        return statuses

    def _staged_by(
        self, schedule: Schedule, staging: Staging, progress: Mapping[str, RolloutProgress], look: RolloutInputs
    ) -> Schedule:
        """Return the schedule as the revisions in force leave it; the last one again where its inputs are the same."""
        due = [(each.deletions_due, each.placement_due) for each in progress.values()]
        same = (schedule, look.copies, look.journal.observations.previous)
        alike = (staging.in_force, staging.newest, due, staging.fleets)
        known = self._staged
        if known is not None and not any(map(is_not, known[0][:3], same)) and known[0][3:] == alike:
            return known[1]
        journal = look.journal
        result = staged(schedule, staging, progress, journal.ledger, look.copies, journal.observations.previous)
        self._staged = ((*same, *alike), result)
        return result

    def _take(self, name: str, after: Mapping[str, Record]) -> None:
        before = self._records.get(name, {})
        if before == after:
            return
        if self._journal is not None:
            self._journal.record_rollouts(name, {cluster: after.get(cluster) for cluster in {*before, *after}})
        self._records = {**self._records, name: dict(after)}

    def _forget_all_but(self, names: Collection[str]) -> None:
        for name in self._records.keys() - set(names):
            self._take(name, {})
        self._records = {name: records for name, records in self._records.items() if name in names}

    async def _record(
        self,
        schedule: Schedule,
        progresses: Mapping[str, RolloutProgress],
        look: RolloutInputs,
        now: str,
        only: Collection[str] | None,
    ) -> Records:
        """Return the new records. A beginning that a cluster could not record has not begun."""
        begun: dict[str, dict[str, Record]] = {}
        for name, progress in progresses.items():
            for change in progress.changes:
                if isinstance(change, Begin):
                    begun.setdefault(change.cluster, {})[name] = progress.records[change.cluster]
        known = {cluster for progress in progresses.values() for cluster in progress.records}
        refused = known - set(only) if only is not None else set[str]()
        is_writing = self._entering is not None and not schedule.fleet.settings.observe_only
        entered: Mapping[str, Begun] = {}
        if is_writing:
            entering = {name: records for name, records in begun.items() if name not in refused}
            # What is recorded stays readable, whatever becomes of the branch.
            revisions = _recorded(schedule, {name: each.records for name, each in progresses.items()}, now)
            if revisions:
                revisions |= {each.waiting for each in progresses.values()} | {look.journal.former}
                revisions |= set(self._documents.values())
            await self._revisions.keep(revisions)
            entered = await self._enter(schedule, look.reachable, entering)
            refused |= entering.keys() - entered.keys()
        records: dict[str, Mapping[str, Record]] = {}
        for name, progress in progresses.items():
            before = self._records.get(name, {})
            after = dict(progress.records) | {at: one[name] for at, one in entered.items() if name in one}
            for cluster in refused:
                after.pop(cluster, None)
                if cluster in before:
                    after[cluster] = before[cluster]
            records[name] = after
            if is_writing:
                self._take(name, after)
        return records

    async def _enter(self, schedule: Schedule, reachable: Reachable, begun: Mapping[str, Begun]) -> Mapping[str, Begun]:
        """Return the beginnings that are written into the clusters by now."""
        if not begun:
            return {}
        assert self._entering is not None, "somebody holds the fleet"
        members = {name: member for name in begun if isinstance(member := reachable.get(name), MemberCluster)}
        return await self._entering.enter(schedule.fleet.settings.name, members, begun)


def _recorded(schedule: Schedule, records: Records, now: str) -> set[str]:
    """Return the revisions of all Rollouts that are in force, or to which clusters may roll back."""
    return set[str]().union(*(revisions_of(each, records.get(each.name, {}), now) for each in schedule.fleet.rollouts))


def _with_recorded(progress: RolloutProgress, records: Mapping[str, Record]) -> RolloutProgress:
    """Return the state with the possible records; a revision that could not begin deletes nothing."""
    begun = {name: (one.revision, one.begun_at) for name, one in records.items()}
    wanted = {name: (one.revision, one.begun_at) for name, one in progress.records.items()}
    due = frozenset(name for name in progress.deletions_due if begun.get(name) == wanted[name])
    return replace(progress, deletions_due=due)
