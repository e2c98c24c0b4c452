"""The whole computation: from a parsed store and observations of the members to an ordered plan.

`schedule_fleet` evaluates the store (claims, dependencies, placement); `plan_round` compares it with the members.
Both are pure functions of frozen values: the same input gives the same output, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.binding import PreviousPlacement, TargetCluster
from reconciler.api.clusters import NotRead, Observations
from reconciler.api.content import dig
from reconciler.api.fleet import Fleet
from reconciler.api.ledger import AppliedRow, GuardsInForce, SuspensionRecord
from reconciler.api.plan import FORMER_COUNTS, HeldBy, Hold, Manifest, PlacementChange, Plan
from reconciler.api.problem import Problem, with_problems
from reconciler.api.refs import GVK, Copy, Identity
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kinds.registry import Registry
from reconciler.observations import Rest, moment_of
from reconciler.placement import closed_by
from reconciler.planner.causes import new_in_no_policy, urls_of_two_hosts
from reconciler.planner.deletion_order import after_owners, as_ordered
from reconciler.planner.diff_all import PlanResult, diff_all
from reconciler.planner.guard import guard, is_held_by_guard, is_stricter, judged_by, with_former_suspensions
from reconciler.planner.open_questions import not_evaluated
from reconciler.planner.order import TurnOrder, held_by_windows, waves, waves_without
from reconciler.planner.revisions import named_alike, passage_between, with_stages
from reconciler.planner.written import written_by, written_in
from reconciler.policy import OBSERVED, closed_clusters
from reconciler.render import (
    Manifests,
    RenderCache,
    Rendered,
    Renderer,
    Rendering,
    decrypt,
    problems_in,
    render,
    render_all,
    render_copy,
    render_inputs,
)
from reconciler.scheduler import Schedule, schedule_fleet

_STRICTER: Final = "; limits that were loosened count from the next change on, once nothing is held"


class Round(Struct, frozen=True, kw_only=True):
    """One pass: the schedule, the manifests that are in force, and the plan that leads there.

    `problems`: those of the plan that concern one object, by that object. A later round that looks at it replaces them.
    """

    schedule: Schedule
    manifests: Mapping[str, Mapping[Identity, Manifest]]
    plan: Plan
    guards: GuardsInForce
    problems: Mapping[Identity, tuple[Problem, ...]] = field(default_factory=dict)
    at_rest: Mapping[str, Mapping[Identity, Rest]] = field(default_factory=dict)
    """Copies without pending writes, by cluster: to be recorded."""
    frozen: Mapping[Copy, str] = field(default_factory=dict)
    """The reasons why our undesired copies stay, by cluster and identity: a broken file may want them."""
    rollouts: tuple[RolloutProgress, ...] = ()
    """The state of Rollouts; the plan has only the changes that they let begin."""


def render_schedule(schedule: Schedule) -> Rendering:
    """Every manifest of the target placement, with the problems that prevented some."""
    return render_all(render_inputs(schedule))


def render_one(schedule: Schedule, identity: Identity) -> dict[str, Rendered]:
    """Return the rendering of one template in each cluster of its placement; empty if unbound."""
    renderer, binding = Renderer(schedule), schedule.bindings.get(identity)
    targets = binding.targets if binding is not None else ()
    return {cluster: renderer(identity, cluster, replicas) for cluster, replicas in targets}


def plan_round(snapshot: FleetSnapshot, schedule: Schedule | None = None) -> Round:
    """Return the plan that makes every cluster that was read equal to the store.

    `schedule`: that of the same snapshot, when it has been computed already. Called again with members that reflect
    the applied plan and its health, it gives an empty plan.
    """
    if schedule is None:
        schedule = schedule_fleet(
            snapshot.fleet,
            snapshot.observations,
            snapshot.now,
            interpreters=snapshot.interpreters,
            copies=copies_in(snapshot.journal.ledger),
        )
    manifests = render(schedule, snapshot)
    manifests = decrypt(manifests, schedule)
    result = diff_all(manifests, schedule)
    placements = placement_changes(schedule, snapshot.observations.previous, snapshot.only)
    return _round(manifests, schedule, result, placements)


def _round(target: Manifests, schedule: Schedule, result: PlanResult, placements: tuple[PlacementChange, ...]) -> Round:
    snapshot = target.snapshot
    settings, found = snapshot.fleet.settings, list(result.changes)
    if settings.previous_names:
        found = [replace(change, previous_names=settings.previous_names) for change in found]
    found.sort(key=lambda one: (one.identity, one.cluster, one.hold is not None, one.action))
    changes = after_owners(tuple(found), schedule, snapshot)
    unread = [name for name, member in snapshot.members.items() if isinstance(member, NotRead)]
    losses = snapshot.journal.losses
    guards = judged_by(losses.guards, snapshot.fleet, snapshot.now)
    guarded = guard(changes, guards.active, result.managed, snapshot.now, losses, unread, snapshot.shows)
    changes = guarded.changes
    if guarded.digest and is_stricter(guards):
        changes = tuple(
            replace(one, hold=replace(one.hold, why=f"{one.hold.why}{_STRICTER}"))
            if one.hold is not None and is_held_by_guard(one)
            else one
            for one in changes
        )
    if guarded.digest:
        changes = after_owners(changes, schedule, snapshot)
    if schedule.packaged:
        changes = TurnOrder(changes, schedule, snapshot, result.manifests).held()
    plan = Plan(
        base="",
        head=snapshot.fleet.revision,
        changes=changes,
        waves=waves(changes, schedule.needs),
        placements=with_overridden(placements, schedule, result.manifests, target.renderer),
        problems=with_problems(schedule.problems, result.cluster_problems, *result.problems.values()),
        is_complete=result.is_complete and schedule.fleet.is_complete,
        held_digest=guarded.digest,
        confirmed=guarded.confirmed,
        left=guarded.left,
    )
    return Round(
        schedule=schedule,
        manifests=result.manifests,
        plan=plan,
        guards=guards,
        problems=result.problems,
        at_rest=result.at_rest,
        frozen=result.frozen,
    )


def compare_revisions(
    base: Fleet, head: Fleet, observations: Observations, now: str, *, interpreters: Registry
) -> Plan:
    """Return the plan of head against members at base, without any cluster.

    Dynamic placements depend on the observations; the previous placement of head is the result of base. If members are
    observed, base counts as applied to them.
    """
    base, head = named_alike(base, head)
    was_guarded = judged_by(None, base, now)
    head = with_former_suspensions(head, was_guarded)
    passage = passage_between(base, head, observations, now, interpreters)
    before, after, only = passage.before, passage.after, passage.only
    sides, caches = (render_inputs(before), render_inputs(after)), (RenderCache(), RenderCache())
    was = render_all(sides[0], caches[0], only)
    members, journal = written_by(before, after, was.manifests, observations.clusters, only)
    # No journal here has recent losses: the guards count this plan alone, by the stricter limits of both.
    journal = replace(journal, losses=replace(journal.losses, guards=was_guarded))
    snapshot = FleetSnapshot(
        fleet=head,
        interpreters=interpreters,
        now=now,
        members=members,
        observations=passage.observations,
        journal=journal,
        only=only,
    )
    # No cluster is met: encrypted values are compared as they are written.
    manifests = render(after, snapshot)
    result = diff_all(manifests, after, are_shared=True)
    open_questions = not_evaluated(before, after)
    silent = {found.identity for found in open_questions}
    changes = tuple([passage.told(one) for one in result.changes if one.identity not in silent])
    # Guards ask for the size of the clusters only where something is to be deleted.
    managed = (
        written_in(before, sides[0], caches[0], observations.clusters)
        if any(change.guarded for change in changes)
        else {}
    )
    result = replace(
        result,
        changes=changes,
        managed={name: managed.get(name, 0) for name in members},
        cluster_problems=(*result.cluster_problems, *problems_in(sides[1], caches[1])),
    )
    placements = tuple([placed for placed in placement_changes(after, passage.placed) if placed.identity not in silent])
    plan = _round(manifests, after, result, placements).plan
    known = before.fleet.templates
    changed = [
        one
        for identity, one in after.fleet.templates.items()
        if identity not in known or known[identity].digest != one.digest
    ]
    plan = replace(
        plan, problems=with_problems(plan.problems, new_in_no_policy(before.fleet, after), urls_of_two_hosts(changed))
    )
    is_complete = plan.is_complete and before.fleet.is_complete and not open_questions
    plan = replace(plan, base=base.revision, unjudged=open_questions, is_complete=is_complete)
    return with_stages(plan, before, after)


def copies_in(ledger: Mapping[str, Mapping[Identity, AppliedRow]]) -> dict[Identity, set[str]]:
    """Return the clusters where each object was last applied, by identity."""
    copies: dict[Identity, set[str]] = {}
    for cluster, rows in ledger.items():
        for identity in rows:
            copies.setdefault(identity, set()).add(cluster)
    return copies


def restrained(planned: Round, suspensions: Iterable[SuspensionRecord], now: str) -> Round:
    """The round as far as persons allow it: suspensions in force, closed windows, a fleet that is only observed.

    A suspension works without Git, and may expire by itself. `now`: RFC 3339.
    """
    schedule, fleet, plan = planned.schedule, planned.schedule.fleet, planned.plan
    former = planned.guards.former_windows
    if orders := closed_by(suspensions):
        changes = tuple(as_ordered(change, orders) for change in plan.changes)
        plan = replace(plan, changes=changes, waves=waves_without(plan.waves, changes))
    if OBSERVED in former and not fleet.settings.observe_only:
        hold = Hold(HeldBy.SETTINGS, f"spec.mode is observe no more{FORMER_COUNTS}")
        plan = replace(plan, changes=tuple([replace(one, hold=one.hold or hold) for one in plan.changes]), waves=())
    closed = closed_clusters(fleet.settings.windows, fleet.clusters.values(), moment_of(now), former)
    plan = held_by_windows(plan, closed, {identity for identity, _ in schedule.ticked})
    if fleet.settings.observe_only:
        plan = replace(plan, waves=())
    return replace(planned, plan=plan)


def placement_changes(
    schedule: Schedule, previous: Mapping[Identity, PreviousPlacement], only: frozenset[Identity] | None = None
) -> tuple[PlacementChange, ...]:
    """Return the placements that moved between the previous placements and the schedule, sorted.

    `only`: these alone.
    """
    changes: list[PlacementChange] = []
    for identity in sorted(_moved(schedule, previous) if only is None else only):
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
    renderer: Renderer,
) -> tuple[PlacementChange, ...]:
    """The placements, with the replicas that overrides of HEAD make of those that are assigned."""
    overridden = {
        identity for found in manifests.values() for identity, manifest in found.items() if manifest.overrides
    }
    if not any(placement.identity in overridden for placement in placements):
        return placements
    inputs, cache = renderer.head

    def told(placement: PlacementChange) -> PlacementChange:
        path = schedule.interpreters.of(*placement.identity[:2]).replicas_path
        if placement.identity not in overridden or not path:
            return placement
        found = []
        for cluster, replicas in placement.after:
            manifest = render_copy(inputs, placement.identity, cluster, replicas, cache).manifest
            made = dig(manifest.body, *path) if manifest is not None and not manifest.replicas_yielded else None
            if isinstance(made, int) and made != replicas:
                found.append(TargetCluster(cluster, made))
        return replace(placement, overridden=tuple(found))

    return tuple(map(told, placements))


def _moved(schedule: Schedule, previous: Mapping[Identity, PreviousPlacement]) -> set[Identity]:
    """Whatever may have moved."""
    bindings = schedule.bindings
    found = zip(bindings, bindings.values(), map(previous.get, bindings), strict=True)
    moved = {identity for identity, binding, before in found if before is None or before.targets != binding.targets}
    return moved | (previous.keys() - bindings.keys())
