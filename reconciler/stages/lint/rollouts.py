"""Clusters in no stage or two stages of a Rollout, and templates with an ambiguous Rollout."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.model.fleet import Fleet
from reconciler.model.problem import Problem
from reconciler.stages.rollouts import Selection, lay_out


def lint_rollouts(fleet: Fleet, selection: Selection) -> Iterator[Problem]:
    """Yield the problems of the layouts of all Rollouts, and of their selections."""
    for rollout in fleet.rollouts:
        yield from lay_out(rollout, fleet.clusters).problems
    yield from selection.problems
