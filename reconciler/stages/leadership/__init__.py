"""Leader election of a fleet's processes: the content of a Lease, and the time to take it. Independent of requests."""

from reconciler.stages.leadership.election import Leader, Sighting, raised, renewed, sighted, taken_by, wait_for_lease_s
from reconciler.stages.leadership.handover import (
    Handover,
    HandoverTooLarge,
    handover_body,
    handover_name,
    read_handover,
)
from reconciler.stages.leadership.lease import Lease, given_back, lease_body, lease_name, read_lease, read_term

__all__ = [
    "Handover",
    "HandoverTooLarge",
    "Leader",
    "Lease",
    "Sighting",
    "given_back",
    "handover_body",
    "handover_name",
    "lease_body",
    "lease_name",
    "raised",
    "read_handover",
    "read_lease",
    "read_term",
    "renewed",
    "sighted",
    "taken_by",
    "wait_for_lease_s",
]
