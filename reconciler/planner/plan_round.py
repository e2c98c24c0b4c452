"""The whole computation: from a parsed store and observations of the members to an ordered plan.

`schedule_fleet` evaluates the store (claims, dependencies, placement); `plan_round` compares it with the members.
Both are pure functions of frozen values: the same input gives the same output, byte for byte.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from msgspec.structs import replace

from reconciler.api.binding import PreviousPlacement, TargetCluster
from reconciler.api.clusters import NotRead, Observations
from reconciler.api.content import dig
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import SuspensionRecord
from reconciler.api.plan import FORMER_COUNTS, Cause, Change, HeldBy, Hold, Manifest, PlacementChange, Plan
from reconciler.api.problem import Severity, with_problems
from reconciler.api.refs import GVK, Identity, short_revision
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds.registry import Registry
from reconciler.observations import moment_of
from reconciler.placement import closed_by, closed_by_order
from reconciler.planner.causes import new_in_no_policy, urls_of_two_hosts
from reconciler.planner.deletion_order import after_owners
from reconciler.planner.diff_all import Round, diff_all
from reconciler.planner.guard import guard, judged_by, with_former_suspensions
from reconciler.planner.members_after import written_by, written_in
from reconciler.planner.open_questions import not_evaluated
from reconciler.planner.order import TurnOrder, waves, waves_without
from reconciler.planner.revisions import as_offline_change, passage_between, with_stages
from reconciler.policy import OBSERVED, closed_clusters
from reconciler.render import (
    Manifests,
    Rendered,
    Rendering,
    RenderTables,
    decrypt,
    problems_in,
    render,
    render_all,
    render_copy,
    render_in_force,
)
from reconciler.scheduler import Schedule, namespace_identity, schedule_fleet

_NAMELESS: Final = "unnamed"


def render_schedule(schedule: Schedule) -> Rendering:
    """Return every manifest of the target placement, with the problems that prevented some."""
    return render_all(RenderTables(schedule))


def render_one(schedule: Schedule, identity: Identity) -> dict[str, Rendered]:
    """Return the rendering of one template in each cluster of its placement; empty if unbound."""
    tables, binding = RenderTables(schedule), schedule.bindings.get(identity)
    targets = binding.targets if binding is not None else ()
    return {cluster: render_in_force(tables, identity, cluster, replicas) for cluster, replicas in targets}


def plan_round(snapshot: FleetSnapshot, schedule: Schedule | None = None) -> Round:
    """Return the plan that makes every cluster that was read equal to the store; once applied, it is empty."""
    if schedule is None:
        schedule = schedule_fleet(
            snapshot.fleet,
            snapshot.observations,
            snapshot.now,
            interpreters=snapshot.interpreters,
            copies=copies_in(snapshot.journal.ledger),
        )
    manifests = decrypt(render(schedule, snapshot))
    planned, managed = diff_all(manifests, schedule)
    placements = placement_changes(schedule, snapshot.observations.previous, snapshot.only)
    return _ordered(planned, manifests, managed, placements)


def _ordered(
    planned: Round, target: Manifests, managed: Mapping[str, int], placements: tuple[PlacementChange, ...]
) -> Round:
    """Return the round with its changes in order, those held that wait or that a guard stops."""
    snapshot, schedule, plan = target.snapshot, planned.schedule, planned.plan
    due = sorted(plan.changes, key=lambda one: (one.identity, one.cluster, one.hold is not None, one.action))
    unread = [name for name, member in snapshot.members.items() if isinstance(member, NotRead)]
    plan = replace(plan, changes=after_owners(tuple(due), schedule, snapshot))
    plan = guard(plan, planned.guards, managed, snapshot.now, snapshot.journal.losses, unread, snapshot.shows)
    changes = after_owners(plan.changes, schedule, snapshot) if plan.held_digest else plan.changes
    if schedule.packaged:
        changes = TurnOrder(changes, schedule, snapshot, planned.manifests).held()
    plan = replace(
        plan,
        changes=changes,
        waves=waves(changes, schedule.needs),
        placements=with_overridden(placements, schedule, planned.manifests, target.tables),
        problems=with_problems(schedule.problems, plan.problems, *planned.problems.values()),
        is_complete=plan.is_complete and schedule.fleet.is_complete,
    )
    return replace(planned, plan=plan)


def compare_revisions(
    base: Fleet, head: Fleet, observations: Observations, now: str, *, interpreters: Registry
) -> Plan:
    """Return the plan of head against members at base, without any cluster.

    Dynamic placements depend on the observations; the previous placement of head is the result of base. If members are
    observed, base counts as applied to them.
    """
    # A store without a name takes that of the other, so that both speak of one fleet.
    name = base.settings.name or head.settings.name or _NAMELESS
    base, head = (
        one if one.settings.name else replace(one, settings=replace(one.settings, name=name)) for one in (base, head)
    )
    was_guarded = judged_by(None, base, now)
    head = with_former_suspensions(head, was_guarded)
    before, after, observed, placed, only = passage_between(base, head, observations, now, interpreters)
    tables = RenderTables(before)
    members, journal = written_by(before, after, render_all(tables, only).manifests, observations.clusters, only)
    # No journal here has recent losses: the guards count this plan alone, by the stricter limits of both.
    journal = replace(journal, losses=replace(journal.losses, guards=was_guarded))
    snapshot = FleetSnapshot(
        fleet=head,
        interpreters=interpreters,
        now=now,
        members=members,
        observations=observed,
        journal=journal,
        only=only,
    )
    # No cluster is met: encrypted values are compared as they are written.
    manifests = render(after, snapshot)
    result, _ = diff_all(manifests, after, are_shared=True)
    open_questions = not_evaluated(before, after)
    silent = {one.identity for one in open_questions}
    # So is a Namespace that has a place in one revision alone, and follows them.
    around = {namespace_identity(identity.namespace) for identity in silent}
    silent |= {one for one in around - after.policies.keys() if (one in before.bindings) != (one in after.bindings)}
    changes = tuple(
        [as_offline_change(one, before.fleet, after.fleet) for one in result.plan.changes if one.identity not in silent]
    )
    # Guards ask for the size of the clusters only where something is to be deleted.
    managed = written_in(tables, observations.clusters) if any(change.guarded for change in changes) else {}
    problems = (*result.plan.problems, *problems_in(RenderTables(after)))
    placements = tuple([one for one in placement_changes(after, placed) if one.identity not in silent])
    plan = replace(result.plan, base=base.revision, changes=changes, placements=placements, problems=problems)
    result = replace(result, plan=with_stages(plan, before, after))
    plan = _ordered(result, manifests, {name: managed.get(name, 0) for name in members}, placements).plan
    known = before.fleet.templates
    changed = [
        one
        for identity, one in after.fleet.templates.items()
        if identity not in known or known[identity].digest != one.digest
    ]
    # What a broken file of base held back is not compared, and no problem of head tells which file that is.
    prefix = f"{short_revision(base.revision)} has this error, so not all is compared"
    broken = [
        replace(one, message=f"{prefix}: {one.message}", severity=Severity.WARNING)
        for one in (base.problems if not base.is_complete else ())
        if one.severity is Severity.ERROR and one not in head.problems
    ]
    others = (new_in_no_policy(before.fleet, after), urls_of_two_hosts(changed), broken)
    return replace(
        plan,
        problems=with_problems(plan.problems, *others),
        unjudged=open_questions,
        is_complete=plan.is_complete and before.fleet.is_complete and not open_questions,
    )


def copies_in(clusters: Mapping[str, Collection[Identity]]) -> dict[Identity, set[str]]:
    """Return the clusters of each object, by identity; of the ledger, those where it was last applied."""
    copies: dict[Identity, set[str]] = {}
    for cluster, identities in clusters.items():
        for identity in identities:
            copies.setdefault(identity, set()).add(cluster)
    return copies


def restrained(planned: Round, suspensions: Iterable[SuspensionRecord], now: str) -> Round:
    """Return the round without changes that suspensions, closed windows or observe mode forbid.

    Moves by a tick or a person never wait for a window; drift is put back unless a window says no. Source: ADR 18.
    """
    fleet, plan, former = planned.schedule.fleet, planned.plan, planned.guards.former_windows
    orders, is_observed = closed_by(suspensions), fleet.settings.observe_only
    closed = closed_clusters(fleet.settings.windows, fleet.clusters.values(), moment_of(now), former)
    moved = {identity for identity, _ in planned.schedule.ticked}
    was_observed = OBSERVED in former and not is_observed

    def hold_of(change: Change) -> Hold | None:
        if (hold := change.hold or closed_by_order(orders, change.identity, change.cluster)) is not None:
            return hold
        if was_observed:
            return Hold(HeldBy.SETTINGS, f"spec.mode is observe no more{FORMER_COUNTS}")
        window = closed.get(change.cluster)
        if window is None or (change.cause is Cause.DRIFT and window.heals_drift):
            return None
        if change.cause is Cause.PLACEMENT and change.identity in moved:
            return None
        until = f" until {window.until}" if window.until else ""
        return Hold(HeldBy.WINDOW, f"a window of the fleet is closed{until}{FORMER_COUNTS if window.is_former else ''}")

    if orders or closed or was_observed:
        held = ((change, hold_of(change)) for change in plan.changes)
        changes = tuple([change if hold is change.hold else replace(change, hold=hold) for change, hold in held])
        plan = replace(plan, changes=changes, waves=waves_without(plan.waves, changes))
    return replace(planned, plan=replace(plan, waves=()) if is_observed else plan)


def placement_changes(
    schedule: Schedule, previous: Mapping[Identity, PreviousPlacement], only: frozenset[Identity] | None = None
) -> tuple[PlacementChange, ...]:
    """Return the placements that moved since the previous ones, sorted; `only` of these objects."""
    changes: list[PlacementChange] = []
    if only is None:
        bindings = schedule.bindings
        rows = zip(bindings, bindings.values(), map(previous.get, bindings), strict=True)
        moved = {identity for identity, binding, before in rows if before is None or before.targets != binding.targets}
        only = frozenset(moved | (previous.keys() - bindings.keys()))
    for identity in sorted(only):
        if identity in schedule.frozen or (identity not in schedule.bindings and not schedule.fleet.is_complete):
            # A broken file may speak of it: where it is, it stays.
            continue
        binding, before = schedule.bindings.get(identity), previous.get(identity)
        was, is_now = before.targets if before else (), binding.targets if binding else ()
        if was == is_now:
            continue
        template = schedule.fleet.templates.get(identity)
        # Of a template that left the store only the identity is remembered; its version no longer matters.
        changes.append(
            PlacementChange(
                gvk=template.gvk if template else GVK(identity.group, "v1", identity.kind),
                identity=identity,
                before=was,
                after=is_now,
                reasons=binding.reasons if binding else (),
            )
        )
    return tuple(changes)


def with_overridden(
    placements: tuple[PlacementChange, ...],
    schedule: Schedule,
    manifests: Mapping[str, Mapping[Identity, Manifest]],
    tables: RenderTables,
) -> tuple[PlacementChange, ...]:
    """Return the placements, with the replicas that overrides of HEAD make of those that are assigned."""
    overridden = {identity for each in manifests.values() for identity, manifest in each.items() if manifest.overrides}
    if not any(placement.identity in overridden for placement in placements):
        return placements

    def with_sent_replicas(placement: PlacementChange) -> PlacementChange:
        path = schedule.interpreters.of(*placement.identity[:2]).replicas_path
        if placement.identity not in overridden or not path:
            return placement
        targets = []
        for cluster, replicas in placement.after:
            manifest = render_copy(tables, placement.identity, cluster, replicas).manifest
            sent = dig(manifest.body, *path) if manifest is not None and not manifest.replicas_yielded else None
            if isinstance(sent, int) and sent != replicas:
                targets.append(TargetCluster(cluster, sent))
        return replace(placement, overridden=tuple(targets))

    return tuple(map(with_sent_replicas, placements))
