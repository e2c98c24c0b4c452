"""The schedules of two revisions, and the objects that may differ between them.

Source: design#offline-diff: the previous placement of head is the result of base; design#one-plan.

Differences between two versions of a propagation policy, by the fields that people write.

The model holds policies of all API groups in one form, so values are shown in that form, and places as Karmada's group
and the newer ACK group spell them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from operator import attrgetter
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import replace

from reconciler.api.binding import Binding, PreviousPlacement
from reconciler.api.clusters import Observations
from reconciler.api.content import Json
from reconciler.api.fleet import Fleet
from reconciler.api.plan import MISSING, Action, Cause, Change, Engine, FieldChange, Plan
from reconciler.api.policies import PropagationPolicy
from reconciler.api.problem import Severity, with_problems
from reconciler.api.refs import Identity
from reconciler.api.rollout_progress import RolloutProgress
from reconciler.diff import overall_cause
from reconciler.kinds.registry import Registry
from reconciler.planner.preview import Side, preview
from reconciler.planner.written import held_back, is_written
from reconciler.render import changed_identities, render_all, render_inputs
from reconciler.rollouts import lay_out, selected_of
from reconciler.scheduler import Schedule, ScheduleTables, package_mates, schedule_fleet, without_definition

_NAMELESS = "unnamed"


class Passage(Struct, frozen=True, kw_only=True):
    """The schedules of two revisions.

    `observations`: inputs of head's schedule, with the placements of base (`placed`) as the previous ones. `only`:
    objects that may have to change; None: anything.
    """

    before: Schedule
    after: Schedule
    observations: Observations
    placed: Mapping[Identity, PreviousPlacement]
    only: frozenset[Identity] | None

    def told(self, change: Change) -> Change:
        """Return a change as an offline comparison shows it: with an equal template, its cause is an override."""
        change = replace(change, engine=Engine.OFFLINE)
        before, after = self.before.fleet.templates, self.after.fleet.templates
        was, is_now = before.get(change.identity), after.get(change.identity)
        if change.action not in (Action.UPDATE, Action.REPLACE) or was is None or is_now is None:
            return change
        if was.digest != is_now.digest or self.before.fleet.settings != self.after.fleet.settings:
            return change
        fields = tuple(
            replace(field, cause=Cause.OVERRIDE) if field.cause in (Cause.DECLARED, Cause.REMOVED) else field
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


def named_alike(base: Fleet, head: Fleet) -> tuple[Fleet, Fleet]:
    """The revisions with a name each: a store without one takes that of the other, so that both speak of one fleet."""
    old, new = base.settings, head.settings
    other = old.name or new.name or _NAMELESS
    base = base if old.name else replace(base, settings=replace(old, name=other))
    return base, head if new.name else replace(head, settings=replace(new, name=other))


def passage_between(base: Fleet, head: Fleet, observations: Observations, now: str, interpreters: Registry) -> Passage:
    """Schedule both revisions, the second from the state that the first leaves behind.

    Objects of the first count as placed, so that its new unreadable files hold nothing back.
    """
    tables = ScheduleTables()
    base = replace(base, frozen=tuple(reach for reach in base.frozen if not reach.is_new))
    before = schedule_fleet(base, observations, now, interpreters=interpreters, tables=tables)
    placed = previous_of(before.bindings)
    seen = replace(observations, previous={**observations.previous, **placed})
    after = schedule_fleet(head, seen, now, interpreters=interpreters, tables=tables)
    changed = tables.changed
    # The remaining copies of an owner keep its dependencies; without any, copies do not matter.
    copies = _left_behind(before, after, changed)
    if copies:
        after = schedule_fleet(head, seen, now, interpreters=interpreters, copies=copies, tables=tables)
        changed = {*changed, *tables.changed} if changed is not None and tables.changed is not None else None
    only: frozenset[Identity] | None = None
    old, new = base.settings, head.settings
    if (old.name, old.previous_names) == (new.name, new.previous_names):
        # Equal objects are in sync already, unless they wait for something or their kind is not served.
        due = changed_identities(before, after, changed) | held_back(after) | without_definition(after)
        only = frozenset(due | package_mates(before.packaged, due) | package_mates(after.packaged, due))
    return Passage(before=before, after=after, observations=seen, placed=placed, only=only)


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
    for manifest in render_all(render_inputs(before), only=gone.keys()).manifests if gone else ():
        identity, cluster = manifest.identity, manifest.cluster
        if is_written(before, identity, cluster):
            copies[identity] = copies.get(identity, frozenset()) | {cluster}
    return {identity: clusters for identity, clusters in copies.items() if clusters & gone[identity]}


_FIELDS: Final[Mapping[str, str]] = {
    "flavor": "apiVersion",
    "selectors": "spec.resourceSelectors",
    "placement.affinity": "spec.placement.clusterAffinity",
    "placement.terms": "spec.placement.clusterAffinities",
    "placement.tolerations": "spec.placement.clusterTolerations",
    "placement.spread": "spec.placement.spreadConstraints",
    "placement.scheduling.division": "spec.placement.replicaScheduling",
    "placement.scheduling.static_weights": "spec.placement.replicaScheduling.weightPreference.staticWeightList",
    "placement.scheduling.gang": "spec.placement.replicaScheduling.customSchedulingType",
    "keep": "spec.preserveResourcesOnDeletion",
    "propagate_deps": "spec.propagateDeps",
    "priority": "spec.priority",
    "dependent_overrides": "spec.dependentOverrides",
    "application_failover": "spec.failover.application",
    "conflict_resolution": "spec.conflictResolution",
    "suspension": "spec.suspension",
    "priority_class": "spec.schedulePriority",
    "ecs_provision": "spec.autoScaling.ecsProvision",
    "affinity_mode": "metadata.annotations['fleet.reconciler/affinity-mode']",
    "fail_back": "metadata.annotations['fleet.reconciler/fail-back']",
    "brings": "metadata.annotations['fleet.reconciler/bring']",
}


def policy_changes(before: PropagationPolicy, after: PropagationPolicy) -> tuple[FieldChange, ...]:
    """The fields that differ, sorted by path; a value that was not written is its default."""
    found = []
    for attribute, path in _FIELDS.items():
        was, is_now = (_plain(attrgetter(attribute)(policy)) for policy in (before, after))
        if was != is_now:
            found.append(FieldChange(path=path, before=was, after=is_now))
    return tuple(sorted(found, key=lambda change: change.path))


def _plain(value: Any) -> Json:
    """Return the value as JSON without places in files and without unset fields; MISSING for nothing."""
    if isinstance(value, Struct):
        fields = {name: _plain(getattr(value, name)) for name in value.__struct_fields__ if name != "source"}
        named = ((name.partition("_"), found) for name, found in fields.items() if found is not MISSING)
        return {first + rest.title().replace("_", ""): found for (first, _, rest), found in named} or MISSING
    if isinstance(value, (frozenset, set)):
        return sorted(map(str, value)) or MISSING
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value] or MISSING
    if isinstance(value, Enum):
        return str(value)
    return MISSING if value in (None, "") else value


def with_stages(plan: Plan, before: Schedule, after: Schedule) -> Plan:
    """The plan of a comparison with the stages of the newer revision; as it is where that has no Rollout.

    Errors of its Rollouts are errors of the plan.
    """
    if not after.fleet.rollouts:
        return plan
    selection = selected_of(after)
    found = preview(plan, Side(before.fleet, selected_of(before)), Side(after.fleet, selection))
    problems = [problem for each in after.fleet.rollouts for problem in lay_out(each, after.fleet.clusters).problems]
    errors = [one for one in (*problems, *selection.problems) if one.severity is Severity.ERROR]
    return replace(found, problems=with_problems(found.problems, errors))


def with_progress(plan: Plan, live: Iterable[Plan]) -> Plan:
    """Return the plan with the state of its Rollouts, as far as plans against the clusters know it."""
    known = {found.name: found.progress for one in live for found in one.rollouts if found.progress is not None}
    if not known:
        return plan
    return replace(plan, rollouts=tuple(replace(found, progress=known.get(found.name)) for found in plan.rollouts))


def with_standing(plan: Plan, schedule: Schedule, progress: Iterable[RolloutProgress]) -> Plan:
    """Return the plan of the clusters with the stages of its Rollouts, and their state."""
    if not schedule.fleet.rollouts:
        return plan
    side, known = Side(schedule.fleet, selected_of(schedule)), {found.rollout: found for found in progress}
    found = preview(plan, side, side)
    rollouts = tuple([replace(each, progress=known.get(each.name), is_merge=False) for each in found.rollouts])
    return replace(found, rollouts=rollouts)
