"""Commands that write the journal: make the clusters equal to the store once, or fill a lost journal from the marks.

Source: design#lost-journal: the marks rebuild objects, placements and keep, and which revisions rollouts have in force;
timers and exclusions begin again; nothing is deleted until one complete round has been recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow, Event, EventKind
from reconciler.controller.cluster_reads.members import answered_by
from reconciler.controller.cluster_reads.read_clusters import answering, remembered
from reconciler.controller.once.marked_objects import documents_of, placements_of, rows_of_all
from reconciler.controller.once.planning import Access, check_fleet, open_members, read_and_plan, rivals
from reconciler.controller.round.apply_plan import ChangeResult, WriteContext, act
from reconciler.controller.round.failed_changes import (
    facts_of,
    failures_after,
    health_read,
    last_contacts,
    log_faults,
    merged,
    not_healthy,
    with_faults,
)
from reconciler.controller.round.owner_record import record_hooks
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.round.record_round import record_picture, remember
from reconciler.controller.round.recover import recover
from reconciler.controller.round.reported_conditions import ReportedConditions
from reconciler.diff import Comparer
from reconciler.errors import ConfigurationError, MemberClusterError
from reconciler.fleet import why_nameless
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.journal.journal_rebuild import rebuild
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.client import MemberCluster
from reconciler.planner import Round
from reconciler.report.status.state_document import StateOfFleet
from reconciler.state import StateTables

_NOT_BEGUN = (
    "the revision could not begin in the cluster: its record there could not be written or, of a cluster that is back, "
    "names another revision; apply again"
)


class Applied(Struct, frozen=True, kw_only=True):
    """The result of `apply`: the round and the results of its changes; `is_agreed` False: the person said no."""

    round: Round
    results: tuple[ChangeResult, ...] = ()
    is_agreed: bool = True


async def apply_once(
    fleet: Fleet,
    access: Access,
    agree: Callable[[Round], bool],
    tell: Callable[[ChangeResult], None] = lambda result: None,
) -> Applied:
    """Look, show the plan to `agree`, make exactly that plan, and record it.

    Raises:
        ConfigurationError: the store does not name the fleet, or the journal belongs to another one.
        JournalLocked: a daemon or another apply holds the journal.
        FleetHeld: another journal holds the fleet.
    """
    if not fleet.settings.name:
        raise ConfigurationError(why_nameless(fleet))
    assert access.journal is not None, "a fleet with a name has a journal"
    with Journal.open(access.journal) as journal:
        check_fleet(journal, fleet)
        async with open_members(fleet, access) as members:
            holder = OwnershipLock(journal, access.clock)
            if not fleet.settings.observe_only:
                await holder.refuse_others(rivals(fleet, members, access), fleet.settings.name)
            known = remembered(journal)
            if known.unanswered:
                reachable, _ = await answering(fleet, members, known.cluster_uids)
                known = remembered(journal) if await recover(journal, reachable, fleet) else known
            planned, reading, stages = await read_and_plan(fleet, members, known, access)
            if planned.plan.waves and not agree(planned):
                return Applied(round=planned, is_agreed=False)
            journal.record_clusters(reading.uids)
            journal.keep_history(fleet.settings.history, reading.snapshot.now)
            refused = await stages.commit((journal, holder.enter)) if stages is not None else frozenset()
            acting = WriteContext(
                members=members,
                journal=journal,
                comparer=Comparer(planned.schedule, reading.snapshot),
                tell=tell,
                clock=access.clock,
                lost=lambda member: holder.lost(member, fleet.settings.name),
            )
            results: tuple[ChangeResult, ...] = ()
            if planned.plan.waves:
                due = [planned.plan.changes[index] for wave in planned.plan.waves for index in wave]
                # Person and number of changes are recorded before, in case it does not end.
                data = {"revision": planned.plan.head, "who": access.who or "a person", "changes": len(due)}
                journal.record_event(EventKind.APPLY, "fleet", data, reading.snapshot.now)
                record_hooks(due, acting)
                clusters = sorted({change.cluster for change in due})
                failed = await holder.hold([members[name] for name in clusters], fleet.settings.name)
                failed |= {name: MemberClusterError(name, _NOT_BEGUN) for name in refused}

                async def lock(member: MemberCluster) -> MemberClusterError | None:
                    return failed.get(member.name)

                results = await act(planned.plan, acting, lock)
            remember(journal, planned, reading.snapshot, results)
            _record_picture(journal, planned, reading.snapshot, results, access)
    return Applied(round=planned, results=results)


def _record_picture(
    journal: Journal, planned: Round, snapshot: FleetSnapshot, results: tuple[ChangeResult, ...], access: Access
) -> None:
    picture = merged(None, planned, results, snapshot)
    failures = failures_after({}, picture, results)
    log_faults((), [failed.fault for failed in failures.values() if failed.fault is not None])
    picture = with_faults(picture, {}, failures)
    read = {name: snapshot.now for name, member in snapshot.members.items() if isinstance(member, Read)}
    health = health_read(planned, snapshot)
    for result in results:
        if result.health is not None:
            health[result.change.cluster][result.change.identity] = result.health
    facts = replace(
        facts_of(picture, snapshot.members),
        elsewhere=snapshot.elsewhere,
        failures=failures,
        health=not_healthy(health),
        journal=replace(snapshot.journal, ledger=journal.ledger()),
        last_contact={**last_contacts(journal.state()), **read},
    )
    states = StateTables()
    status = StateOfFleet(
        round=picture,
        state=states.update(facts),
        time=snapshot.now,
        number=journal.complete_rounds(),
        source=access.store,
        rollouts=planned.rollouts,
    )
    record_picture(journal, status)
    ReportedConditions(journal).record_differences(status.state, states.turns, snapshot.now)


class RebuiltFromMarks(Struct, frozen=True, kw_only=True):
    """The result. `objects`: number of ours per cluster; `failed`: errors of reading, by cluster.

    `held_by`: per cluster the other owner of the fleet: another journal, or a copy of this one. `set_aside`: the new
    path of the broken file; `lost`: rows that could not be saved.
    """

    objects: Mapping[str, int] = field(default_factory=dict)
    placements: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    held_by: Mapping[str, str] = field(default_factory=dict)
    is_stock: bool = False
    """Stock was taken of the named clusters alone; what else the journal knows has stayed."""
    set_aside: Path | None = None
    lost: tuple[str, ...] = ()


async def rebuild_once(fleet: Fleet, access: Access, *, take_over: bool = False) -> RebuiltFromMarks:
    """Build the journal again. With `take_over` it owns the fleet afterwards, whoever did before.

    If clusters are named and the journal is sound, only these are read, and all else stays recorded.

    Raises:
        ConfigurationError: the store does not name the fleet, or what is left of the journal belongs to another one.
        JournalLocked: a daemon or another command writes the journal.
    """
    if not fleet.settings.name:
        raise ConfigurationError(why_nameless(fleet))
    assert access.journal is not None, "a fleet with a name has a journal"
    if not access.journal.exists():
        Journal.open(access.journal).close()
    journal, set_aside, lost = rebuild(access.journal, keep_intact=bool(access.clusters.chosen))
    is_stock = bool(access.clusters.chosen) and set_aside is None
    with journal:
        check_fleet(journal, fleet)
        holder = OwnershipLock(journal, access.clock)
        async with open_members(fleet, access) as members:
            reachable, uids = await answering(fleet, members, journal.cluster_uids(), access.clusters.own(fleet))
            answered = answered_by(reachable).values()
            failed = {name: why for name, why in reachable.items() if isinstance(why, str)}
            # Of every cluster before any mark is written.
            unread = await holder.read_back(answered, fleet.settings.name)
            failed |= {name: error.message for name, error in unread.items()}
            if take_over:
                refused = await holder.hold(answered, fleet.settings.name, take_over=True)
                failed |= {name: error.message for name, error in refused.items()}
            marks = await holder.held_by(answered, fleet.settings.name)
            held_by_others = {name: str(mark) for name, mark in marks.items()}
            rows = await rows_of_all(answered, fleet, failed)
            if is_stock:
                with journal.transaction(durable=True):
                    take_stock(journal, rows, failed)
                # Runs of hooks that were deleted count as far as the clusters themselves tell of them.
                await holder.read_back(answered, fleet.settings.name)
        placements = placements_of(row for listed in rows.values() for row in listed)
        with journal.transaction(durable=True):
            journal.record_clusters(uids)
            if not is_stock:
                journal.record_applied(row for _, listed in sorted(rows.items()) for row in listed)
                journal.record_bindings(fleet.revision, placements)
                journal.record_rollout_documents(documents_of(journal.rollout_records()))
            count = sum(map(len, rows.values()))
            journal.record_events([_event(access, fleet, count, is_taken=take_over, is_broken=set_aside is not None)])
    return RebuiltFromMarks(
        objects={name: len(listed) for name, listed in rows.items()},
        placements=len(placements),
        is_stock=is_stock,
        failed=failed,
        held_by=held_by_others,
        set_aside=set_aside,
        lost=lost,
    )


def take_stock(journal: Journal, rows: Mapping[str, Sequence[AppliedRow]], failed: Collection[str]) -> None:
    """Record the objects of these clusters; known rows stay, and nothing of `failed` clusters is deleted."""
    for name, listed in sorted(rows.items()):
        known = journal.applied(name)
        if name not in failed:
            journal.remove_applied(name, known.keys() - {row.identity for row in listed})
        journal.record_applied(row for row in listed if row.identity not in known or known[row.identity].uid != row.uid)


def _event(access: Access, fleet: Fleet, objects: int, *, is_taken: bool, is_broken: bool) -> Event:
    why = "the journal was broken; what history it had is in the file that was set aside" if is_broken else ""
    data = {
        "revision": fleet.revision,
        "who": access.who or "a person",
        "objects": objects,
        **({"why": why} if why else {}),
        **({"clusters": ", ".join(access.clusters.chosen)} if access.clusters.chosen else {}),
    }
    kind = EventKind.TAKEN_OVER if is_taken else EventKind.REBUILT
    return Event(round=0, time=access.clock.now(), kind=kind, subject="fleet", data=data)
