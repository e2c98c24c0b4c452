"""What the revisions in force make of a decision: which revision each copy is rendered from, and what stays for now."""

from reconciler.stages.staging.changed import changed_by_staging
from reconciler.stages.staging.differing import differing, stages_the_same
from reconciler.stages.staging.selected import selected_of
from reconciler.stages.staging.staged import Standing, staged

__all__ = [
    "Standing",
    "changed_by_staging",
    "differing",
    "selected_of",
    "stages_the_same",
    "staged",
]
