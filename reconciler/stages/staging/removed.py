"""Which Rollouts speak for a template that left the store."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.fleet import Template
from reconciler.model.refs import PolicyRef
from reconciler.model.rollouts.rollout import Rollout
from reconciler.stages.rollouts import best_of


def rollouts_of_removed(rollouts: Sequence[Rollout], template: Template, policy: PolicyRef | None) -> tuple[str, ...]:
    """The names of the most specific Rollouts that would speak for it. `policy`: under which it was applied."""
    return best_of(rollouts, template, policy)
