"""The changes of one revision of the store against another, without any cluster."""

from reconciler.stages.revisions.placement_changes import placement_changes, with_overridden
from reconciler.stages.revisions.revisions import named_alike, passage_between, previous_of
from reconciler.stages.revisions.staged import with_progress, with_stages, with_standing
from reconciler.stages.revisions.unjudged import unjudged
from reconciler.stages.revisions.written import written_by, written_in

__all__ = [
    "named_alike",
    "passage_between",
    "placement_changes",
    "previous_of",
    "unjudged",
    "with_overridden",
    "with_progress",
    "with_stages",
    "with_standing",
    "written_by",
    "written_in",
]
