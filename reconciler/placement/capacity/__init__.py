"""Free capacity of clusters for replicas."""

from reconciler.placement.capacity.estimate import NAMES_MAX, admits, causes, fit, free_room, refusal_of_all, remedies
from reconciler.placement.capacity.free_capacity import (
    ClusterRoom,
    FleetRoom,
    Observed,
    RoomOf,
    pending_writes,
    policy_wants_capacity,
    wants_capacity,
)
