"""Free capacity of clusters for replicas."""

from reconciler.placement.capacity.estimate import NAMES_MAX, admits, causes, fit, free_room, refusal_of_all, remedies
from reconciler.placement.capacity.free_capacity import ClusterRoom, FleetRoom, Observed, RoomOf, pending_writes
from reconciler.placement.capacity.node_capacity import policy_wants_capacity, wants_capacity
