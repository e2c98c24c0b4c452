"""The inputs of rendering, from a schedule."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.refs import Identity
from reconciler.stages.decision import Decision
from reconciler.stages.overrides import OverrideIndex
from reconciler.stages.rendering.subject import RenderInputs


def render_inputs(
    decision: Decision, fixed_completions: Mapping[Identity, Mapping[str, int]] | None = None
) -> RenderInputs:
    """Return the inputs of rendering, with override policies compiled.

    `fixed_completions`: by cluster the completions that live parts of divided Jobs were created with.
    """
    return RenderInputs(
        fleet=decision.fleet,
        bindings=decision.bindings,
        policies=decision.policies,
        overrides=OverrideIndex(decision.fleet.overrides, decision.fleet.clusters),
        interpreters=decision.interpreters,
        yielded=decision.yielded,
        fixed_completions=fixed_completions or {},
        definitions=decision.definitions,
        makers=decision.makers,
    )
