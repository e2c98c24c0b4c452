"""The staged changes in a comparison of two revisions."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from reconciler.model.plan import Plan
from reconciler.model.rollouts.progress import Progress
from reconciler.stages.decision import Decision
from reconciler.stages.revisions.preview import Side, preview
from reconciler.stages.staging import selected_of


def with_stages(plan: Plan, before: Decision, after: Decision) -> Plan:
    """The plan of a comparison with the stages of the newer revision; as it is where that has no Rollout."""
    if not after.fleet.rollouts:
        return plan
    return preview(plan, Side(before.fleet, selected_of(before)), Side(after.fleet, selected_of(after)))


def with_progress(plan: Plan, live: Iterable[Plan]) -> Plan:
    """Return the plan with the state of its Rollouts, as far as plans against the clusters know it."""
    known = {found.name: found.progress for one in live for found in one.rollouts if found.progress is not None}
    if not known:
        return plan
    return replace(plan, rollouts=tuple(replace(found, progress=known.get(found.name)) for found in plan.rollouts))


def with_standing(plan: Plan, decision: Decision, progress: Iterable[Progress]) -> Plan:
    """Return the plan of the clusters with the stages of its Rollouts, and their state."""
    if not decision.fleet.rollouts:
        return plan
    side, known = Side(decision.fleet, selected_of(decision)), {found.rollout: found for found in progress}
    found = preview(plan, side, side)
    rollouts = tuple([replace(each, progress=known.get(each.name), is_merge=False) for each in found.rollouts])
    return replace(found, rollouts=rollouts)
