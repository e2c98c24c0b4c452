"""What the revisions in force make of a decision: which revision each copy is rendered from, and what stays for now."""

from reconciler.stages.staging.changed import changed_by_staging
from reconciler.stages.staging.differing import differing, stages_the_same
from reconciler.stages.staging.followed import as_told, to_begin, until_told, with_told
from reconciler.stages.staging.reported import (
    Reported,
    Sights,
    pending_of,
    reported_of,
    same,
    with_reports,
    with_told_sights,
)
from reconciler.stages.staging.selected import SelectedTables, selected_of
from reconciler.stages.staging.staged import staged
from reconciler.stages.staging.standing import Records, Revisions, Seen, Standing, begun_with, layouts_of, stand

__all__ = [
    "Records",
    "Reported",
    "Revisions",
    "Seen",
    "SelectedTables",
    "Sights",
    "Standing",
    "as_told",
    "begun_with",
    "changed_by_staging",
    "differing",
    "layouts_of",
    "pending_of",
    "reported_of",
    "same",
    "selected_of",
    "staged",
    "stages_the_same",
    "stand",
    "to_begin",
    "until_told",
    "with_reports",
    "with_told",
    "with_told_sights",
]
