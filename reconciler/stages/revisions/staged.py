"""What of a comparison of two revisions goes over the clusters in stages."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from reconciler.model.plan import Plan
from reconciler.stages.decision import Decision
from reconciler.stages.rollouts import Selection, Side, preview, select


def selection_of(decision: Decision) -> Selection:
    """Which Rollout speaks for which template of a revision that is decided."""
    if not decision.fleet.rollouts:
        return Selection()
    governing = {identity: policy.ref for identity, policy in decision.policies.items()}
    owners = {identity: binding.owners for identity, binding in decision.bindings.items() if binding.owners}
    return select(decision.fleet, governing, owners)


def with_stages(plan: Plan, before: Decision, after: Decision) -> Plan:
    """The plan of a comparison with the stages of the newer revision; as it is where that has no Rollout."""
    if not after.fleet.rollouts:
        return plan
    return preview(plan, Side(before.fleet, selection_of(before)), Side(after.fleet, selection_of(after)))


def with_progress(plan: Plan, live: Iterable[Plan]) -> Plan:
    """The plan with where its Rollouts stand, as far as plans against the clusters know it."""
    known = {found.name: found.progress for one in live for found in one.rollouts if found.progress is not None}
    if not known:
        return plan
    return replace(plan, rollouts=tuple(replace(found, progress=known.get(found.name)) for found in plan.rollouts))
