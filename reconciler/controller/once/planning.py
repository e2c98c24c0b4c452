"""One look at the members and the journal of a fleet: plan, decide or observe, without writing anything.

Rollouts are staged in the same look: what `apply` makes and `diff` shows is what the service would do now.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import ClusterObservation, Observations, Read
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import GuardsInForce, JournalSnapshot
from reconciler.api.problem import NOWHERE, Problem, warning
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.clock import Clock, SystemClock, within
from reconciler.containment import try_await
from reconciler.controller import timing
from reconciler.controller.cluster_reads.clusters_needed import ClusterFilter, pulling
from reconciler.controller.cluster_reads.members import answered_by
from reconciler.controller.cluster_reads.read_clusters import ReadExtent, RoundReading, answering, read, remembered
from reconciler.controller.cluster_reads.scope import Decryption, opened_for
from reconciler.controller.once.marked_objects import journal_in_marks
from reconciler.controller.rollouts.rollout_controller import RolloutController
from reconciler.controller.rollouts.rollout_inputs import RevisionsInForce, RolloutInputs, Writing, away_in
from reconciler.controller.round.dry_runs import Contents, dry_run
from reconciler.controller.round.failed_changes import facts_of, health_read, not_healthy
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.round.recover import answered
from reconciler.errors import ConfigurationError, FleetHeld
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.journal.sqlite_journal import Journal
from reconciler.kinds.registry import Registry
from reconciler.kube.client import MemberCluster
from reconciler.kube.connection.kubeconfig import MemberConfig, load_members
from reconciler.kube.member_clusters import MemberClusters, UserAgent
from reconciler.lint import with_confirmation
from reconciler.observations import in_force, moment_of
from reconciler.ownership import fleet_names
from reconciler.planner import (
    CLUSTER_NOT_READ,
    Round,
    copies_in,
    former_windows,
    plan_round,
    restrained,
    with_former_suspensions,
    with_standing,
)
from reconciler.policy import closed_clusters
from reconciler.rollouts import lay_out
from reconciler.scheduler import Schedule
from reconciler.state import StateTables

if TYPE_CHECKING:
    from reconciler.kube.profile_access import LiveAccess


class Access(Struct, frozen=True, kw_only=True):
    """Access to the members and the journal, and the interpreters."""

    interpreters: Registry
    kubeconfig: Path | None = None
    journal: Path | None = None
    clusters: ClusterFilter = ClusterFilter()
    clock: Clock = field(default_factory=SystemClock)
    store: str = ""
    """The name of the store, for the picture of `status`."""
    keys: Decryption | None = None
    """Decrypts what sops encrypted; None: nothing is decrypted."""
    who: str = ""
    """The person who runs the command, for history; empty: nobody, a service."""
    revisions: RevisionsInForce | None = None
    """Older revisions of the store; None: it has none."""
    profiles: LiveAccess | None = None
    """Access to clusters that follow an inventory; None: the kubeconfig has all of them."""
    stage: str = ""
    """Only in this stage of a Rollout may a revision begin; empty: in every one."""


def configs_of(fleet: Fleet, access: Access) -> Mapping[str, MemberConfig | ConfigurationError]:
    """Return the access of each member, by name, or its error.

    Raises ConfigurationError: the kubeconfig cannot be read at all.
    """
    clusters = [cluster for _, cluster in sorted(fleet.clusters.items())]
    return load_members(access.kubeconfig, clusters) if access.profiles is None else access.profiles.configs(clusters)


@asynccontextmanager
async def open_members(fleet: Fleet, access: Access) -> AsyncIterator[MemberClusters]:
    """The members of the fleet. Nothing is connected before the first request."""
    if access.profiles is not None:
        await access.profiles.refresh(fleet.settings.name)
    configs = configs_of(fleet, access)
    agent = UserAgent(fleet.settings.name or "unnamed", fleet.revision)
    async with MemberClusters.open(configs, agent=agent, clock=access.clock, is_brief=True) as members:
        # Nobody else is kept waiting by a command, and it has no second try.
        chosen = access.clusters.chosen or members
        await asyncio.gather(*(member.log_in() for name, member in members.items() if name in chosen))
        yield members


def refuse_other_fleet(journal: Journal, fleet: Fleet) -> None:
    """Raise ConfigurationError if it is the journal of another fleet, unless the fleet was renamed openly."""
    name = fleet.settings.name
    if name and journal.fleet not in ("", *fleet_names(fleet.settings)):
        raise ConfigurationError(
            f"{journal.path}: it is the journal of fleet {journal.fleet}, and the store is fleet {name}; name the "
            f"journal of {name} with --journal, or none: each fleet has its own ({rename_advice(journal.fleet, name)})"
        )


def check_fleet(journal: Journal, fleet: Fleet) -> None:
    """Bind a new journal to the fleet; refuse as `refuse_other_fleet`."""
    refuse_other_fleet(journal, fleet)
    if journal.fleet != fleet.settings.name:
        journal.record_fleet(fleet.settings.name)


def rename_advice(former: str, name: str) -> str:
    """Return when a journal of another name may be continued, and the effect on an existing fleet."""
    return (
        f"only if {former} itself was renamed to {name}, add {former} to spec.previousNames of the Fleet document: "
        f"all that {former} runs is then judged, and deleted, by this store"
    )


async def plan_once(fleet: Fleet, access: Access, *, at: str | None = None, server_side: bool = False) -> Round:
    """Return the round that would be made now, without writing anything. The journal is read when there is one.

    `server_side`: the API servers evaluate every update by a dry run, not only the doubtful ones. `at`: as of this
    time, with the decisions of descheduling and failover then.
    """
    async with open_members(fleet, access) as members:
        with _read_journal(access) as journal:
            known = await _journal_snapshot(fleet, members, access, journal)
            record = known.losses.guards
            if record is not None and await _are_committed(fleet, record, access):
                fleet = replace(fleet, revision=record.revision)
            (planned, *_), refused = await asyncio.gather(
                read_and_plan(fleet, members, known, access, at=at or "", server_side=server_side),
                _refusal(fleet, members, access, journal),
            )
    return replace(planned, plan=replace(planned.plan, problems=(*planned.plan.problems, *refused)))


async def _are_committed(fleet: Fleet, record: GuardsInForce, access: Access) -> bool:
    """Return whether the files of a work tree are those of the applied commit, whose older settings count beside them.

    Files count as the next revision, by which these settings would not count any more.
    """
    has_older = record.former_windows or record.former_suspensions or record.active != record.written
    if not has_older or access.revisions is None or not fleet.revision.startswith("dir:"):
        return False
    return await access.revisions.checked_out() == record.revision


async def _refusal(fleet: Fleet, members: MemberClusters, access: Access, journal: Journal | None) -> list[Problem]:
    """Return a warning if `apply` would be refused with this journal: another one holds the fleet."""
    # Who has none wants to see, beside the service that holds the fleet.
    if journal is None or fleet.settings.observe_only:
        return []
    try:
        await OwnershipLock(journal, access.clock).refuse_others(rivals(fleet, members, access), fleet.settings.name)
    except FleetHeld as error:
        return [warning(NOWHERE, "", "fleet-held-elsewhere", f"apply would be refused: {error}")]
    return []


def rivals(fleet: Fleet, members: MemberClusters, access: Access) -> list[MemberCluster]:
    """Return the clusters that no other journal may hold: not those that another process applies to, or all others."""
    own, apart = access.clusters.own(fleet), pulling(fleet)
    return [member for name, member in members.items() if name in own or not (name in apart or own <= apart)]


async def read_and_plan(
    fleet: Fleet,
    members: MemberClusters,
    known: JournalSnapshot,
    access: Access,
    *,
    at: str = "",
    server_side: bool = False,
) -> tuple[Round, RoundReading, StagedOnce | None]:
    """Return the plan for the present clusters. As `plan_once`, with the journal's state.

    Raises ConfigurationError: the store has Rollouts and no revisions, or none of them has the stage of the access.
    """
    fleet = with_former_suspensions(with_confirmation(fleet, known.confirmation), known.losses.guards)
    elsewhere = pulling(fleet) - frozenset(access.clusters.chosen)
    extent = ReadExtent(clusters=access.clusters.chosen, elsewhere=elsewhere, at=at, keys=access.keys)
    reading = await read(fleet, members, known, access.clock, access.interpreters, extent)
    stages = None
    if access.stage or _has_rollouts(fleet, known, access):
        only = frozenset(reading.snapshot.members)
        only &= _clusters_of(reading, access.stage) if access.stage else only
        if access.revisions is None:
            raise ConfigurationError(
                "the store has documents of kind Rollout and no revisions: a directory cannot stage changes; "
                "follow a Git repository"
            )
        stages = StagedOnce(access, access.revisions, known)
        reading, planned = await stages.plan(reading, members, only)
    else:
        planned = plan_round(reading.snapshot, reading.schedule)
    planned = await dry_run(planned, members, reading.snapshot, every=server_side)
    planned = await Contents(access.clock).add(planned, members, fleet.settings)
    planned = restrained(planned, in_force(known.suspensions, reading.snapshot.now), reading.snapshot.now)
    if stages is not None:
        plan = with_standing(planned.plan, planned.schedule, stages.progress)
        planned = replace(planned, plan=plan, rollouts=stages.progress)
    others = reading.snapshot.observations.clusters.items() if access.clusters.chosen else ()
    away = [
        warning(NOWHERE, "", CLUSTER_NOT_READ, "it gives no answer, and placement goes by the other clusters", name)
        for name, observed in others
        if name not in access.clusters.chosen and not observed.reachable
    ]
    plan = replace(planned.plan, problems=(*planned.plan.problems, *away))
    return replace(planned, plan=plan), reading, stages


async def decide_once(fleet: Fleet, access: Access) -> RoundReading:
    """Return the present schedule, with the members' free capacity and the journal: placements and constraints."""
    async with open_members(fleet, access) as members:
        with _read_journal(access) as journal:
            known = await _journal_snapshot(fleet, members, access, journal)
        reading = await read(fleet, members, known, access.clock, access.interpreters)
        if access.revisions is None or not _has_rollouts(fleet, known, access):
            return reading
        return await StagedOnce(access, access.revisions, known).as_recorded(reading, members)


