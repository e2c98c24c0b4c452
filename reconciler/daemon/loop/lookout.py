"""Keep observations and the decision up to date: who answers, what there is room for, where everything goes."""

from __future__ import annotations

import asyncio
import logging
from functools import partial

from msgspec.structs import replace

from reconciler.adapters.journal.mirror import Ledger
from reconciler.adapters.kube.client import MemberCluster
from reconciler.daemon.loop.agenda import Agenda
from reconciler.daemon.loop.observation_news import is_news
from reconciler.daemon.loop.parts import Parts
from reconciler.daemon.loop.state import Situation
from reconciler.daemon.loop.ticks import Ticks
from reconciler.daemon.observing.capacity_need import is_room_needed
from reconciler.daemon.observing.copies import Copies, copies_since, left_since
from reconciler.daemon.observing.live_autoscalers import scaled_by
from reconciler.daemon.observing.look import observe_members, reach, remembered
from reconciler.daemon.observing.suspensions import closed_by
from reconciler.daemon.round.recover import recover
from reconciler.daemon.vitals.logs import Transitions
from reconciler.engine import Decision, decide
from reconciler.errors import HeldByCopy
from reconciler.model.binding import Constraint
from reconciler.model.fleet import Fleet
from reconciler.model.observation import Observations
from reconciler.model.refs import Identity
from reconciler.stages.decision import DecideMemo
from reconciler.stages.observations import in_force
from reconciler.stages.rendering import changed_identities

log = logging.getLogger("reconciler")

_UNANSWERED_S = 2.0
"""How often it is tried to look at an object that was written without an answer."""
_CAPACITY_S = 15.0
"""How often nodes and pods are read again while free capacity decides anything."""


