"""The schedule as rollouts leave it: the revision that each copy is rendered from."""

from reconciler.staging.differing import changed_by_staging, differing
from reconciler.staging.selected import SelectedTables, selected_of
from reconciler.staging.staged import staged
from reconciler.staging.standing import ClusterSights, Records, Revisions, RolloutStatus, begun_with, layouts_of, stand

__all__ = [
    "ClusterSights",
    "Records",
    "Revisions",
    "RolloutStatus",
    "SelectedTables",
    "begun_with",
    "changed_by_staging",
    "differing",
    "layouts_of",
    "selected_of",
    "staged",
    "stand",
]
