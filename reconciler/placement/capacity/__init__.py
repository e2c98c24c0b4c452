"""Free capacity of clusters for replicas."""

from reconciler.placement.capacity.estimate import admits, fit, free_room
from reconciler.placement.capacity.free_capacity import FleetRoom, Observed, RoomOf, observed_pods, pending_writes
from reconciler.placement.capacity.node_capacity import policy_wants_capacity, wants_capacity
from reconciler.placement.capacity.node_refusals import NAMES_MAX, causes, refusal_of_all, remedies
from reconciler.placement.capacity.packing import fits_together, sets_that_fit