class Lookout:
    """The first half of a round, and the times at which it is due by itself."""

    def __init__(self, parts: Parts, situation: Situation) -> None:
        """Everything is due at once."""
        self._parts = parts
        self._situation = situation
        self._memo = DecideMemo()
        self._decided: Decision | None = None
        self._decided_under: frozenset[Constraint] = frozenset()
        self._copies: Copies = {}
        self._copies_seen = Transitions(log)
        self._ledger: Ledger = {}
        self._ticks = Ticks(parts, situation)
        self._next_resync_s = 0.0
        self._next_capacity_s = 0.0
        self._recovered_s = 0.0

    def next_s(self) -> float:
        """When it is due next."""
        return min(self._next_resync_s, self._next_capacity_s, self._next_recovery_s, self._ticks.next_s)

    def mark(self, agenda: Agenda, now_s: float) -> None:
        """Put on the agenda what is due."""
        if now_s >= self._next_resync_s:
            agenda.mark_everything()
        if now_s >= self._next_capacity_s or self._ticks.is_due:
            agenda.capacity = True
        if now_s >= self._next_recovery_s:
            agenda.mark(*(intent.identity for intent in self._situation.known.unanswered))

    async def look(self, fleet: Fleet, agenda: Agenda, now: str) -> frozenset[Identity] | None:
        """What is decided otherwise than before; None: everything has to be settled."""
        situation, changed = self._situation, set[Identity]()
        if agenda.everything:
            await self._reach_all(fleet, now)
        else:
            changed |= await self._recover(fleet)
        if not agenda.everything and self._is_to_observe(fleet, agenda):
            # A commit is divided by the room that there is now, not by what was there before the last round.
            await self._observe(fleet, now)
        situation.observations = replace(situation.observations, closed=self._closed(now))
        if situation.decision is None or self._decided_under != _constraints(situation):
            changed |= await self._decide_aside(fleet, now)
        if agenda.everything or agenda.capacity:
            changed |= await self._ticks.run(now, partial(self._decide_under, fleet, now, changed))
            self._ticks.plan_next(now)
        return None if agenda.everything else frozenset(changed)

    def _closed(self, now: str) -> dict[str, str]:
        """Why nothing may be written, by scope. An order may be newer than what is known of the journal."""
        copied = {f"cluster {cluster}": why for cluster, why in self._situation.held_elsewhere.items()}
        return copied | closed_by(in_force(self._parts.journal.suspensions(), now))

    def _is_to_observe(self, fleet: Fleet, agenda: Agenda) -> bool:
        is_void = agenda.store and self._situation.decision is None
        return agenda.capacity or (is_void and is_room_needed(fleet, self._decided))

    @property
    def _next_recovery_s(self) -> float:
        """When what was written without an answer is looked at; a cluster that is silent is asked when it is back."""
        reachable, unanswered = self._situation.reachable, self._situation.known.unanswered
        is_due = any(isinstance(reachable.get(intent.cluster), MemberCluster) for intent in unanswered)
        return self._recovered_s + _UNANSWERED_S if is_due else float("inf")

    async def _recover(self, fleet: Fleet) -> set[Identity]:
        """Look at what was written without an answer; what is to be settled anew."""
        parts, situation = self._parts, self._situation
        if not situation.known.unanswered:
            return set()
        before = situation.known.ledger
        found = await recover(parts.journal, situation.reachable, fleet)
        if found:
            situation.known = remembered(parts.journal)
        self._recovered_s = parts.clock.monotonic_s()
        left = left_since(before, situation.known.ledger)
        if left:
            situation.decision = None
        return {*found, *left, *scaled_by(left, before)}

    async def _decide_aside(self, fleet: Fleet, now: str) -> set[Identity]:
        """Decide in a thread of its own, so that signs of life go on."""
        self._parts.beat("deciding", len(fleet.templates))
        return await asyncio.to_thread(self._decide, fleet, now)

    def _decide_under(self, fleet: Fleet, now: str, changed: set[Identity], given: Observations) -> Decision:
        """Decide under other constraints and previous placements. What is decided otherwise is added to `changed`."""
        situation = self._situation
        known = replace(situation.known.observations, constraints=given.constraints, previous=given.previous)
        situation.known = replace(situation.known, observations=known)
        changed |= self._decide(fleet, now)
        assert situation.decision is not None, "it has just been decided"
        return situation.decision

    async def _reach_all(self, fleet: Fleet, now: str) -> None:
        parts, situation = self._parts, self._situation
        parts.beat("reaching the clusters")
        situation.known = remembered(parts.journal)
        known = situation.known.cluster_uids
        situation.reachable, uids = await reach(fleet, parts.members, known)
        if not fleet.settings.observe_only:
            answering = [member for _, member in sorted(situation.reachable.items()) if not isinstance(member, str)]
            situation.held_elsewhere = await self._hold(answering, fleet, now)
        for name, uid in sorted(uids.items()):
            if name not in known:
                parts.journal.record_cluster(name, uid)
        situation.known = replace(situation.known, cluster_uids={**uids, **known})
        await self._recover(fleet)
        self._next_resync_s = parts.clock.monotonic_s() + fleet.settings.resync_s
        await self._observe(fleet, now)

    async def _hold(self, members: list[MemberCluster], fleet: Fleet, now: str) -> dict[str, str]:
        """Per cluster why it is not written to: a copy of this journal holds the fleet. The others are held.

        The first to be started must learn of the second even when nothing is to be written. Where writing is suspended,
        the mark is written with the first change after that.
        """
        name, holder = fleet.settings.name, self._parts.holder
        copies = await holder.copies(members, name)
        scopes = {found.scope for found in in_force(self._situation.known.suspensions, now)}
        free = [member for member in members if not {"fleet", f"cluster {member.name}"} & scopes]
        failed = await holder.hold([member for member in free if member.name not in copies], name)
        copies |= {cluster: error.message for cluster, error in failed.items() if isinstance(error, HeldByCopy)}
        for cluster, why in copies.items():
            self._copies_seen.enter(cluster, why, logging.ERROR, "a copy of this journal holds the fleet",
                                    event="FleetHeld", cluster=cluster, error=why)  # fmt: skip
        return copies

    async def _observe(self, fleet: Fleet, now: str) -> None:
        """Served kinds and, where it decides anything, free capacity; a decision made on other values is void."""
        self._parts.beat("observing the clusters", len(fleet.templates))
        situation = self._situation
        seen = await observe_members(fleet, situation.reachable, situation.known, now, decided=self._decided)
        if is_news(seen, situation.observations):
            situation.decision = None
        situation.observations = seen
        self._ticks.take_times()
        has_capacity = any(cluster.nodes is not None for cluster in seen.clusters.values())
        pause_s = _CAPACITY_S if has_capacity else float("inf")
        self._next_capacity_s = self._parts.clock.monotonic_s() + pause_s

    def _decide(self, fleet: Fleet, now: str) -> set[Identity]:
        """Decide what depends on a difference; what is decided otherwise than the last time."""
        situation, ledger = self._situation, self._situation.known.ledger
        known = situation.known.observations
        situation.observations = replace(situation.observations, previous=known.previous, constraints=known.constraints)
        self._copies, self._ledger = copies_since(self._copies, self._ledger, ledger), ledger
        before = self._decided
        decision = decide(fleet, situation.observations, now, copies=self._copies, memo=self._memo)
        self._decided = situation.decision = decision
        self._decided_under = _constraints(situation)
        return changed_identities(before, decision, self._memo.touched)


def _constraints(situation: Situation) -> frozenset[Constraint]:
    """What ticks and persons want of placement. An order may come in with any reading of the journal."""
    return frozenset(situation.known.observations.constraints)
