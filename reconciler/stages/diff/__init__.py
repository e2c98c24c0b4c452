"""Differences between one live object and its desired state. Independent of policies and placement."""

from reconciler.stages.diff.applied_fields import applied_fields
from reconciler.stages.diff.bodies import Bodies
from reconciler.stages.diff.canonical import sendable
from reconciler.stages.diff.dry_run import dry_run_changes, is_write_needed
from reconciler.stages.diff.immutable import refused_in_place
from reconciler.stages.diff.substitutes import refused_beside
from reconciler.stages.diff.three_way import Desired, Difference, desired_of, difference_from
from reconciler.stages.diff.trees import tree_changes

__all__ = [
    "Bodies",
    "Desired",
    "Difference",
    "applied_fields",
    "desired_of",
    "difference_from",
    "dry_run_changes",
    "is_write_needed",
    "refused_beside",
    "refused_in_place",
    "sendable",
    "tree_changes",
]
