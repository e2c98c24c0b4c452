"""The timetable of ticks: what runs by the clock, and what it decides is recorded before anything rests on it.

A tick moves nothing: it yields constraints, and placement does the rest. Source: design §3, rows "descheduler" and
"failover".
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.daemon.parts import Parts
from reconciler.daemon.situation import Situation
from reconciler.daemon.tick_news import events_of, tell, tell_once
from reconciler.engine import Decision
from reconciler.model.binding import Constraint, PreviousPlacement, Tick
from reconciler.model.fleet import Fleet
from reconciler.model.refs import Identity
from reconciler.stages.deschedule import deschedule
from reconciler.stages.failover import due_exclusions, is_taken_over, kept_exclusions, overdue
from reconciler.stages.timers import remembered_times

log = logging.getLogger("reconciler")

_NEVER_S = float("inf")

Decide = Callable[[], Awaitable[Collection[Identity]]]
"""Decides by what is known now; what is decided otherwise than before."""


class _Due(Struct, frozen=True, kw_only=True):
    """What a tick asks for. `exclusions` hold only where others take over."""

    constraints: tuple[Constraint, ...]
    exclusions: tuple[Constraint, ...] = ()
    restored: Mapping[Identity, PreviousPlacement] = field(default_factory=dict)


class Ticks:
    """When the next tick is due, and what the last one decided."""

    def __init__(self, parts: Parts, situation: Situation) -> None:
        """Nothing is due before the clusters' nodes and pods have been read."""
        self._parts = parts
        self._situation = situation
        self._descheduling_s = _NEVER_S
        self._told: set[tuple[str, Identity, str]] = set()
        self._tried: Counter[tuple[Identity, str]] = Counter()
        self._in_force: frozenset[Constraint] = frozenset()

    @property
    def next_s(self) -> float:
        """When descheduling is due, by the monotonic clock. Failover is looked at with every observation."""
        return self._descheduling_s

    @property
    def is_due(self) -> bool:
        """Whether descheduling is due."""
        return self._parts.clock.monotonic_s() >= self._descheduling_s

    def take_times(self) -> None:
        """Take in what was just observed: since when applications have been unhealthy."""
        situation = self._situation
        situation.observations, timers = remembered_times(situation.observations, situation.known.timers)
        if timers != situation.known.timers:
            self._parts.journal.record_timers(timers)
            situation.known = replace(situation.known, timers=timers)

    async def run(self, now: str, decide: Decide) -> set[Identity]:
        """Look at what was observed, decide and record; what is to be looked at again in the clusters."""
        situation = self._situation
        fleet, decision = situation.fleet, situation.decision
        if fleet is None or decision is None or fleet.settings.observe_only:
            return set()
        changed = await self._constrain(fleet, decision, now, decide)
        return changed | overdue(situation.decision or decision, situation.observations, now)

    async def _constrain(self, fleet: Fleet, decision: Decision, now: str, decide: Decide) -> set[Identity]:
        """Put constraints on placements; what is placed otherwise from now on."""
        situation = self._situation
        before = situation.known.observations.constraints
        due = self._due(decision, now)
        in_force = frozenset(known for known in before if not known.until or known.until > now)
        has_expired, self._in_force = not in_force >= self._in_force, in_force
        if (*due.constraints, *due.exclusions) == before and not has_expired:
            return set()
        after = await self._try(decision, due, decide)
        if after.constraints == before and not due.restored:
            return after.changed
        journal = self._parts.journal
        with journal.transaction():
            journal.record_constraints(tuple(c for c in after.constraints if c.tick is not Tick.EVICTION))
            journal.patch_bindings(fleet.revision, dict(due.restored))
            journal.record_events(events_of(before, after.constraints, now, journal.complete_rounds()))
        tell(before, after.constraints)
        return after.changed

    def plan_next(self) -> None:
        """Fix the time of the next descheduling, as far as there is anything to look at."""
        fleet, seen = self._situation.fleet, self._situation.observations.clusters.values()
        has_capacity = any(cluster.nodes is not None for cluster in seen)
        if fleet is None or fleet.settings.observe_only or not has_capacity:
            self._descheduling_s = _NEVER_S
        elif self._descheduling_s == _NEVER_S or self.is_due:
            self._descheduling_s = self._parts.clock.monotonic_s() + fleet.settings.descheduling_interval_s

    def _due(self, decision: Decision, now: str) -> _Due:
        """What should hold from now on."""
        situation = self._situation
        before = situation.known.observations.constraints
        seen = replace(situation.observations, constraints=before)
        given = tuple(known for known in before if known.tick in (Tick.GIVEN, Tick.EVICTION))
        caps = tuple(known for known in before if known.tick is Tick.DESCHEDULING)
        if self.is_due:
            self._parts.beat("looking for replicas without a node")
            caps = deschedule(decision, seen, now)
        kept = kept_exclusions(decision, seen, now)
        exclusions = due_exclusions(decision, replace(seen, constraints=kept.constraints), now, self._tried)
        if not decision.fleet.settings.failover_act:
            self._leave("FailoverAdvised", exclusions)
            exclusions = ()
        replaced = {(found.identity, found.cluster) for found in exclusions}
        staying = tuple(known for known in kept.constraints if (known.identity, known.cluster) not in replaced)
        return _Due(constraints=(*caps, *staying, *given), exclusions=exclusions, restored=kept.restored)

    async def _try(self, before: Decision, due: _Due, decide: Decide) -> _Tried:
        """Place under the constraints, and take those exclusions back for which nobody takes over."""
        wanted = (*due.constraints, *due.exclusions)
        changed = set(await self._decide_under(wanted, due.restored, decide))
        after = self._situation.decision
        assert after is not None, "it has just been decided"
        refused = {found for found in due.exclusions if not is_taken_over(before, after, found)}
        if refused:
            self._leave("FailoverNowhere", sorted(refused, key=lambda c: (c.identity, c.cluster)))
            wanted = tuple(found for found in wanted if found not in refused)
            changed |= set(await self._decide_under(wanted, {}, decide))
        for found in set(due.exclusions) - refused:
            self._tried.pop((found.identity, found.cluster), None)
        return _Tried(constraints=wanted, changed=changed)

    def _leave(self, event: str, exclusions: Collection[Constraint]) -> None:
        """Leave applications where they are, and let others have their turn first."""
        tell_once(self._told, event, exclusions)
        self._tried.update((found.identity, found.cluster) for found in exclusions)

    async def _decide_under(
        self, constraints: tuple[Constraint, ...], restored: Mapping[Identity, PreviousPlacement], decide: Decide
    ) -> Collection[Identity]:
        situation = self._situation
        known = situation.known.observations
        known = replace(known, constraints=constraints, previous={**known.previous, **restored})
        situation.known = replace(situation.known, observations=known)
        return await decide()


class _Tried(Struct, frozen=True, kw_only=True):
    """The constraints that hold, and what is decided otherwise under them."""

    constraints: tuple[Constraint, ...]
    changed: set[Identity]
