"""Capacity of a cluster in replicas. Independent of policies."""

from reconciler.stages.placement.room.capacity import FleetRoom, RoomOf
from reconciler.stages.placement.room.estimate import admits, fit, free_room
from reconciler.stages.placement.room.on_its_way import Observed, observed_pods, on_its_way
from reconciler.stages.placement.room.packing import fits_together, sets_that_fit
from reconciler.stages.placement.room.refusals import NAMES_MAX, causes, refusal_of_all, remedies
from reconciler.stages.placement.room.wants_capacity import policy_wants_capacity, wants_capacity

__all__ = [
    "NAMES_MAX",
    "FleetRoom",
    "Observed",
    "RoomOf",
    "admits",
    "causes",
    "fit",
    "fits_together",
    "free_room",
    "observed_pods",
    "on_its_way",
    "policy_wants_capacity",
    "refusal_of_all",
    "remedies",
    "sets_that_fit",
    "wants_capacity",
]
