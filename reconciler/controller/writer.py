"""Carry out what a round planned, as far as orders, fights and other journals allow it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from functools import partial
from itertools import chain

from msgspec.structs import replace

from reconciler.api.plan import Cause, Change
from reconciler.api.refs import Identity
from reconciler.containment import try_await
from reconciler.controller import timing
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.reading.suspensions import restrained
from reconciler.controller.retries.caches import RoundCaches
from reconciler.controller.retries.workers import Task
from reconciler.controller.round.act import (
    Acting,
    Result,
    Waves,
    act_in,
    all_turns,
    as_confirmed,
    failed_by,
    not_held,
    tell_each,
    waves_by_cluster,
)
from reconciler.controller.round.writes import managers_of
from reconciler.controller.tasks import start
from reconciler.controller.vitals.board import RoundPhase
from reconciler.controller.vitals.logs import Transitions
from reconciler.diff import Comparer
from reconciler.errors import MemberClusterError
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kube.client import MemberCluster
from reconciler.observations import in_force
from reconciler.planner import Round, kept_waves
from reconciler.state import Copy

log = logging.getLogger("reconciler")


_Hold = asyncio.Future[dict[str, MemberClusterError]]
"""The reason why the fleet cannot be locked in a cluster, if any."""
_Told = asyncio.Future[None]
"""Done when all clusters have said who holds the fleet in them, or had their time to say it."""


async def _told_in_time(holds: Mapping[str, _Hold]) -> None:
    """Once for all lanes: each of them waiting for each hold would be work for every pair of clusters.

    Raises:
        FleetHeld: another journal holds the fleet in one of them.
    """
    if not holds:
        return
    done, _ = await asyncio.wait(holds.values(), timeout=timing.SLOW_S)
    for hold in holds.values():
        if hold in done and not hold.cancelled():  # The lane of a cancelled one has ended; the others go on.
            hold.result()


def _identities(waves: Waves) -> frozenset[Identity]:
    return frozenset(change.identity for wave in waves for change in wave)


class Writer:
    """The one that writes to members."""

    def __init__(self, parts: LoopParts, memory: RoundCaches) -> None:
        """Nothing is written yet."""
        self._parts = parts
        self._fights, self._unfinished, self._away = memory.fights, memory.unfinished, memory.away
        self._lanes = memory.lanes
        self._healths, self._restores = memory.healths, memory.restores
        self._failing = Transitions(log)
        self._turns = all_turns()

    def restrained(self, planned: Round, snapshot: FleetSnapshot) -> Round:
        """Return the plan within suspensions, `observe`, write conflicts, and back-off of failures."""
        self._unfinished.forgive(self._away.back_among(snapshot.members))
        suspensions = in_force(self._parts.journal.suspensions(), snapshot.now)
        self._parts.vitals.suspended = tuple(found.scope for found in suspensions)
        plan = restrained(planned, suspensions, snapshot.now).plan
        now_s = self._parts.clock.monotonic_s()
        left = {index for index, change in enumerate(plan.changes) if self._is_left(change, now_s)}
        waves = kept_waves(plan.waves, lambda index: index not in left)
        return replace(planned, plan=replace(plan, waves=waves))

    def _is_left(self, change: Change, now_s: float) -> bool:
        paths = [field.path for field in change.fields]
        is_fought = self._fights.leaves_alone(change.cluster, change.identity, paths, now_s)
        return (is_fought and change.cause is Cause.DRIFT) or self._unfinished.is_too_early(change)

    def begin(self, planned: Round, snapshot: FleetSnapshot, met: Mapping[str, MemberCluster]) -> None:
        """Begin due writes, one worker for each cluster; a busy one is enqueued for later.

        `met`: the identified clients that the plan was made with. The workers return all results, errors too.
        """
        plan, fleet = planned.plan, snapshot.fleet
        if not plan.waves:
            return
        parts, name = self._parts, fleet.settings.name
        parts.beat(RoundPhase.WRITE, text=f"making {sum(map(len, plan.waves))} changes")
        acting = Acting(
            members=met,
            journal=parts.journal,
            fleet=name,
            revision=fleet.revision,
            interpreters=parts.interpreters,
            altered=Comparer(planned.decision, snapshot).altered,
            tell=partial(self._told, fleet.revision),
            clock=parts.clock,
            lost=lambda member: parts.holder.lost(member, name),
            turns=self._turns,
            made=self._lanes.made,
        )
        acting = as_confirmed(plan, acting)
        free: dict[str, Waves] = {}
        for cluster, waves in waves_by_cluster(plan).items():
            if cluster in self._lanes.busy:
                self._lanes.skip(cluster, _identities(waves))
            else:
                free[cluster] = waves
        # Each time it is asked anew: whoever held the fleet a moment ago may have a successor.
        holds = {cluster: start(parts.holder.hold([met[cluster]], name), f"holding {cluster}") for cluster in free}
        told = start(_told_in_time(holds), "holding the fleet")
        told.add_done_callback(lambda _: told.cancelled() or told.exception())  # it is raised where it is waited for
        for cluster, waves in free.items():
            task = Task(cluster=cluster, revision=fleet.revision, now=snapshot.now, identities=_identities(waves))
            self._lanes.begin(task, self._write(met[cluster], waves, acting, holds[cluster], told))

    async def _write(self, member: MemberCluster, waves: Waves, acting: Acting, hold: _Hold, told: _Told) -> None:
        """The boundary of one cluster's part of a plan: what no result came of may have been made."""
        ended = await try_await(self._held_and_written(member, waves, acting, hold, told))
        if ended.fault is not None:
            left = self._lanes.without_result(member.name)
            changes = (change for change in chain.from_iterable(waves) if change.identity in left)
            failed = failed_by(ended.fault, changes)
            tell_each(acting, failed)
            acting.made(member.name, failed)

    async def _held_and_written(
        self, member: MemberCluster, waves: Waves, acting: Acting, hold: _Hold, told: _Told
    ) -> None:
        try:
            # Where another journal holds one cluster, nothing is written to the others either, as far as they know.
            await asyncio.shield(told)
            failed = await hold
        finally:
            hold.cancel()
        if member.name not in failed:
            await act_in(member, waves, acting)
            return
        refused = not_held(chain.from_iterable(waves), failed[member.name])
        tell_each(acting, refused)
        acting.made(member.name, refused)

    def _told(self, revision: str, result: Result) -> None:
        change, vitals = result.change, self._parts.vitals
        self._parts.beat(RoundPhase.WRITE)
        self._lanes.answered(result)
        if result.health is not None or not result.error:
            self._restores.saw(change.cluster, change.gvk, result.resource_version)
            self._healths.written(change.cluster, change.identity, result.resource_version, result.health)
        vitals.changes[change.cluster, str(change.action), "failed" if result.error else "done"] += 1
        extra = {"event": "ApplyFailed" if result.error else "Applied", "rev": revision, "cluster": change.cluster,
                 "obj": str(change.identity), "op": str(change.action), "cause": str(change.cause),
                 "by": ", ".join(managers_of(change)) or None if change.cause is Cause.DRIFT else None,
                 "why": change.reason.text if change.reason is not None else None}  # fmt: skip
        subject = (change.cluster, change.identity)
        if result.error:
            # It is tried again and again; `status` and the metrics say for how long.
            self._failing.enter(subject, result.error, logging.WARNING, "change failed", **extra, error=result.error)
        elif not self._failing.leave(subject, "change made", **extra):
            log.info("change made", extra=extra)


def unmade(planned: Round, results: Iterable[Result], awaited: Collection[Copy] = ()) -> set[Copy]:
    """Return copies with due changes that nobody began, since they have to wait.

    `awaited`: copies with pending results.
    """
    if planned.decision.fleet.settings.observe_only:
        return set()
    begun = {*awaited, *((result.change.cluster, result.change.identity) for result in results)}
    due = {(change.cluster, change.identity) for change in planned.plan.changes if change.held is None}
    return due - begun
