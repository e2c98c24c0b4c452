"""The stages of a rollout with the clusters that are in them."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.problem import Problem
from reconciler.model.rollouts.rollout import Stage


class StageLayout(Struct, frozen=True):
    """A stage and its clusters in the order of their turns."""

    stage: Stage
    clusters: tuple[str, ...]


class Layout(Struct, frozen=True, kw_only=True):
    """The stages in order. `is_sound` False: it is not clear where a cluster belongs, and nothing begins."""

    stages: tuple[StageLayout, ...]
    outside: tuple[str, ...] = ()
    """Clusters that are in no stage."""
    problems: tuple[Problem, ...] = ()
    is_sound: bool = True

    @property
    def stage_of(self) -> dict[str, StageLayout]:
        """The stage of each cluster."""
        return {cluster: found for found in self.stages for cluster in found.clusters}
