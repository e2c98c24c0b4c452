"""The schedules of two revisions, the objects that may differ between them, and the stages of a plan.

Source: design#offline-diff: the previous placement of head is the result of base; design#one-plan. Placement and marks
are never staged (ADR 18). The caller adds the state of a rollout (`RolloutPlan.progress`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from operator import itemgetter
from typing import Final

from msgspec.structs import replace

from reconciler.api.binding import Binding, PreviousPlacement
from reconciler.api.clusters import Observations
from reconciler.api.fleet import Fleet
from reconciler.api.plan import Action, Cause, Change, Engine, Plan
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import RolloutPlan, RolloutProgress, StagePlan, Staging
from reconciler.api.rollouts import ChangeTime, Layout, Rollout, number_of
from reconciler.diff import overall_cause
from reconciler.kinds.registry import Registry
from reconciler.ownership import RELEASE
from reconciler.planner.members_after import held_back, is_written
from reconciler.render import RenderTables, changed_identities, render_all
from reconciler.rollouts import lay_out, rollout_documents, selected_of
from reconciler.scheduler import Schedule, ScheduleTables, package_mates, schedule_fleet, without_definition


def as_offline_change(change: Change, base: Fleet, head: Fleet) -> Change:
    """Return a change as an offline comparison shows it: with an equal template, its cause is an override."""
    change = replace(change, engine=Engine.OFFLINE)
    was, is_now = base.templates.get(change.identity), head.templates.get(change.identity)
    if change.action not in (Action.UPDATE, Action.REPLACE) or was is None or is_now is None:
        return change
    if was.digest != is_now.digest or base.settings != head.settings:
        return change
    fields = tuple(
        replace(field, cause=Cause.OVERRIDE)
        # A hook is replaced since its package changed.
        if field.cause in (Cause.DECLARED, Cause.REMOVED) and not field.path.endswith(RELEASE)
        else field
        for field in change.fields
    )
    return replace(change, fields=fields, cause=overall_cause(fields) if not change.held else change.cause)


def previous_of(bindings: Mapping[Identity, Binding]) -> dict[Identity, PreviousPlacement]:
    """Return bindings as the previous placement of another schedule."""
    return {
        identity: PreviousPlacement(identity=identity, targets=binding.targets, affinity_name=binding.affinity_name)
        for identity, binding in bindings.items()
        if binding.targets
    }


Placed = Mapping[Identity, PreviousPlacement]
_Passage = tuple[Schedule, Schedule, Observations, Placed, frozenset[Identity] | None]


def passage_between(base: Fleet, head: Fleet, observations: Observations, now: str, interpreters: Registry) -> _Passage:
    """Schedule both revisions, the second from the state that the first leaves behind.

    Objects of the first count as placed. Returns both schedules, the observations and previous placements of the
    second, and the objects that may have to change (None: any).
    """
    tables = ScheduleTables()
    base = replace(base, frozen=tuple(reach for reach in base.frozen if not reach.is_new))
    before = schedule_fleet(base, observations, now, interpreters=interpreters, tables=tables)
    placed = previous_of(before.bindings)
    observed = replace(observations, previous={**observations.previous, **placed})
    after = schedule_fleet(head, observed, now, interpreters=interpreters, tables=tables)
    changed = tables.changed
    # The remaining copies of an owner keep its dependencies; without any, copies do not matter.
    copies = _left_behind(before, after, changed)
    if copies:
        after = schedule_fleet(head, observed, now, interpreters=interpreters, copies=copies, tables=tables)
        changed = {*changed, *tables.changed} if changed is not None and tables.changed is not None else None
    only: frozenset[Identity] | None = None
    old, new = base.settings, head.settings
    if (old.name, old.previous_names) == (new.name, new.previous_names):
        # Equal objects are in sync already, unless they wait for something or their kind is not served.
        due = changed_identities(before, after, changed) | held_back(after) | without_definition(after)
        only = frozenset(due | package_mates(before.packaged, due) | package_mates(after.packaged, due))
    return before, after, observed, placed, only


def _left_behind(
    before: Schedule, after: Schedule, changed: Collection[Identity] | None
) -> dict[Identity, frozenset[str]]:
    """Return all clusters of templates that leave copies behind in clusters of their old placement."""
    gone: dict[Identity, set[str]] = {}
    for identity in before.bindings if changed is None else changed:
        was, is_now = before.bindings.get(identity), after.bindings.get(identity)
        if was is not None and is_now is not None and was.targets != is_now.targets:
            gone[identity] = set(was.clusters) - set(is_now.clusters)
    copies: dict[Identity, frozenset[str]] = {}
    # Unrendered objects were not written either.
    for manifest in render_all(RenderTables(before), gone.keys()).manifests if gone else ():
        identity, cluster = manifest.identity, manifest.cluster
        if is_written(before, identity, cluster):
            copies[identity] = copies.get(identity, frozenset()) | {cluster}
    return {identity: clusters for identity, clusters in copies.items() if clusters & gone[identity]}


_STAGED: Final = frozenset(
    {Cause.DECLARED, Cause.REMOVED, Cause.OVERRIDE, Cause.ADOPTION, Cause.DEPENDENCY, Cause.SIDE_EFFECT}
)
"""Placement, policies and marks are those of the newest revision; drift is put back at any time."""


def with_stages(plan: Plan, before: Schedule, after: Schedule) -> Plan:
    """Return the plan with `rollouts` and the `stage` of changes by the newer revision; itself without Rollouts."""
    old = {rollout.name for rollout in before.fleet.rollouts}
    names = old | {rollout.name for rollout in after.fleet.rollouts}
    documents = rollout_documents(after.fleet, dict.fromkeys(names, before.fleet))
    if not documents:
        return plan
    rollouts = tuple(documents[name] for name in sorted(documents))
    # What the newer revision lacks goes by its Rollouts as well, if only it has one.
    past, in_force = (replace(each, fleet=replace(each.fleet, rollouts=rollouts)) for each in (before, after))
    selection = selected_of(in_force)
    known = selection if before is after else selected_of(past)
    layouts = [(rollout, lay_out(rollout, after.fleet.clusters)) for rollout in rollouts]
    # By Rollout and cluster the Rollout, and the number of the stage.
    places = {
        (rollout.name, name): (number, rollout)
        for rollout, layout in layouts
        for number, stage in enumerate(layout.stages)
        for name in stage.clusters
    }
    changes = tuple(
        # What only left its Rollout changes at once.
        _staged(change, places, (selection if one in after.bindings else known).rollouts.get(one, ()))
        for change in plan.changes
        for one in (change.identity,)
        # Two Rollouts that speak for one object leave it as it is.
        if before is after or one not in selection.tied or change.action in (Action.DELETE, Action.RELEASE)
    )
    problems = (each for one in after.fleet.rollouts for each in lay_out(one, after.fleet.clusters).problems)
    return replace(
        plan,
        changes=changes,
        rollouts=tuple(
            _with_rollout_words(rollout, layout, changes, plan, selection, is_new=rollout.name not in old)
            for rollout, layout in sorted(layouts, key=lambda one: one[0].name)
        ),
        problems=tuple(sorted({*plan.problems, *problems, *selection.problems})),
    )


def _staged(change: Change, places: Mapping[tuple[str, str], tuple[int, Rollout]], names: Iterable[str]) -> Change:
    stages = [places[name, change.cluster] for name in names if (name, change.cluster) in places]
    if not stages:
        return change
    # Several: a dependency, which goes with the first of them, or a definition, which goes with the last.
    chosen = max if change.identity.kind == "CustomResourceDefinition" else min
    number, rollout = chosen(stages, key=itemgetter(0))
    if change.cause not in _STAGED:
        if change.cause is not Cause.PLACEMENT or rollout.placement is ChangeTime.NOW:
            return change
        number = len(rollout.stages) - 1
    return replace(change, stage=f"{rollout.name}/{rollout.stages[number].name}")


def _with_rollout_words(
    rollout: Rollout, layout: Layout, changes: tuple[Change, ...], plan: Plan, selection: Staging, *, is_new: bool
) -> RolloutPlan:
    counts, later = Counter[str](), 0
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
            stage=one.stage,
            clusters=one.clusters,
            at_once=number_of(one.stage.max_concurrency, len(one.clusters), least=1),
            changes=counts[one.stage.name],
            pinned=rollout.pins.get(one.stage.name, ""),
        )
        for one in layout.stages
    )
    return RolloutPlan(
        name=rollout.name,
        stages=stages,
        is_sound=layout.is_sound,
        on_new_commit=rollout.on_new_commit,
        deletions=rollout.deletions,
        placement=rollout.placement,
        later_deletions=later,
        placements=sum(rollout.name in selection.rollouts.get(placed.identity, ()) for placed in plan.placements),
        is_merge=True,
        is_new=is_new,
    )


def with_progress(plan: Plan, live: Iterable[Plan]) -> Plan:
    """Return the plan with the state of its Rollouts, as far as plans against the clusters know it."""
    known = {each.name: each.progress for one in live for each in one.rollouts if each.progress is not None}
    if not known:
        return plan
    return replace(plan, rollouts=tuple(replace(one, progress=known.get(one.name)) for one in plan.rollouts))


def with_standing(plan: Plan, schedule: Schedule, progress: Iterable[RolloutProgress]) -> Plan:
    """Return the plan of the clusters with the stages of its Rollouts, and their state."""
    staged, known = with_stages(plan, schedule, schedule), {one.rollout: one for one in progress}
    rollouts = tuple([replace(each, progress=known.get(each.name), is_merge=False) for each in staged.rollouts])
    return replace(staged, rollouts=rollouts)
