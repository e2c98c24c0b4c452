"""Rollouts in one look: what `apply` makes and `diff` shows is what the service would do now."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler.adapters.clock import Clock
from reconciler.adapters.kube.members import Members
from reconciler.daemon.observing.members import Reachable
from reconciler.daemon.observing.opening import Opener, no_keys, opened_for
from reconciler.daemon.observing.reading import Reading
from reconciler.daemon.rollouts.look import Look, Writing, away_in
from reconciler.daemon.rollouts.revisions_in_force import RevisionsInForce
from reconciler.daemon.rollouts.stager import Stager
from reconciler.daemon.round.facts import facts_of, looked_health, not_healthy
from reconciler.engine import Decision, FleetSnapshot, Round, copies_in, plan_round
from reconciler.errors import ConfigurationError
from reconciler.model.ledger import JournalSnapshot
from reconciler.model.observation import Read
from reconciler.model.rollouts.progress import Progress
from reconciler.stages.observations import moment_of
from reconciler.stages.rollouts import lay_out
from reconciler.stages.state import FleetState, StateTables
from reconciler.stages.windows import closed_clusters


class StagedOnce:
    """Stages the schedule of one reading, by that reading's own observations of the clusters."""

    def __init__(
        self, revisions: RevisionsInForce | None, clock: Clock, known: JournalSnapshot, opener: Opener = no_keys
    ) -> None:
        """`revisions`: None where the store has none. `opener`: decrypts what sops encrypted."""
        self._opener = opener
        self._revisions = revisions
        self._clock = clock
        self._known = known
        self._stager = self._make(None)
        self._last: tuple[Decision, Look, str, frozenset[str] | None] | None = None
        self._staged: Decision | None = None

    def _make(self, writing: Writing | None) -> Stager | None:
        return Stager(self._revisions, self._clock, self._known.rollouts, writing) if self._revisions else None

    @property
    def progress(self) -> tuple[Progress, ...]:
        """Return the state of Rollouts."""
        return self._stager.progress if self._stager is not None else ()

    async def plan(self, reading: Reading, members: Members, stage: str = "") -> tuple[Reading, Round]:
        """The plan that the service would carry out now; nothing is recorded.

        `stage`: only there may a revision begin; empty: in every stage.

        Raises:
            ConfigurationError: the store has Rollouts and no revisions, or none of them has such a stage.
        """
        now = reading.snapshot.now
        asked = frozenset(reading.snapshot.members)
        only = asked & _clusters_of(reading, stage) if stage else asked
        if self._stager is None:
            raise ConfigurationError(
                "the store has documents of kind Rollout and no revisions: a directory cannot stage changes; "
                "follow a Git repository"
            )
        look = self._look(reading, members)
        decision = await self._stager.as_recorded(reading.decision, look, now)
        reading = replace(reading, snapshot=await self._opened(reading.snapshot, decision))
        planned = plan_round(reading.snapshot, decision)
        look = replace(look, shown=_looked_state(replace(reading, decision=decision), planned))
        self._last = (reading.decision, look, now, only)
        self._staged = staged = await self._stager.stage(*self._last)
        if staged is not decision:
            reading = replace(reading, snapshot=await self._opened(reading.snapshot, staged))
            planned = plan_round(reading.snapshot, staged)
        return replace(reading, decision=staged), planned

    async def as_recorded(self, reading: Reading, members: Members) -> Reading:
        """The reading with its decision as the revisions that are recorded leave it."""
        if self._stager is None:
            return reading
        look = self._look(reading, members)
        return replace(reading, decision=await self._stager.as_recorded(reading.decision, look, reading.snapshot.now))

    async def commit(self, writing: Writing) -> frozenset[str]:
        """Record what the plan rests on, here and in the clusters; those in which a revision could not begin.

        Raises:
            FleetHeld: another journal holds the fleet.
        """
        stager = self._make(writing)
        if stager is None or self._last is None or self._staged is None:
            return frozenset()
        try:
            made = await stager.stage(*self._last)
        finally:
            await stager.close()
        planned, done = _in_force(self._staged), _in_force(made)
        return frozenset(cluster for _, cluster, _ in planned ^ done)

    async def _opened(self, snapshot: FleetSnapshot, decision: Decision) -> FleetSnapshot:
        return replace(snapshot, opened=await opened_for(decision, None, self._opener))

    def _look(self, reading: Reading, members: Members) -> Look:
        snapshot, fleet, moment = reading.snapshot, reading.snapshot.fleet, moment_of(reading.snapshot.now)
        closed = closed_clusters(fleet.settings.windows, fleet.clusters.values(), moment)
        reachable = _reachable(reading, members)
        return Look(
            reachable=reachable,
            copies=copies_in(snapshot.journal.ledger),
            journal=replace(snapshot.journal, observations=snapshot.observations),
            away=away_in(reachable, {}, snapshot.observations.closed),
            closed={name: found.until for name, found in closed.items()},
        )


def _looked_state(reading: Reading, planned: Round) -> FleetState:
    """Return the state after one reading, before any write of the plan."""
    snapshot = reading.snapshot
    facts = replace(
        facts_of(planned, snapshot.members),
        elsewhere=snapshot.elsewhere,
        health=not_healthy(looked_health(planned, snapshot)),
        journal=snapshot.journal,
        closed=snapshot.observations.closed,
    )
    return StateTables().update(facts)


def _in_force(decision: Decision) -> set[tuple[str, str, str]]:
    found = decision.staging.in_force if decision.staging is not None else {}
    return {(name, cluster, revision) for name, each in found.items() for cluster, revision in each.items()}


def _reachable(reading: Reading, members: Members) -> Reachable:
    found: Mapping[str, object] = reading.snapshot.members
    return {
        name: members[name] if isinstance(found[name], Read) else getattr(found[name], "why", "it was not read")
        for name in sorted(found)
    } | {name: "it was not asked" for name in reading.snapshot.fleet.clusters if name not in found}


def _clusters_of(reading: Reading, stage: str) -> frozenset[str]:
    """The clusters of the stages of this name."""
    fleet = reading.snapshot.fleet
    layouts = [lay_out(rollout, fleet.clusters) for rollout in fleet.rollouts]
    found = [each for layout in layouts for each in layout.stages if each.stage.name == stage]
    if not found:
        known = sorted({each.stage.name for layout in layouts for each in layout.stages})
        raise ConfigurationError(
            f"no Rollout of the store has a stage {stage}; "
            + (f"there are {', '.join(known)}" if known else "the store has no document of kind Rollout")
        )
    return frozenset(cluster for each in found for cluster in each.clusters)
