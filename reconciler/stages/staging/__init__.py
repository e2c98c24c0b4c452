"""The effect of active revisions on a schedule: each copy's revision, and objects that stay for now."""

from reconciler.stages.staging.changed import changed_by_staging
from reconciler.stages.staging.differing import differing, stages_the_same
from reconciler.stages.staging.selected import SelectedTables, selected_of
from reconciler.stages.staging.staged import staged
from reconciler.stages.staging.standing import Records, Revisions, Seen, Standing, begun_with, layouts_of, stand

__all__ = [
    "Records",
    "Revisions",
    "Seen",
    "SelectedTables",
    "Standing",
    "begun_with",
    "changed_by_staging",
    "differing",
    "layouts_of",
    "selected_of",
    "staged",
    "stages_the_same",
    "stand",
]
