"""Carry out what a round planned, as far as orders, fights and other journals allow it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable
from contextlib import suppress
from functools import partial
from itertools import chain

from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.plan import Cause
from reconciler.api.refs import Copy
from reconciler.controller import timing
from reconciler.controller.cluster_reads.members import Reachable, answered_by
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.retries.caches import RoundCaches
from reconciler.controller.round.apply_plan import (
    ChangeResult,
    Waves,
    WriteContext,
    act_in,
    all_turns,
    as_confirmed,
    waves_by_cluster,
)
from reconciler.controller.round.owner_record import record_hooks
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.round.writes import managers_of, write_events
from reconciler.controller.vitals.logs import Transitions
from reconciler.controller.vitals.service_vitals import RoundPhase
from reconciler.diff import Comparer
from reconciler.errors import MemberClusterError
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kube.client import MemberCluster
from reconciler.observations import in_force
from reconciler.planner import Round, kept_waves, restrained
from reconciler.report.status.history_text import event_detail, history_entry

log = logging.getLogger("reconciler")


class _RoundLocks:
    """The ownership locks of the clusters that one round writes to, each taken by the worker of its cluster.

    Where another journal holds one cluster, nothing is written to the others either, as far as they know it in time.
    """

    def __init__(self, lock: OwnershipLock, fleet: str, clusters: Iterable[str]) -> None:
        """No lock is taken yet. `fleet`: its name."""
        self._lock, self._fleet = lock, fleet
        self._awaited = set(clusters)
        self._all_tried = asyncio.Event()
        self._refusal: Exception | None = None
        self._until_s = asyncio.get_running_loop().time() + timing.SLOW_S

    async def lock(self, waves: Waves, acting: WriteContext, member: MemberCluster) -> MemberClusterError | None:
        """Lock a cluster, and wait for the others, which do not wait long; return why it cannot be locked.

        The runs of hooks that are to be deleted are recorded before, so that the lock has them.

        Each time it is asked again: whoever held the fleet a moment ago may have a successor.

        Raises FleetHeld: another journal holds the fleet, here or in one that was asked in time.
        """
        record_hooks(chain.from_iterable(waves), acting)
        try:
            failed = await self._lock.hold([member], self._fleet)
        except Exception as refusal:
            self._refusal = refusal
            self._all_tried.set()
            raise
        finally:
            self._awaited.discard(member.name)
            if not self._awaited:
                self._all_tried.set()
        with suppress(TimeoutError):
            async with asyncio.timeout_at(self._until_s):
                await self._all_tried.wait()
        if self._refusal is not None:
            raise self._refusal
        return failed.get(member.name)


class Writer:
    """The one that writes to members."""

    def __init__(self, parts: LoopParts, memory: RoundCaches) -> None:
        self._parts, self._memory = parts, memory
        self._failing = Transitions()
        self._turns = all_turns()

    def restrained(self, planned: Round, snapshot: FleetSnapshot) -> Round:
        """Return the plan within suspensions, `observe`, write conflicts, and back-off of failures."""
        away = self._memory.away.queue.keys
        self._memory.unfinished.forgive({name for name in away if isinstance(snapshot.members.get(name), Read)})
        plan = restrained(planned, in_force(self._parts.journal.suspensions(), snapshot.now), snapshot.now).plan
        now_s = self._parts.access.clock.monotonic_s()
        fights, left = self._memory.fights, set[int]()
        for copy in set(fights.paused(now_s)) - {change.copy for change in plan.changes}:
            if snapshot.shows(*copy):
                fights.compared(copy, (), now_s)
        for index, change in enumerate(plan.changes):
            if fights.leaves_alone(change, now_s) or self._memory.unfinished.is_too_early(change):
                left.add(index)
                continue
            # Its cluster may have gone back to an earlier state; what drifted may show it.
            if change.cause is Cause.DRIFT and (live := snapshot.live(*change.copy)) is not None:
                self._memory.suspect_older(change.cluster, (live,))
            if change.cluster in self._memory.restores.suspected:
                self._memory.unfinished.requeue_change(*change.copy, 2 * timing.TICK_S)
                left.add(index)
        return replace(planned, plan=replace(plan, waves=kept_waves(plan.waves, lambda index: index not in left)))

    def begin(self, planned: Round, snapshot: FleetSnapshot, reachable: Reachable) -> None:
        """Begin due writes, one worker a cluster, over the clients of the plan; those of a busy one are enqueued."""
        plan, fleet = planned.plan, snapshot.fleet
        if not plan.waves:
            return
        parts, name = self._parts, fleet.settings.name
        members = answered_by(reachable)
        parts.beat(RoundPhase.WRITE, text=f"making {sum(map(len, plan.waves))} changes")
        acting = WriteContext(
            members=members,
            journal=parts.journal,
            comparer=Comparer(planned.schedule, snapshot),
            tell=partial(self._report_result, fleet.revision),
            clock=parts.access.clock,
            lost=lambda member: parts.holder.lost(member, name),
            turns=self._turns,
            gone_wait_s=timing.PATIENCE_S,
        )
        acting = as_confirmed(plan, acting)
        due, workers = waves_by_cluster(plan), self._memory.workers
        busy = workers.busy
        locks = _RoundLocks(parts.holder, name, due.keys() - busy)
        for cluster, waves in due.items():
            identities = frozenset(change.identity for change in chain.from_iterable(waves))
            if cluster in busy:
                workers.skip(cluster, identities)
                continue
            writing = act_in(members[cluster], waves, acting, partial(locks.lock, waves, acting))
            workers.begin(cluster, writing, revision=fleet.revision, now=snapshot.now, identities=identities)

    def _report_result(self, revision: str, result: ChangeResult) -> None:
        change, vitals = result.change, self._parts.vitals
        self._parts.beat(RoundPhase.WRITE)
        self._memory.workers.answered(result)
        self._parts.round_log.tried(result)
        if result.health is not None or not result.error:
            self._memory.restores.saw(change.cluster, change.gvk, result.resource_version)
            self._memory.healths.written(change.cluster, change.identity, result.resource_version, result.health)
        vitals.changes[change.cluster, str(change.action), "failed" if result.error else "done"] += 1
        extra = {"event": "ApplyFailed" if result.error else "Applied", "rev": revision, "cluster": change.cluster,
                 "obj": str(change.identity), "op": str(change.action), "cause": str(change.cause),
                 "by": ", ".join(managers_of(change)) or None if change.cause is Cause.DRIFT else None,
                 "why": change.reason.text if change.reason is not None else None,
                 **self._behind(revision, result)}  # fmt: skip
        subject = change.copy
        if result.error:
            # It is tried again and again; `status` and the metrics say for how long.
            self._failing.enter(subject, result.error, logging.WARNING, "change failed", **extra, error=result.error)
        elif not self._failing.leave(subject, "change made", **extra):
            log.info("change made", extra=extra)

    def _behind(self, revision: str, result: ChangeResult) -> dict[str, str | None]:
        is_drift = result.change.cause is Cause.DRIFT
        if not (result.error or is_drift):
            return {}
        (event,) = write_events(None, revision, "", [result])
        entry = history_entry(event, self._parts.commits.words)
        behind = {"author": entry["author"], "todo": entry.get("todo")}
        return behind if result.error else {**behind, "why": event_detail(entry)}


def unmade(planned: Round, results: Iterable[ChangeResult], awaited: Collection[Copy] = ()) -> set[Copy]:
    """Return copies with due changes that nobody began, since they have to wait. `awaited`: results are pending."""
    if planned.schedule.fleet.settings.observe_only:
        return set()
    begun = {*awaited, *(result.change.copy for result in results)}
    due = {change.copy for change in planned.plan.changes if change.held is None}
    return due - begun
