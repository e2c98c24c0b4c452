"""The state of a schedule's Rollouts: each by itself, from records and observations.

Source: ADR 18.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import Record, ReleaseFacts, RolloutProgress, Sight
from reconciler.api.rollouts import Layout, Rollout
from reconciler.observations import moment_of
from reconciler.rollouts.differing import stages_the_same
from reconciler.rollouts.layout import RolloutSelection, best_of, lay_out
from reconciler.rollouts.progress import adopted, progress
from reconciler.rollouts.release import release_of_head, rollback_revisions
from reconciler.scheduler import Schedule


class Revisions(Struct, frozen=True, kw_only=True):
    """The older revisions that matter. `fleets`: those that can be read.

    `order`: the oldest first. `missing`: missing ones. `pinned`: commits by the texts of pins.
    """

    fleets: Mapping[str, Fleet] = field(default_factory=dict)
    order: tuple[str, ...] = ()
    missing: frozenset[str] = frozenset()
    pinned: Mapping[str, str] = field(default_factory=dict)


class ClusterSights(Struct, frozen=True, kw_only=True):
    """Observations of the clusters. `sights`: by Rollout and cluster.

    `away`: clusters that cannot be changed now, and why. `closed`: those that a window of the fleet closes, with RFC
    3339 of the end, empty: no end is known. `applied`: objects of ours that are in any cluster.
    """

    sights: Mapping[str, Mapping[str, Sight]] = field(default_factory=dict)
    away: Mapping[str, str] = field(default_factory=dict)
    closed: Mapping[str, str] = field(default_factory=dict)
    applied: Collection[Identity] = frozenset()


Records = Mapping[str, Mapping[str, Record]]
"""By Rollout and cluster."""


class RolloutStatus(Struct, frozen=True, kw_only=True):
    """The state of a schedule's Rollouts, and its inputs.

    `progress`: by Rollout. `records`: by Rollout and cluster the present records. `newest`: by Rollout the revision
    that stages the same as HEAD. `fleets`: the older revisions that can be read. `order`: the oldest first.
    """

    selection: RolloutSelection = RolloutSelection()
    progress: Mapping[str, RolloutProgress] = field(default_factory=dict)
    records: Mapping[str, Mapping[str, Record]] = field(default_factory=dict)
    newest: Mapping[str, str] = field(default_factory=dict)
    fleets: Mapping[str, Fleet] = field(default_factory=dict)
    order: tuple[str, ...] = ()


def stand(
    schedule: Schedule,
    selection: RolloutSelection,
    records: Records,
    revisions: Revisions,
    seen: ClusterSights,
    now: str,
) -> RolloutStatus:
    """Return the state of each Rollout, and the records to write. `now`: RFC 3339."""
    fleet = schedule.fleet
    facts = ReleaseFacts(
        order=revisions.order,
        missing=revisions.missing,
        pinned=revisions.pinned,
        away=seen.away,
        closed=seen.closed,
    )
    found: dict[str, RolloutProgress] = {}
    newest: dict[str, str] = {}
    for rollout in fleet.rollouts:
        known = records.get(rollout.name, {})
        # Those of the revisions in force, or to which clusters may roll back, that stage the same as HEAD.
        older = sorted(revisions_of(rollout, known, now) - {"", fleet.revision})
        alike = frozenset(
            revision
            for revision in older
            if (there := revisions.fleets.get(revision)) is not None
            and stages_the_same(there, schedule, _meaning(schedule, selection, rollout, there, seen))
        )
        of_rollout = replace(facts, alike=alike | {fleet.revision})
        head = newest[rollout.name] = release_of_head(fleet.revision, alike, revisions.order)
        layout, sights = lay_out(rollout, fleet.clusters), seen.sights.get(rollout.name, {})
        found[rollout.name] = progress(rollout, layout, head, known, sights, now, of_rollout)
    return RolloutStatus(
        selection=selection,
        progress=found,
        records={name: each.records for name, each in found.items()},
        newest=newest,
        fleets=revisions.fleets,
        order=revisions.order,
    )


def begun_with(
    schedule: Schedule, selection: RolloutSelection, records: Records, seen: ClusterSights, before: str, now: str
) -> dict[str, dict[str, Record]]:
    """Return the records of new Rollouts over existing objects. `before`: the present revision.

    A Rollout without any existing object has none: its first revision goes stage by stage.
    """
    new = [rollout for rollout in schedule.fleet.rollouts if before and not records.get(rollout.name)]
    selected = selection.rollouts.items() if new else ()
    running = {name for identity, names in selected if identity in seen.applied for name in names}
    layouts = {rollout.name: lay_out(rollout, schedule.fleet.clusters) for rollout in new if rollout.name in running}
    return {name: adopted(layout, before, now) for name, layout in layouts.items()}


def layouts_of(fleet: Fleet) -> Iterator[tuple[Rollout, Layout]]:
    """The Rollouts of a fleet with the clusters of their stages."""
    for rollout in fleet.rollouts:
        yield rollout, lay_out(rollout, fleet.clusters)


def revisions_of(rollout: Rollout, records: Mapping[str, Record], now: str) -> set[str]:
    """Return the revisions of a Rollout that are in force, and those to which clusters may roll back."""
    earlier = (rollback_revisions(rollout, record, moment_of(now)) for record in records.values())
    return {record.revision for record in records.values()}.union(*earlier)


def _meaning(
    schedule: Schedule, selection: RolloutSelection, rollout: Rollout, older: Fleet, seen: ClusterSights
) -> Callable[[Identity], bool]:
    """Return a check whether a Rollout selects a template, also one gone from HEAD. Unplaced templates do not count."""
    policies = dict.fromkeys(policy.ref for policy in (*older.propagation, *schedule.fleet.propagation))

    def is_meant(identity: Identity) -> bool:
        if identity in schedule.fleet.templates:
            return identity in schedule.bindings and rollout.name in selection.rollouts.get(identity, ())
        template = older.templates.get(identity)
        if template is None or identity not in seen.applied:
            return False
        # By which policy it was governed is not known any more: by any that a Rollout may name.
        return any(
            rollout.name in best_of(schedule.fleet.rollouts, template, policy)
            for policy in (None, *(policies if rollout.templates.policies else ()))
        )

    return is_meant
