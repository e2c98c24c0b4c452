"""Clusters and replica counts for each template."""

from reconciler.placement.candidates import groups_of, priority_classes, tier_of
from reconciler.placement.capacity import (
    NAMES_MAX,
    admits,
    fit,
    free_room,
    policy_wants_capacity,
    refusal_of_all,
    wants_capacity,
)
from reconciler.placement.closings import closed_by, closed_by_order, closings, obstacles, suspended_by
from reconciler.placement.divide import webster
from reconciler.placement.place import SHORTFALLS, constraints_in_force, place
from reconciler.placement.placement_tables import PlacementTables, concerned_by, essentials
from reconciler.placement.spread import select
from reconciler.placement.values import PlacementItem, PlacementRequest, PlacementResult
