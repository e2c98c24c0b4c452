"""The timetable of ticks: what runs by the clock, and what it decides is recorded before anything rests on it.

A tick moves nothing: it yields constraints, and placement does the rest. Source: design §3 and row "descheduler".
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from msgspec.structs import replace

from reconciler.daemon.parts import Parts
from reconciler.daemon.situation import Situation
from reconciler.engine import Decision
from reconciler.model.binding import Constraint, Tick
from reconciler.model.ledger import Event
from reconciler.stages.deschedule import deschedule

log = logging.getLogger("reconciler")

_NEVER_S = float("inf")


class Ticks:
    """When the next tick is due, and what the last one decided."""

    def __init__(self, parts: Parts, situation: Situation) -> None:
        """Nothing is due before the clusters' nodes and pods have been read."""
        self._parts = parts
        self._situation = situation
        self._next_s = _NEVER_S

    @property
    def next_s(self) -> float:
        """When the next one is due, by the monotonic clock."""
        return self._next_s

    def is_due(self) -> bool:
        """Whether one is due."""
        return self._parts.clock.monotonic_s() >= self._next_s

    def plan_next(self) -> None:
        """Fix the time of the next one, as far as there is anything to look at."""
        fleet, seen = self._situation.fleet, self._situation.observations.clusters.values()
        has_capacity = any(cluster.nodes is not None for cluster in seen)
        if fleet is None or fleet.settings.observe_only or not has_capacity:
            self._next_s = _NEVER_S
        elif self._next_s == _NEVER_S or self.is_due():
            self._next_s = self._parts.clock.monotonic_s() + fleet.settings.descheduling_interval_s

    def run(self, decision: Decision, now: str) -> bool:
        """Decide and record; whether placements must be found anew."""
        situation = self._situation
        before = situation.known.observations.constraints
        seen = replace(situation.observations, constraints=before)
        caps = deschedule(decision, seen, now)
        after = (*(known for known in before if known.tick is not Tick.DESCHEDULING), *caps)
        if after == before:
            return False
        journal = self._parts.journal
        with journal.transaction():
            journal.record_constraints(after)
            journal.record_events(_events(before, after, now, journal.complete_rounds()))
        situation.known = replace(
            situation.known, observations=replace(situation.known.observations, constraints=after)
        )
        _tell(before, after)
        return True


def _events(before: Iterable[Constraint], after: Iterable[Constraint], now: str, number: int) -> Iterable[Event]:
    old, new = set(before), set(after)
    for kind, found in (("constrained", new - old), ("freed", old - new)):
        for constraint in sorted(found, key=_by_place):
            yield Event(
                round=number,
                time=now,
                kind=kind,
                subject=f"{constraint.identity} @ {constraint.cluster}",
                data={
                    "tick": str(constraint.tick),
                    "replicasMax": constraint.replicas_max,
                    "excludes": constraint.excludes,
                    "why": constraint.reason,
                },
            )


def _tell(before: Iterable[Constraint], after: Iterable[Constraint]) -> None:
    for constraint in sorted(set(after) - set(before), key=_by_place):
        log.warning(
            "replicas find no node in a cluster and move to others as far as these have room",
            extra={"event": "Descheduled", "cluster": constraint.cluster, "obj": str(constraint.identity),
                   "replicas_max": constraint.replicas_max, "reason": constraint.reason},
        )  # fmt: skip


def _by_place(constraint: Constraint) -> tuple[object, ...]:
    return (constraint.identity, constraint.cluster)
