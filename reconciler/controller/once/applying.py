"""Make the clusters equal to the store, once: look, show the plan, make exactly that plan, record it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from itertools import chain

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.clusters import Read
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import Event, EventKind, JournalSnapshot
from reconciler.controller.once.planning import Access, check_fleet, open_members, read_and_plan, record_new_clusters
from reconciler.controller.reading.read_clusters import answering, remembered
from reconciler.controller.round.act import Acting, Result, act, not_held, waves_by_cluster
from reconciler.controller.round.hold import OwnershipLock
from reconciler.controller.round.mark import record_hooks
from reconciler.controller.round.picture import (
    facts_of,
    failures_after,
    faults_after,
    last_contacts,
    log_faults,
    looked_health,
    merged,
    not_healthy,
    with_faults,
)
from reconciler.controller.round.recover import recover
from reconciler.controller.round.remember import record_picture, remember
from reconciler.controller.round.told import RecordedEvents
from reconciler.diff import Comparer
from reconciler.errors import ConfigurationError, MemberClusterError
from reconciler.fleet import why_nameless
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.journal.sqlite_journal import Journal
from reconciler.kube.member_clusters import MemberClusters
from reconciler.planner import Round, kept_waves
from reconciler.report.status.state_document import StateOfFleet
from reconciler.state import StateTables

_NOT_BEGUN = "the revision could not begin in the cluster, since its record could not be written there"


async def _recovered(journal: Journal, fleet: Fleet, members: MemberClusters) -> JournalSnapshot:
    """Return the journal's state after inspecting the unanswered requests of an earlier command."""
    known = remembered(journal)
    if not known.unanswered:
        return known
    reachable, _ = await answering(fleet, members, known.cluster_uids)
    return remembered(journal) if await recover(journal, reachable, fleet) else known


class Applied(Struct, frozen=True, kw_only=True):
    """The result of `apply`: the round and the results of its changes; `is_agreed` False: the person said no."""

    round: Round
    results: tuple[Result, ...] = ()
    is_agreed: bool = True

    @property
    def left_to_persons(self) -> int:
        """Return the number of changes that wait for a person."""
        return sum(change.waits_for_person for change in self.round.plan.changes)


async def apply_once(
    fleet: Fleet,
    access: Access,
    agree: Callable[[Round], bool],
    tell: Callable[[Result], None] = lambda result: None,
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
                await holder.refuse_others(members.values(), fleet.settings.name)
            known = await _recovered(journal, fleet, members)
            found = await read_and_plan(fleet, members, known, access)
            planned, reading = found.round, found.reading
            if planned.plan.waves and not agree(planned):
                return Applied(round=planned, is_agreed=False)
            record_new_clusters(journal, reading.uids)
            journal.keep_history(fleet.settings.history, reading.snapshot.now)
            refused = await found.stages.commit((journal, holder.enter)) if found.stages is not None else frozenset()
            acting = Acting(
                members=members,
                journal=journal,
                fleet=fleet.settings.name,
                revision=fleet.revision,
                interpreters=access.interpreters,
                comparer=Comparer(planned.schedule, reading.snapshot),
                tell=tell,
                clock=access.clock,
                lost=lambda member: holder.lost(member, fleet.settings.name),
            )
            if planned.plan.waves:
                # Person and number of changes are recorded before, in case it does not end.
                changes = sum(map(len, planned.plan.waves))
                data = {"revision": planned.plan.head, "who": access.who or "a person", "changes": changes}
                number, now = journal.complete_rounds(), reading.snapshot.now
                begun = Event(round=number, time=now, kind=EventKind.APPLY, subject="fleet", data=data)
                journal.record_events([begun])
            results = await _act(planned, acting, holder, refused)
            remember(journal, planned, reading.snapshot, results)
            _record_picture(journal, planned, reading.snapshot, results, access)
    return Applied(round=planned, results=results)


def _record_picture(
    journal: Journal, planned: Round, snapshot: FleetSnapshot, results: tuple[Result, ...], access: Access
) -> None:
    picture = merged(None, planned, results, snapshot)
    failures = failures_after({}, picture, results)
    faults = faults_after({}, failures, results)
    log_faults((), faults.values())
    picture = with_faults(picture, {}, faults)
    read = {name: snapshot.now for name, member in snapshot.members.items() if isinstance(member, Read)}
    health = looked_health(planned, snapshot)
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
    shown = StateOfFleet(
        round=picture,
        state=states.update(facts),
        time=snapshot.now,
        source=access.store,
        rollouts=planned.rollouts,
    )
    record_picture(journal, shown)
    RecordedEvents(journal).take_in(shown.state, states.turns, snapshot.now)


async def _act(
    planned: Round, acting: Acting, holder: OwnershipLock, not_begun: Collection[str] = ()
) -> tuple[Result, ...]:
    """`not_begun`: clusters in which the revision of the plan could not begin."""
    plan = planned.plan
    clusters = sorted({plan.changes[index].cluster for wave in plan.waves for index in wave})
    if not clusters:
        return ()
    record_hooks((plan.changes[index] for wave in plan.waves for index in wave), acting)
    failed = await holder.hold([acting.members[cluster] for cluster in clusters], acting.fleet)
    failed |= {name: MemberClusterError(name, _NOT_BEGUN) for name in clusters if name in not_begun}
    due = waves_by_cluster(plan)
    refused = tuple(chain.from_iterable(not_held(chain(*due[name]), error) for name, error in sorted(failed.items())))
    for result in refused:
        acting.tell(result)
    waves = kept_waves(plan.waves, lambda index: plan.changes[index].cluster not in failed)
    return (*refused, *await act(replace(plan, waves=waves), acting))
