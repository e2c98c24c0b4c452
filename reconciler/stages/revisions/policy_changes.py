"""Differences between two versions of a propagation policy, by the fields that people write.

The model holds policies of all API groups in one form, so values are shown in that form, and places as Karmada's group
and the newer ACK group spell them.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final

from msgspec import Struct

from reconciler.model.plan import MISSING, FieldChange
from reconciler.model.policy import PropagationPolicy
from reconciler.model.tree import Json

_FIELDS: Final[Mapping[str, str]] = {
    "flavor": "apiVersion",
    "selectors": "spec.resourceSelectors",
    "placement.affinity": "spec.placement.clusterAffinity",
    "placement.terms": "spec.placement.clusterAffinities",
    "placement.tolerations": "spec.placement.clusterTolerations",
    "placement.spread": "spec.placement.spreadConstraints",
    "placement.scheduling.division": "spec.placement.replicaScheduling",
    "placement.scheduling.static_weights": "spec.placement.replicaScheduling.weightPreference.staticWeightList",
    "placement.scheduling.gang": "spec.placement.replicaScheduling.customSchedulingType",
    "keep": "spec.preserveResourcesOnDeletion",
    "propagate_deps": "spec.propagateDeps",
    "priority": "spec.priority",
    "dependent_overrides": "spec.dependentOverrides",
    "application_failover": "spec.failover.application",
    "conflict_resolution": "spec.conflictResolution",
    "suspension": "spec.suspension",
    "priority_class": "spec.schedulePriority",
    "ecs_provision": "spec.autoScaling.ecsProvision",
    "affinity_mode": "metadata.annotations['fleet.reconciler/affinity-mode']",
    "fail_back": "metadata.annotations['fleet.reconciler/fail-back']",
    "brings": "metadata.annotations['fleet.reconciler/bring']",
}


def policy_changes(before: PropagationPolicy, after: PropagationPolicy) -> tuple[FieldChange, ...]:
    """The fields that differ, sorted by path; a value that was not written is its default."""
    found = []
    for attribute, path in _FIELDS.items():
        was, is_now = (_plain(_at(policy, attribute)) for policy in (before, after))
        if was != is_now:
            found.append(FieldChange(path=path, before=was, after=is_now))
    return tuple(sorted(found, key=lambda change: change.path))


def _at(policy: PropagationPolicy, attribute: str) -> Any:
    value: Any = policy
    for name in attribute.split("."):
        value = getattr(value, name)
    return value


def _plain(value: Any) -> Json:
    """Return the value as JSON without places in files and without unset fields; MISSING for nothing."""
    if isinstance(value, Struct):
        fields = {name: _plain(getattr(value, name)) for name in value.__struct_fields__ if name != "source"}
        return {_camel(name): found for name, found in fields.items() if found is not MISSING} or MISSING
    if isinstance(value, (frozenset, set)):
        return sorted(map(str, value)) or MISSING
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value] or MISSING
    if isinstance(value, Enum):
        return str(value)
    return MISSING if value in (None, "") else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
