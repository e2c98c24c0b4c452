"""The journal's update after a round, beside its intents: placements, synced objects, events, a picture."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from msgspec.structs import replace

from reconciler.api.binding import PreviousPlacement
from reconciler.api.clusters import Read
from reconciler.api.content import Json
from reconciler.api.ledger import AppliedRow, Event, EventKind
from reconciler.api.refs import Identity
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.round.episodes import PlacementReasons, placed_events
from reconciler.controller.round.owner_record import marked_row
from reconciler.controller.round.writes import write_events
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.journal.sqlite_journal import Journal
from reconciler.observations import memory_of, with_copy_at_rest
from reconciler.ownership import fleet_names, hashed_leaves, is_marked, is_terminating, read_owner, recorded_digest
from reconciler.planner import NOT_DELETED, RUNS_ELSEWHERE, Round, losses_after
from reconciler.report.plan.plan_json import summary
from reconciler.report.status.state_document import StateOfFleet, state_document, with_source_error
from reconciler.report.status.status_document import StatusTables


def remember(
    journal: Journal,
    planned: Round,
    snapshot: FleetSnapshot,
    results: Sequence[ChangeResult],
    *,
    placed: Collection[Identity] | None = None,
    unrecorded: Sequence[ChangeResult] | None = None,
) -> int:
    """Record the round; return its number, 0 before the first complete one.

    `placed`: objects that may be placed again; None: any. `unrecorded`: results not in history yet; None: all.
    """
    plan, fleet, now = planned.plan, snapshot.fleet, snapshot.now
    with journal.transaction():
        journal.record_applied(_confirmed(planned, snapshot, {r.change.copy for r in results}))
        left = dict(_gone(planned, snapshot))
        for cluster, gone in left.items():
            journal.remove_applied(cluster, gone)
        # New facts of copies at rest; also of those written since.
        learnt, ledger = list[AppliedRow](), journal.ledger()
        for cluster, resting in planned.at_rest.items():
            for identity, rest in resting.items():
                row = ledger.get(cluster, {}).get(identity)
                if row is not None and (fresh := with_copy_at_rest(row, rest)) != row:
                    learnt.append(fresh)
        journal.record_applied(learnt)
        schedule = planned.schedule
        origins = PlacementReasons(
            journal=journal,
            now=now,
            is_advanced=journal.last_revision() != schedule.fleet.revision,
            ticked=schedule.ticked,
            evictions=journal.evictions(),
            bindings=schedule.bindings,
        )
        recorded = journal.patch_bindings(fleet.revision, _placements(planned, snapshot, placed))
        number = 0
        # Whether everything was read: deletions wait for the first such round.
        if (
            snapshot.only is None
            and planned.plan.is_complete
            and snapshot.members.keys() >= snapshot.fleet.clusters.keys() - snapshot.elsewhere
        ) or journal.complete_rounds():
            number = journal.record_round(fleet.revision, now, summary(plan.changes))
        # Each round evaluates all that the guards hold, unless it is frozen.
        is_whole = planned.schedule.fleet.is_complete
        read = (name for name, member in snapshot.members.items() if is_whole and isinstance(member, Read))
        journal.keep_losses(losses_after(journal.losses(), plan.changes, planned.guards, now, read, plan.left))
        journal.record_events(placed_events(number, now, plan, recorded, origins))
        journal.record_events(
            Event(
                round=number,
                time=now,
                kind=EventKind.RELEASED,
                subject=f"{identity} @ {cluster}",
                data={"revision": fleet.revision, "why": problem.message},
            )
            for cluster, gone in left.items()
            for identity in gone
            for problem in planned.problems.get(identity, ())
            if (problem.code, problem.cluster) == (NOT_DELETED, cluster)
        )
        unrecorded = results if unrecorded is None else unrecorded
        journal.record_events(write_events(journal, fleet.revision, now, unrecorded))
    return number


def record_picture(journal: Journal, state: StateOfFleet, tables: StatusTables | None = None) -> dict[str, Json]:
    """Replace the picture that `status` shows. The document as recorded."""
    document = state_document(state, journal.state(), tables)
    journal.record_state(document)
    return document


def record_source_error(journal: Journal, error: str) -> None:
    """Note in the picture why the store cannot be read now; empty: it can again."""
    document = journal.state()
    if document is not None and document.get("sourceError") != error:
        journal.record_state(with_source_error(document, error))


def _placements(
    planned: Round, snapshot: FleetSnapshot, placed: Collection[Identity] | None
) -> dict[Identity, PreviousPlacement | None]:
    """Return the placements to record, None: there is none any more. Frozen ones, and those of an observer, stay."""
    before, schedule = snapshot.observations.previous, planned.schedule
    if schedule.fleet.settings.observe_only:
        return {}
    placements: dict[Identity, PreviousPlacement | None] = {}
    codes = {name: {problem.code for problem in problems} for name, problems in planned.problems.items()}
    unsettled = {name for name in codes if RUNS_ELSEWHERE in codes[name]} | snapshot.undecided.keys()
    for identity in {*before, *schedule.bindings} if placed is None else placed:
        binding = schedule.bindings.get(identity)
        if identity in unsettled:
            continue  # Where it is to be is not where it is, or is not known.
        if binding is not None and binding.targets:
            placements[identity] = PreviousPlacement(
                identity=identity, targets=binding.targets, affinity_name=binding.affinity_name
            )
        elif identity in before and schedule.fleet.is_complete and identity not in schedule.frozen:
            placements[identity] = None
    return placements


def _confirmed(planned: Round, snapshot: FleetSnapshot, written: set[tuple[str, Identity]]) -> Iterable[AppliedRow]:
    """Rows of objects that were found to be ours and as wanted, where the journal does not say so yet."""
    due, names = {change.copy for change in planned.plan.changes}, fleet_names(snapshot.fleet.settings)
    for cluster, manifests in planned.manifests.items():
        member = snapshot.members[cluster]
        if not isinstance(member, Read):
            continue
        rows = snapshot.journal.ledger.get(cluster, {})
        for identity, manifest in manifests.items():
            live = member.objects.get(identity)
            if live is None or is_terminating(live) or (cluster, identity) in due or (cluster, identity) in written:
                continue
            known, owner = rows.get(identity), read_owner(live.body)
            if owner is None:
                continue
            memory = memory_of(known, live.uid, owner.replicas)
            row = replace(
                marked_row(cluster, manifest.gvk, live, owner),
                manifest_digest=recorded_digest(manifest.digest, manifest.identity, snapshot.journal.record_key),
                recorded=hashed_leaves(manifest.body, manifest.leaves, snapshot.journal.record_key),
                revision=snapshot.fleet.revision,
                source=manifest.source,
                established=memory.established,
                base=memory.base,
            )
            recorded = (known.uid, known.manifest_digest, known.finished) if known is not None else None
            is_news = recorded != (row.uid, row.manifest_digest, row.finished)
            if is_news and is_marked(live, names):
                yield row


def _gone(planned: Round, snapshot: FleetSnapshot) -> Iterable[tuple[str, list[Identity]]]:
    """Return per cluster applied objects that are not desired there any more and provably no longer ours."""
    schedule = planned.schedule
    names = fleet_names(snapshot.fleet.settings)
    for cluster, rows in sorted(snapshot.journal.ledger.items()):
        member = snapshot.members.get(cluster)
        if not isinstance(member, Read):
            continue
        wanted = planned.manifests.get(cluster, {})
        suspects = rows.keys() - wanted if snapshot.only is None else (rows.keys() & snapshot.only) - wanted.keys()
        gone = [
            identity
            for identity in sorted(suspects - schedule.frozen)
            for live in [member.objects.get(identity)]
            if not schedule.is_bound(identity, cluster)
            and (identity in member.absent if live is None else not is_marked(live, names))
        ]
        if gone:
            yield cluster, gone
