"""Look once, and plan, decide or observe, without writing anything."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from reconciler.adapters.journal.journal import Journal
from reconciler.adapters.kube.members import Members
from reconciler.daemon.observing.cluster_filter import pulling
from reconciler.daemon.observing.reading import Extent, Reading, answering, read, remembered
from reconciler.daemon.observing.suspensions import restrained
from reconciler.daemon.once.access import Access, open_members
from reconciler.daemon.round.contents import Contents
from reconciler.daemon.round.dry_runs import dry_run
from reconciler.daemon.round.recover import answered
from reconciler.engine import FleetSnapshot, Round, plan_round
from reconciler.model.fleet import Fleet
from reconciler.model.ledger import JournalSnapshot
from reconciler.model.observation import ClusterObservation, Observations
from reconciler.stages.observations import in_force
from reconciler.stages.revisions import with_standing

if TYPE_CHECKING:
    from reconciler.daemon.once.staged import StagedOnce


class Planned(Struct, frozen=True, kw_only=True):
    """A plan, its reading, and its stages; None: the store has no Rollouts."""

    round: Round
    reading: Reading
    stages: StagedOnce | None


async def plan_once(fleet: Fleet, access: Access, *, at: str | None = None, server_side: bool = False) -> Round:
    """Return the round that would be made now, without writing anything. The journal is read when there is one.

    `server_side`: the API servers evaluate every update by a dry run, not only the doubtful ones. `at`: as of this
    time, with the decisions of descheduling and failover then.
    """
    async with open_members(fleet, access) as members:
        known = await _known(fleet, members, access.journal)
        planned = await read_and_plan(fleet, members, known, access, at=at or "", server_side=server_side)
    return planned.round


async def read_and_plan(
    fleet: Fleet, members: Members, known: JournalSnapshot, access: Access, *, at: str = "", server_side: bool = False
) -> Planned:
    """Return the plan for the present clusters. As `plan_once`, with the journal's state.

    Raises:
        ConfigurationError: the store has Rollouts and no revisions, or none of them has the stage of the access.
    """
    elsewhere = pulling(fleet) - frozenset(access.clusters)
    extent = Extent(clusters=access.clusters, elsewhere=elsewhere, at=at, open=access.open)
    reading = await read(fleet, members, known, access.clock, access.interpreters, extent)
    stages = _stages(known, access) if fleet.rollouts or access.stage else None
    if stages is None:
        planned = plan_round(reading.snapshot, reading.decision)
    else:
        reading, planned = await stages.plan(reading, members, access.stage)
    planned = await dry_run(planned, members, reading.snapshot, every=server_side)
    planned = await Contents(access.clock).add(planned, members, fleet.settings)
    planned = restrained(planned, in_force(known.suspensions, reading.snapshot.now), reading.snapshot.now)
    if stages is not None:
        plan = with_standing(planned.plan, planned.decision, stages.progress)
        planned = replace(planned, plan=plan, rollouts=stages.progress)
    return Planned(round=planned, reading=reading, stages=stages)


async def decide_once(fleet: Fleet, access: Access) -> Reading:
    """Return the present schedule, with the members' free capacity and the journal: placements and constraints."""
    async with open_members(fleet, access) as members:
        known = await _known(fleet, members, access.journal)
        reading = await read(fleet, members, known, access.clock, access.interpreters)
        return await _stages(known, access).as_recorded(reading, members) if fleet.rollouts else reading


def _stages(known: JournalSnapshot, access: Access) -> StagedOnce:
    from reconciler.daemon.once.staged import StagedOnce  # noqa: PLC0415 - most stores have no Rollouts

    return StagedOnce(access.revisions, access.clock, known, access.open)


async def observe_once(fleet: Fleet, access: Access) -> Observations:
    """Return the observations of every member now: capacity, workloads, and the journal's state."""
    async with open_members(fleet, access) as members:
        known = await _known(fleet, members, access.journal)
        reading = await read(fleet, members, known, access.clock, access.interpreters, Extent(deep=True))
    snapshot = reading.snapshot
    return replace(snapshot.observations, clusters=dict(_with_what_served(snapshot)))


def _with_what_served(snapshot: FleetSnapshot) -> Iterator[tuple[str, ClusterObservation]]:
    for name, seen in snapshot.observations.clusters.items():
        rows = snapshot.journal.ledger.get(name, {})
        workloads = {
            identity: replace(workload, established=rows[identity].established) if identity in rows else workload
            for identity, workload in seen.workloads.items()
        }
        yield name, replace(seen, workloads=workloads)


async def _known(fleet: Fleet, members: Members, path: Path | None) -> JournalSnapshot:
    if path is None or not path.exists():
        return JournalSnapshot()
    with Journal.open(path, read_only=True) as journal, journal.transaction():
        known = remembered(journal)
    if not known.unanswered:
        return known
    reachable, _ = await answering(fleet, members, known.cluster_uids)
    return await answered(known, reachable, fleet)
