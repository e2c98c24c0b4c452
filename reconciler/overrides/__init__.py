"""Changes that override policies make in a body for one cluster."""

from reconciler.overrides.apply_rules import (
    FieldOverride,
    OverrideIndex,
    ReplicaOverrides,
    SelectedRule,
    SentReplicas,
    apply_quiet_rules,
    apply_rules,
    are_quiet,
    changing_quietly,
    may_add_fields,
    of_replicas,
)
