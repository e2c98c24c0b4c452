"""From a decision to what rendering rests on."""

from __future__ import annotations

from reconciler.stages.decide import Decision
from reconciler.stages.override_select import OverrideIndex
from reconciler.stages.render import RenderInputs
from reconciler.stages.scale_targets import scale_targets


def render_inputs(decision: Decision) -> RenderInputs:
    """What rendering the decision needs, override policies compiled."""
    return RenderInputs(
        fleet=decision.fleet,
        bindings=decision.bindings,
        policies=decision.policies,
        overrides=OverrideIndex(decision.fleet.overrides, decision.fleet.clusters),
        yielded=scale_targets(decision.fleet, decision.bindings),
    )
