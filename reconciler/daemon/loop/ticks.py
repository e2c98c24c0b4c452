"""The timetable of ticks: what runs by the clock, and what it decides is recorded before anything rests on it.

A tick moves nothing: it yields constraints, and placement does the rest. Source: design#ticks-constrain;
design#descheduler; design#failover; design#timers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial

from msgspec.structs import replace

from reconciler.daemon.loop.parts import Parts
from reconciler.daemon.loop.state import Situation
from reconciler.daemon.loop.tick_news import events_of, tell, tell_left
from reconciler.model.binding import Constraint, Tick
from reconciler.model.fleet import Fleet
from reconciler.model.refs import Identity
from reconciler.stages.observations import age_s, in_force
from reconciler.stages.ticks import LOOKED, DecideUnder, Ticked, overdue, remembered_times, tick, told

_NEVER_S = float("inf")


class Ticks:
    """When the next tick is due, and what the last one decided."""

    def __init__(self, parts: Parts, situation: Situation) -> None:
        """Nothing is due before the clusters' nodes and pods have been read."""
        self._parts = parts
        self._situation = situation
        self._descheduling_s = _NEVER_S
        self._tried: Counter[tuple[Identity, str]] = Counter()
        self._in_force: frozenset[Constraint] = frozenset()
        self._has_looked = False
        self._has_just_looked = False

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
        self._remember(timers)

    def _remember(self, timers: Mapping[str, str]) -> None:
        situation = self._situation
        if timers != situation.known.timers:
            self._parts.journal.record_timers(timers)
            situation.known = replace(situation.known, timers=timers)

    async def run(self, now: str, decide: DecideUnder) -> frozenset[Identity]:
        """Look at what was observed, decide and record; what no event tells of, and is to be looked at again."""
        situation = self._situation
        fleet, decision = situation.fleet, situation.decision
        if fleet is None or decision is None or fleet.settings.observe_only:
            return frozenset()
        known = situation.known.observations
        seen = replace(situation.observations, constraints=known.constraints, previous=known.previous)
        holding = frozenset(in_force(seen.constraints, now))
        if not holding >= self._in_force:
            # An exclusion whose time is up is no event either.
            decision = await asyncio.to_thread(decide, seen)
        self._in_force = holding
        # Asked once: what falls due from here on is for the next round.
        deschedules = self.is_due
        if deschedules:
            self._parts.beat("looking for replicas without a node")
        look = partial(tick, deschedules=deschedules, tried=self._tried)
        ticked = await asyncio.to_thread(look, decision, seen, now, decide)
        self._take_in(fleet, seen.constraints, ticked, now)
        self._has_just_looked = deschedules
        if deschedules and not self._has_looked:
            # Once a start is enough: what follows comes an interval later each, and a restart goes on from there.
            self._has_looked = True
            self._remember({**situation.known.timers, LOOKED: now})
        return overdue(ticked.decision, situation.observations, now)

    def _take_in(self, fleet: Fleet, before: tuple[Constraint, ...], ticked: Ticked, now: str) -> None:
        """Record what was decided, and tell it."""
        self._tell_once("FailoverNowhere" if fleet.settings.failover_act else "FailoverAdvised", ticked.left, now)
        self._tried.update((found.identity, found.cluster) for found in ticked.left)
        for found in ticked.excluded:
            self._tried.pop((found.identity, found.cluster), None)
        if ticked.constraints == before and not ticked.restored:
            return
        journal = self._parts.journal
        with journal.transaction():
            journal.record_constraints(tuple(c for c in ticked.constraints if c.tick is not Tick.EVICTION))
            journal.patch_bindings(fleet.revision, dict(ticked.restored))
            journal.record_events(events_of(before, ticked.constraints, now, journal.complete_rounds()))
        tell(before, ticked.constraints)

    def _tell_once(self, event: str, found: Iterable[Constraint], now: str) -> None:
        """Log that something was not done, once for as long as an application is broken, restarts or not."""
        timers = self._situation.known.timers
        fresh = {key: each for each in found if (key := told(event, each.identity, each.cluster)) not in timers}
        if fresh:
            tell_left(event, fresh.values())
            self._remember(dict(sorted({**timers, **dict.fromkeys(fresh, now)}.items())))

    def plan_next(self, now: str) -> None:
        """Fix the time of the next descheduling, as far as there is anything to look at."""
        fleet, seen = self._situation.fleet, self._situation.observations.clusters.values()
        has_capacity = any(cluster.nodes is not None for cluster in seen)
        if fleet is None or fleet.settings.observe_only or not has_capacity:
            self._descheduling_s = _NEVER_S
        elif self._descheduling_s == _NEVER_S:
            # A service that is started anew goes on with the interval that had begun.
            since = self._situation.known.timers.get(LOOKED)
            if since is None:
                since = now
                self._remember({**self._situation.known.timers, LOOKED: now})
            rest_s = fleet.settings.descheduling_interval_s - age_s(since, now)
            self._descheduling_s = self._parts.clock.monotonic_s() + max(0.0, rest_s)
        elif self._has_just_looked:
            self._has_just_looked = False
            self._descheduling_s = self._parts.clock.monotonic_s() + fleet.settings.descheduling_interval_s
