"""A plan as a reviewer wants to see it: placements before and after, and the stages of rollouts.

Placement is never staged, and neither are marks: effects of policies are immediate everywhere (ADR 18). Pure, and
without any cluster: the caller adds the state of a rollout (`RolloutPlan.progress`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.api.binding import PreviousPlacement, TargetCluster
from reconciler.api.content import dig
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Action, Cause, Change, Manifest, PlacementChange, Plan
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollout_progress import RolloutPlan, StagePlan
from reconciler.api.rollouts import ChangeTime, Layout, Rollout, number_of
from reconciler.render import RenderCache, render_copy, render_inputs
from reconciler.rollouts import RolloutSelection, lay_out
from reconciler.scheduler import Schedule


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
    placements: tuple[PlacementChange, ...], schedule: Schedule, manifests: Mapping[str, Mapping[Identity, Manifest]]
) -> tuple[PlacementChange, ...]:
    """The placements, with the replicas that overrides make of those that are assigned."""
    overridden = {
        identity for found in manifests.values() for identity, manifest in found.items() if manifest.overrides
    }
    if not any(placement.identity in overridden for placement in placements):
        return placements
    inputs, cache = render_inputs(schedule), RenderCache()

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


_STAGED: Final = frozenset(
    {Cause.DECLARED, Cause.REMOVED, Cause.OVERRIDE, Cause.ADOPTION, Cause.DEPENDENCY, Cause.SIDE_EFFECT}
)
"""Placement, policies and marks are those of the newest revision; drift is put back at any time."""


class Side(NamedTuple):
    """A revision, and the Rollout of each of its templates."""

    fleet: Fleet
    selection: RolloutSelection


class _Course(NamedTuple):
    """A Rollout of the newer revision with its layout, and where its stages are in it."""

    rollout: Rollout
    layout: Layout
    places: Mapping[str, int]
    """The number of the stage of each cluster."""


def preview(plan: Plan, before: Side, after: Side) -> Plan:
    """Return the plan with its stages: `rollouts`, the `stage` of changes, and problems of the layouts.

    The Rollouts are those of the newer revision. A change is in the stage of its cluster; a deletion keeps the Rollout
    that its template had. Without any Rollout the plan is returned as it is.
    """
    if not after.fleet.rollouts:
        return plan
    courses = {rollout.name: _course(rollout, after.fleet) for rollout in after.fleet.rollouts}
    changes = tuple(_staged(change, courses, before.selection, after.selection) for change in plan.changes)
    known = {rollout.name for rollout in before.fleet.rollouts}
    found = [problem for course in courses.values() for problem in course.layout.problems]
    return replace(
        plan,
        changes=changes,
        rollouts=tuple(
            _told(course, changes, plan, after.selection, is_new=name not in known)
            for name, course in sorted(courses.items())
        ),
        problems=tuple(sorted({*plan.problems, *found, *after.selection.problems})),
    )


def _course(rollout: Rollout, fleet: Fleet) -> _Course:
    layout = lay_out(rollout, fleet.clusters)
    places = {name: number for number, found in enumerate(layout.stages) for name in found.clusters}
    return _Course(rollout, layout, places)


def _staged(
    change: Change, courses: Mapping[str, _Course], before: RolloutSelection, after: RolloutSelection
) -> Change:
    names = after.rollouts.get(change.identity) or before.rollouts.get(change.identity, ())
    found = [courses[name] for name in names if name in courses and change.cluster in courses[name].places]
    if not found:
        return change
    # Several: a dependency, which goes with the first of them, or a definition, which goes with the last.
    chosen = max if change.identity.kind == "CustomResourceDefinition" else min
    course = chosen(found, key=lambda course: course.places[change.cluster])
    number = course.places[change.cluster]
    if change.cause not in _STAGED:
        if change.cause is not Cause.PLACEMENT or course.rollout.placement is ChangeTime.NOW:
            return change
        number = len(course.rollout.stages) - 1
    return replace(change, stage=f"{course.rollout.name}/{course.rollout.stages[number].name}")


def _told(
    course: _Course, changes: tuple[Change, ...], plan: Plan, selection: RolloutSelection, *, is_new: bool
) -> RolloutPlan:
    rollout, counts, later = course.rollout, Counter[str](), 0
    for change in changes:
        name, _, stage = change.stage.partition("/")
        if name != rollout.name:
            continue
        is_gone = change.action in (Action.DELETE, Action.RELEASE) and change.cause is not Cause.PLACEMENT
        if is_gone and rollout.deletions is ChangeTime.LAST:
            later += 1
        else:
            counts[stage] += 1
    stages = tuple(
        StagePlan(
            stage=found.stage,
            clusters=found.clusters,
            at_once=number_of(found.stage.max_concurrency, len(found.clusters), least=1),
            changes=counts[found.stage.name],
            pinned=rollout.pins.get(found.stage.name, ""),
        )
        for found in course.layout.stages
    )
    return RolloutPlan(
        name=rollout.name,
        stages=stages,
        is_sound=course.layout.is_sound,
        on_new_commit=rollout.on_new_commit,
        deletions=rollout.deletions,
        placement=rollout.placement,
        later_deletions=later,
        placements=sum(rollout.name in selection.rollouts.get(placed.identity, ()) for placed in plan.placements),
        is_merge=True,
        is_new=is_new,
    )
