"""Changes of a body by override policies for one cluster. Independent of placement."""

from reconciler.stages.overrides.apply import FieldOverride, apply_quiet_rules, apply_rules
from reconciler.stages.overrides.quiet import are_quiet, changing_quietly, may_add_fields
from reconciler.stages.overrides.replicas import ReplicaOverrides, of_replicas
from reconciler.stages.overrides.select import OverrideIndex, SelectedRule

__all__ = [
    "FieldOverride",
    "OverrideIndex",
    "ReplicaOverrides",
    "SelectedRule",
    "apply_quiet_rules",
    "apply_rules",
    "are_quiet",
    "changing_quietly",
    "may_add_fields",
    "of_replicas",
]