def _has_rollouts(fleet: Fleet, known: JournalSnapshot, access: Access) -> bool:
    """Return whether a Rollout may be in force: of the store, or one that it had and whose release is under way."""
    return bool(fleet.rollouts or (known.rollout_documents and access.revisions is not None))


async def observe_once(fleet: Fleet, access: Access) -> Observations:
    """Return the observations of every member now: capacity, workloads, and the journal's state."""
    async with open_members(fleet, access) as members:
        with _read_journal(access) as journal:
            known = await _journal_snapshot(fleet, members, access, journal)
        reading = await read(fleet, members, known, access.clock, access.interpreters, ReadExtent(deep=True))
        snapshot = reading.snapshot
        clusters: dict[str, ClusterObservation] = {}
        for name, observed in snapshot.observations.clusters.items():
            rows = snapshot.journal.ledger.get(name, {})
            workloads = {
                identity: replace(workload, established=rows[identity].established) if identity in rows else workload
                for identity, workload in observed.workloads.items()
            }
            clusters[name] = replace(observed, workloads=workloads)
        versions = await asyncio.gather(*(_version(members.get(name), cluster) for name, cluster in clusters.items()))
    pairs = zip(clusters.items(), versions, strict=True)
    versioned = {name: replace(cluster, kube_version=version) for (name, cluster), version in pairs}
    return replace(snapshot.observations, clusters=versioned)


