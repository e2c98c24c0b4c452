"""The plan of a rollout's stages, as a review shows it."""

from __future__ import annotations

from msgspec import Struct

from reconciler.model.rollouts.progress import Progress
from reconciler.model.rollouts.rollout import OnNewCommit, Stage, When


class StagePlan(Struct, frozen=True, kw_only=True):
    """A stage with its clusters in the order of their turns.

    `at_once`: number of clusters that change at once. `changes`: number of a plan's changes in it, without deletions
    after the last stage. `pinned`: the revision that a person pinned it to, or empty.
    """

    stage: Stage
    clusters: tuple[str, ...]
    at_once: int
    changes: int = 0
    pinned: str = ""


class RolloutPlan(Struct, frozen=True, kw_only=True):
    """The plan of the stages of one Rollout.

    `is_sound` False: the stage of a cluster is ambiguous, and nothing begins. `later_deletions`: number of deletions
    after the last stage. `placements`: number of changed placements of its templates. `progress`: its present state;
    None: unknown, since no cluster was asked. `is_merge`: the plan compares two revisions, and describes the newer one.
    `is_new`: the older one has no Rollout of this name.
    """

    name: str
    stages: tuple[StagePlan, ...]
    is_sound: bool = True
    on_new_commit: OnNewCommit = OnNewCommit.RESTART
    deletions: When = When.LAST
    placement: When = When.NOW
    later_deletions: int = 0
    placements: int = 0
    progress: Progress | None = None
    is_merge: bool = False
    is_new: bool = False

    @property
    def changes(self) -> int:
        """Return the number of changes in its stages."""
        return sum(found.changes for found in self.stages) + self.later_deletions

    @property
    def superseded(self) -> str:
        """Return the revision under way that the newer one replaces or waits for; empty: none."""
        found = self.progress
        return found.release if found is not None and self.is_merge and self.changes and not found.is_done else ""
