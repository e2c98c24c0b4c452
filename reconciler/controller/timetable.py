"""The schedule of ticks: work by the clock, whose results are recorded before anything depends on them.

A tick moves nothing: it yields constraints, and placement does the rest. Source: design#ticks-constrain;
design#descheduler; design#failover; design#timers.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import partial
from math import inf

from msgspec.structs import replace

from reconciler.api.binding import Constraint, Tick
from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import Event, EventKind
from reconciler.api.refs import Identity
from reconciler.containment import fault_fields, try_await, try_call
from reconciler.controller.loop_state import LoopParts, State
from reconciler.controller.tasks import in_thread
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.vitals.service_vitals import RoundPhase
from reconciler.observations import age_s, in_force
from reconciler.report.status.remedies import todo_of
from reconciler.scheduler import LOOKED, Schedule, Ticked, accept, overdue, propose, remembered_times, reported_key

_WORDS = {
    Tick.DESCHEDULING: (
        "Descheduled", "replicas find no node in a cluster and move to others as far as these have room"
    ),
    Tick.FAILOVER: ("FailedOver", "an application is broken in a cluster, and others take it over"),
}  # fmt: skip
_LEFT = {
    "FailoverAdvised": "an application is broken in a cluster; spec.failover.mode is advise, so nothing moves",
    "FailoverNowhere": "an application is broken in a cluster, and no other one can take it over, so it stays",
}


def events_of(before: Iterable[Constraint], after: Iterable[Constraint], now: str, number: int) -> Iterator[Event]:
    """An event for every constraint that came or changed (`constrained`) or went (`freed`)."""
    old, new = set(before), set(after)
    places = {_by_place(constraint) for constraint in new}
    gone = {constraint for constraint in old - new if _by_place(constraint) not in places}
    for kind, constraints in (("constrained", new - old), ("freed", gone)):
        for constraint in sorted(constraints, key=_by_place):
            data = {
                "tick": str(constraint.tick),
                "replicasMax": constraint.replicas_max,
                "excludes": constraint.excludes,
                "until": constraint.until or None,
                "why": constraint.reason,
            }
            subject = f"{constraint.identity} @ {constraint.cluster}"
            yield Event(round=number, time=now, kind=kind, subject=subject, data=data)


def log_constraints(before: Iterable[Constraint], after: Iterable[Constraint]) -> None:
    """Log every constraint that came; one that only lasts longer is no news."""
    old = set(before)
    known = {(*_by_place(constraint), constraint.since) for constraint in old}
    for constraint in sorted(set(after) - old, key=_by_place):
        if constraint.tick in _WORDS and (*_by_place(constraint), constraint.since) not in known:
            event, words = _WORDS[constraint.tick]
            subject = f"{constraint.identity} @ {constraint.cluster}"
            todo = todo_of(EventKind.CONSTRAINED, subject, {"tick": constraint.tick})
            log.warning(words, extra={"event": event, **_log_fields(constraint), "todo": todo})


def _log_fields(constraint: Constraint) -> dict[str, object]:
    return {
        "cluster": constraint.cluster,
        "obj": str(constraint.identity),
        "replicas_max": constraint.replicas_max,
        "cause": str(constraint.tick),
        "why": constraint.reason,
    }


def _by_place(constraint: Constraint) -> tuple[Identity, str, str]:
    return (constraint.identity, constraint.cluster, str(constraint.tick))


log = logging.getLogger("reconciler")

Decide = Callable[[State, Observations], tuple[State, Collection[Identity]]]
"""The state with a schedule under the constraints and previous placements of the observations; what differs in it."""


class Ticks:
    """The time of the next tick, and the result of the last one."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self.next_s = inf
        """The time at which descheduling is due, by the monotonic clock. Failover runs with every observation."""
        self._tried: Counter[tuple[Identity, str]] = Counter()
        self._in_force: frozenset[Constraint] = frozenset()
        self._has_looked = False
        self._faults = Transitions()
        self._has_just_looked = False

    @property
    def is_due(self) -> bool:
        """Return whether descheduling is due."""
        return self._parts.access.clock.monotonic_s() >= self.next_s

    def with_times(self, state: State) -> State:
        """Return the state with new observations: since when applications have been unhealthy."""
        observations, timers = remembered_times(state.observations, state.known.timers)
        return self._with_timers(replace(state, observations=observations), timers)

    def _with_timers(self, state: State, timers: Mapping[str, str]) -> State:
        if timers == state.known.timers:
            return state
        self._parts.journal.record_timers(timers)
        return replace(state, known=replace(state.known, timers=timers))

    async def run(self, state: State, now: str, decide: Decide) -> tuple[State, frozenset[Identity]]:
        """Run the ticks and record them; return rescheduled objects, and those without an event."""
        fleet, schedule = state.fleet, state.schedule
        if fleet is None or schedule is None or fleet.settings.observe_only:
            return state, frozenset()
        changed: set[Identity] = set()

        async def decided_under(state: State, under: Observations) -> State:
            state, differing = await in_thread(decide, state, under)
            changed.update(differing)
            return state

        known = state.known.observations
        under = replace(state.observations, constraints=known.constraints, previous=known.previous)
        holding = frozenset(in_force(under.constraints, now))
        if not holding >= self._in_force:
            # An exclusion whose time is up is no event either.
            state = await decided_under(state, under)
        self._in_force, before = holding, _decided(state)
        # Asked once: what falls due from here on is for the next round.
        deschedules = self.is_due
        if deschedules:
            self._parts.beat(RoundPhase.TICK)
        look = partial(propose, deschedules=deschedules, tried=self._tried)
        proposed = await try_await(in_thread(look, before, under, now))
        self._has_just_looked = deschedules
        proposal, fault = proposed.value, proposed.fault
        if proposal is not None and proposal.observations.constraints != under.constraints:
            state = await decided_under(state, proposal.observations)
        ticked = None
        if proposal is not None:
            ticked, fault = try_call(accept, before, _decided(state), proposal)
        if ticked is None or proposal is None:
            assert fault is not None, "what gives nothing has failed"
            text = "a fault of the program: nothing is moved by time, and nothing that was is moved back"
            self._faults.fault("ticks", fault, text, **fault_fields())
            # Constraints may have been tried: those from before stay in force.
            return await decided_under(state, under), frozenset(changed)
        if ticked.constraints != proposal.observations.constraints:
            accepted = replace(proposal.observations, constraints=ticked.constraints)
            state = await decided_under(state, accepted)
        self._faults.leave("ticks", "what moves by time is looked at again", event="TicksMended")
        state = self._record(state, fleet, under.constraints, ticked, now)
        if deschedules and not self._has_looked:
            # Once a start is enough: what follows comes an interval later each, and a restart goes on from there.
            self._has_looked = True
            state = self._with_timers(state, {**state.known.timers, LOOKED: now})
        return state, frozenset(changed | overdue(_decided(state), state.observations, now))

    def _record(self, state: State, fleet: Fleet, before: tuple[Constraint, ...], ticked: Ticked, now: str) -> State:
        event = "FailoverNowhere" if fleet.settings.failover_act else "FailoverAdvised"
        state = self._log_once(state, event, ticked.left, now)
        self._tried.update((constraint.identity, constraint.cluster) for constraint in ticked.left)
        for constraint in ticked.excluded:
            self._tried.pop((constraint.identity, constraint.cluster), None)
        if ticked.constraints == before and not ticked.restored:
            return state
        journal = self._parts.journal
        with journal.transaction():
            journal.record_constraints(tuple(c for c in ticked.constraints if c.tick is not Tick.EVICTION))
            journal.patch_bindings(fleet.revision, dict(ticked.restored))
            journal.record_events(events_of(before, ticked.constraints, now, journal.complete_rounds()))
        log_constraints(before, ticked.constraints)
        return state

    def _log_once(self, state: State, event: str, left: Iterable[Constraint], now: str) -> State:
        """Log that something was not done, once for as long as an application is broken, restarts or not."""
        timers = state.known.timers
        fresh = {key: each for each in left if (key := reported_key(event, each.identity, each.cluster)) not in timers}
        if not fresh:
            return state
        for constraint in fresh.values():
            log.warning(_LEFT[event], extra={"event": event, **_log_fields(constraint)})
        return self._with_timers(state, dict(sorted({**timers, **dict.fromkeys(fresh, now)}.items())))

    def plan_next(self, state: State, now: str) -> State:
        """Fix the time of the next descheduling, as far as there is anything to look at."""
        fleet = state.fleet
        has_capacity = any(cluster.nodes is not None for cluster in state.observations.clusters.values())
        if fleet is None or fleet.settings.observe_only or not has_capacity:
            self.next_s = inf
        elif self.next_s == inf:
            # A service that is started again goes on with the interval that had begun.
            since = state.known.timers.get(LOOKED)
            if since is None:
                since = now
                state = self._with_timers(state, {**state.known.timers, LOOKED: now})
            interval_s = fleet.settings.descheduling_interval_s
            # If the clock was set back, its beginning is in the future now.
            rest_s = min(interval_s, interval_s - age_s(since, now))
            self.next_s = self._parts.access.clock.monotonic_s() + max(0.0, rest_s)
        elif self._has_just_looked:
            self._has_just_looked = False
            self.next_s = self._parts.access.clock.monotonic_s() + fleet.settings.descheduling_interval_s
        return state


def _decided(state: State) -> Schedule:
    assert state.schedule is not None, "ticks rest on a schedule"
    return state.schedule
