"""Rollouts in a review: the stages of each, and the stage of each change of a plan.

Placement is never staged, and neither are marks: effects of policies are immediate everywhere (ADR 18). Pure, and
without any cluster: the caller adds the state of a rollout (`RolloutPlan.progress`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final, NamedTuple

from msgspec.structs import replace

from reconciler.model.fleet import Fleet
from reconciler.model.plan import Action, Cause, Change, Plan
from reconciler.model.rollouts.amount import number_of
from reconciler.model.rollouts.layout import Layout
from reconciler.model.rollouts.plan import RolloutPlan, StagePlan
from reconciler.model.rollouts.rollout import Rollout, When
from reconciler.stages.rollouts import Selection, lay_out

_STAGED: Final = frozenset(
    {Cause.DECLARED, Cause.REMOVED, Cause.OVERRIDE, Cause.ADOPTION, Cause.DEPENDENCY, Cause.SIDE_EFFECT}
)
"""Placement, policies and marks are those of the newest revision; drift is put back at any time."""


class Side(NamedTuple):
    """A revision, and the Rollout of each of its templates."""

    fleet: Fleet
    selection: Selection


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


def _staged(change: Change, courses: Mapping[str, _Course], before: Selection, after: Selection) -> Change:
    names = after.rollouts.get(change.identity) or before.rollouts.get(change.identity, ())
    found = [courses[name] for name in names if name in courses and change.cluster in courses[name].places]
    if not found:
        return change
    # Several: a dependency, which goes with the first of them.
    course = min(found, key=lambda course: course.places[change.cluster])
    number = course.places[change.cluster]
    if change.cause not in _STAGED:
        if change.cause is not Cause.PLACEMENT or course.rollout.placement is When.NOW:
            return change
        number = len(course.rollout.stages) - 1
    return replace(change, stage=f"{course.rollout.name}/{course.rollout.stages[number].name}")


def _told(
    course: _Course, changes: tuple[Change, ...], plan: Plan, selection: Selection, *, is_new: bool
) -> RolloutPlan:
    rollout, counts, later = course.rollout, Counter[str](), 0
    for change in changes:
        name, _, stage = change.stage.partition("/")
        if name != rollout.name:
            continue
        if _is_last(change, rollout):
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


def _is_last(change: Change, rollout: Rollout) -> bool:
    """Return whether a change is made after the last stage alone."""
    is_gone = change.action in (Action.DELETE, Action.RELEASE) and change.cause is not Cause.PLACEMENT
    return is_gone and rollout.deletions is When.LAST
