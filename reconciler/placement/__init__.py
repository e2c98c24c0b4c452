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
from reconciler.placement.constraints import (
    bare,
    basis_of,
    closed_by,
    closed_by_order,
    closings,
    constraints_in_force,
    is_wished_as_then,
    obstacles,
    suspended_by,
    without_outdated_caps,
)
from reconciler.placement.divide import webster
from reconciler.placement.job_parts import WORK_QUEUE, completions, fixed_share, has_completions, missing_completions
from reconciler.placement.place import SHORTFALLS, place
from reconciler.placement.placement_tables import PlacementTables, concerned_by, essentials
from reconciler.placement.values import LazyReasons, PlacementItem, PlacementRequest, PlacementResult
