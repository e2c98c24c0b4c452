"""Which Rollouts speak for what a decision binds."""

from __future__ import annotations

from reconciler.model.refs import Identity
from reconciler.stages.decision import Decision
from reconciler.stages.rollouts import Selection, select


def selected_of(decision: Decision) -> Selection:
    """The Rollouts of each template of a decision. A dependency goes with those that bring it; a Namespace with none.

    Source: ADR 18.
    """
    fleet = decision.fleet
    if not fleet.rollouts:
        return Selection()
    governing = {identity: policy.ref for identity, policy in decision.policies.items()}
    owners: dict[Identity, tuple[Identity, ...]] = {
        identity: binding.owners
        for identity, binding in decision.bindings.items()
        if binding.owners and identity[:2] != ("", "Namespace")
    }
    return select(fleet, governing, owners)
