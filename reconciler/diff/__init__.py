"""Comparison of live objects with their manifests: three-way diff, ownership, immutable fields."""

from reconciler.diff.canonical import sendable
from reconciler.diff.compare import Comparer, Comparison, overall_cause
from reconciler.diff.foreign import refused_beside
from reconciler.diff.immutable import as_replacement, refused_in_place
from reconciler.diff.ownership_index import Copies, FleetCopies, OwnershipIndex
from reconciler.diff.three_way import difference_from, dry_run_changes, is_write_needed
from reconciler.diff.trees import Bodies, Difference, applied_fields, desired_of, tree_changes