async def _version(member: MemberCluster | None, observed: ClusterObservation) -> str:
    """Return the version of an API server; empty: it does not tell it now."""
    if member is None or not observed.reachable:
        return ""
    return (await try_await(within(member.version(), timing.PATIENCE_S))).value or ""


def _read_journal(access: Access) -> AbstractContextManager[Journal | None]:
    """Return the journal to read, or None: there is none, or nothing in it."""
    path = access.journal
    is_there = path is not None and path.exists() and path.stat().st_size
    return Journal.open(path, read_only=True) if path is not None and is_there else nullcontext()


async def _journal_snapshot(
    fleet: Fleet, members: MemberClusters, access: Access, journal: Journal | None
) -> JournalSnapshot:
    if journal is None:
        reachable, _ = await answering(fleet, members, {})
        return await journal_in_marks(answered_by(reachable).values(), fleet, access.clock.now())
    refuse_other_fleet(journal, fleet)
    known = remembered(journal)
    if not known.unanswered:
        return known
    reachable, _ = await answering(fleet, members, known.cluster_uids)
    return await answered(known, reachable, fleet)


class StagedOnce:
    """Stages the schedule of one reading, by that reading's own observations of the clusters."""

    def __init__(self, access: Access, revisions: RevisionsInForce, known: JournalSnapshot) -> None:
        self._access = access
        self._controller = partial(RolloutController, revisions, access.clock, known)
        self._stager = self._controller(None)
        self._last: tuple[Schedule, RolloutInputs, str, frozenset[str]]
        self._staged: Schedule

    @property
    def progress(self) -> tuple[RolloutProgress, ...]:
        """Return the state of Rollouts."""
        return self._stager.progress

    async def plan(
        self, reading: RoundReading, members: MemberClusters, only: frozenset[str]
    ) -> tuple[RoundReading, Round]:
        """The plan that the service would carry out now; nothing is recorded. `only`: where a revision may begin."""
        now = reading.snapshot.now
        look = self._rollout_inputs(reading, members)
        schedule = await self._stager.as_recorded(reading.schedule, look, now)
        reading = replace(reading, snapshot=await self._decrypted(reading.snapshot, schedule))
        planned = plan_round(reading.snapshot, schedule)
        snapshot = reading.snapshot
        facts = replace(
            facts_of(planned, snapshot.members),
            elsewhere=snapshot.elsewhere,
            health=not_healthy(health_read(planned, snapshot)),
            journal=snapshot.journal,
        )
        look = replace(look, reported=StateTables().update(facts))
        self._last = reading.schedule, look, now, only
        self._staged = staged = await self._stager.stage(*self._last)
        if staged is not schedule:
            reading = replace(reading, snapshot=await self._decrypted(reading.snapshot, staged))
            planned = plan_round(reading.snapshot, staged)
        return replace(reading, schedule=staged), planned

    async def as_recorded(self, reading: RoundReading, members: MemberClusters) -> RoundReading:
        """The reading with its schedule as the revisions that are recorded leave it."""
        look = self._rollout_inputs(reading, members)
        return replace(reading, schedule=await self._stager.as_recorded(reading.schedule, look, reading.snapshot.now))

    async def commit(self, writing: Writing) -> frozenset[str]:
        """Record what `plan` rests on, here and in the clusters; those in which a revision could not begin.

        Raises FleetHeld: another journal holds the fleet.
        """
        stager = self._controller(writing)
        try:
            recorded = await stager.stage(*self._last)
        finally:
            await stager.close()
        planned, done = _in_force(self._staged), _in_force(recorded)
        return frozenset(cluster for _, cluster, _ in planned ^ done)

    async def _decrypted(self, snapshot: FleetSnapshot, schedule: Schedule) -> FleetSnapshot:
        return replace(snapshot, opened=await opened_for(schedule, None, self._access.keys))

    def _rollout_inputs(self, reading: RoundReading, members: MemberClusters) -> RolloutInputs:
        snapshot, fleet, moment = reading.snapshot, reading.snapshot.fleet, moment_of(reading.snapshot.now)
        former = former_windows(snapshot.journal.losses.guards, fleet)
        closed = closed_clusters(fleet.settings.windows, fleet.clusters.values(), moment, former)
        reachable = {
            name: members[name] if isinstance(member, Read) else getattr(member, "why", "it was not read")
            for name, member in sorted(snapshot.members.items())
        } | {name: "it was not asked" for name in fleet.clusters if name not in snapshot.members}
        return RolloutInputs(
            reachable=reachable,
            copies=copies_in(snapshot.journal.ledger),
            journal=replace(snapshot.journal, observations=snapshot.observations),
            away=away_in(reachable, {}, snapshot.observations.closed),
            closed={name: window.until for name, window in closed.items()},
        )


def _in_force(schedule: Schedule) -> set[tuple[str, str, str]]:
    revisions = schedule.staging.in_force if schedule.staging is not None else {}
    return {(name, cluster, revision) for name, each in revisions.items() for cluster, revision in each.items()}


def _clusters_of(reading: RoundReading, stage: str) -> frozenset[str]:
    fleet = reading.snapshot.fleet
    layouts = [lay_out(rollout, fleet.clusters) for rollout in fleet.rollouts]
    matching = [each for layout in layouts for each in layout.stages if each.stage.name == stage]
    if not matching:
        known = sorted({each.stage.name for layout in layouts for each in layout.stages})
        raise ConfigurationError(
            f"no Rollout of the store has a stage {stage}; "
            + (f"there are {', '.join(known)}" if known else "the store has no document of kind Rollout")
        )
    return frozenset(cluster for each in matching for cluster in each.clusters)
