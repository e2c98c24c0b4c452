"""Which clusters get a template, and how many replicas each. Knows nothing of overrides and live objects."""

from reconciler.stages.placement.affinity_groups import groups_of
from reconciler.stages.placement.candidates import tier_of
from reconciler.stages.placement.closings import closed_by_order, closings, obstacles, suspended_by
from reconciler.stages.placement.divide import webster
from reconciler.stages.placement.place import (
    SHORTFALLS,
    PlacementItem,
    PlacementRequest,
    PlacementResult,
    constraints_in_force,
    place,
)
from reconciler.stages.placement.priority_classes import priority_classes
from reconciler.stages.placement.room import (
    NAMES_MAX,
    admits,
    fit,
    free_room,
    policy_wants_capacity,
    refusal_of_all,
    wants_capacity,
)
from reconciler.stages.placement.tables import PlacementTables, concerned_by, essentials

__all__ = [
    "NAMES_MAX",
    "SHORTFALLS",
    "PlacementItem",
    "PlacementRequest",
    "PlacementResult",
    "PlacementTables",
    "admits",
    "closed_by_order",
    "closings",
    "concerned_by",
    "constraints_in_force",
    "essentials",
    "fit",
    "free_room",
    "groups_of",
    "obstacles",
    "place",
    "policy_wants_capacity",
    "priority_classes",
    "refusal_of_all",
    "suspended_by",
    "tier_of",
    "wants_capacity",
    "webster",
]
