"""Carry out what a round planned, as far as orders, fights and other journals allow it."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from msgspec.structs import replace

from reconciler.daemon.loop.parts import Parts
from reconciler.daemon.observing.suspensions import restrained
from reconciler.daemon.pace.fights import Fights
from reconciler.daemon.round.act import Acting, Result, act, not_held
from reconciler.daemon.vitals.logs import Transitions
from reconciler.engine import Round
from reconciler.model.fleet import Fleet
from reconciler.model.plan import Cause, Plan
from reconciler.stages.observations import in_force
from reconciler.stages.plan import kept_waves

log = logging.getLogger("reconciler")


class Writer:
    """The one that writes to members."""

    def __init__(self, parts: Parts, fights: Fights) -> None:
        """Nothing is written yet."""
        self._parts = parts
        self._fights = fights
        self._failing = Transitions(log)

    def restrained(self, planned: Round, now: str) -> Round:
        """The plan as far as suspensions, `observe` and fights allow it."""
        suspensions = in_force(self._parts.journal.suspensions(), now)
        self._parts.vitals.suspended = tuple(found.scope for found in suspensions)
        plan = restrained(planned, suspensions).plan
        now_s = self._parts.clock.monotonic_s()
        fought = {
            index
            for index, change in enumerate(plan.changes)
            if self._fights.pause_left_s(change.cluster, change.identity, now_s) > 0 and change.cause is Cause.DRIFT
        }
        waves = kept_waves(plan.waves, lambda index: index not in fought)
        return replace(planned, plan=replace(plan, waves=waves))

    async def write(self, plan: Plan, fleet: Fleet) -> tuple[Result, ...]:
        """The results of what was begun.

        Raises:
            FleetHeld: another journal holds the fleet.
            JournalError: nothing is sent that could not be journaled first.
        """
        if not plan.waves:
            return ()
        parts = self._parts
        parts.beat(f"making {sum(map(len, plan.waves))} changes")
        clusters = {plan.changes[index].cluster for wave in plan.waves for index in wave}
        name = fleet.settings.name
        # Each round asks anew: whoever held the fleet a moment ago may have a successor.
        failed = await parts.holder.hold([parts.members[cluster] for cluster in sorted(clusters)], name)
        refused = not_held(plan, failed)
        for result in refused:
            self._told(result)
        waves = kept_waves(plan.waves, lambda index: plan.changes[index].cluster not in failed)
        acting = Acting(
            members=parts.members,
            journal=parts.journal,
            fleet=name,
            revision=fleet.revision,
            tell=self._told,
            clock=parts.clock,
            lost=lambda member: parts.holder.lost(member, name),
        )
        return (*refused, *await act(replace(plan, waves=waves), acting))

    def _told(self, result: Result) -> None:
        change, vitals = result.change, self._parts.vitals
        self._parts.beat("making changes")
        vitals.changes[change.cluster, str(change.action), "failed" if result.error else "done"] += 1
        extra = {"event": "ApplyFailed" if result.error else "Applied", "cluster": change.cluster,
                 "obj": str(change.identity), "op": str(change.action), "cause": str(change.cause)}  # fmt: skip
        subject = (change.cluster, change.identity)
        if result.error:
            # It is tried again and again; `status` and the metrics say for how long.
            self._failing.enter(subject, result.error, logging.WARNING, "change failed", **extra, error=result.error)
        elif not self._failing.leave(subject, "change made", **extra):
            log.info("change made", extra=extra)


def unmade(planned: Round, results: Iterable[Result]) -> Iterable[Result]:
    """Changes that were due and that nobody began: their cluster could not be held, or a fight is on."""
    if planned.decision.fleet.settings.observe_only:
        return
    begun = {(result.change.cluster, result.change.identity) for result in results}
    for change in planned.plan.changes:
        if change.held is None and (change.cluster, change.identity) not in begun:
            yield Result(change=change, error="not begun")
