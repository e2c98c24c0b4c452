"""The need of a store for the free capacity of members: reading nodes and pods is the dearest part of a look."""

from __future__ import annotations

from reconciler.model.fleet import Fleet
from reconciler.model.policy import PropagationPolicy


def wants_capacity(fleet: Fleet) -> bool:
    """Return whether any policy needs it."""
    return any(map(policy_wants_capacity, fleet.propagation))


def policy_wants_capacity(policy: PropagationPolicy) -> bool:
    """Return whether the policy divides by free capacity, or places a gang, or can fail over."""
    return (
        policy.placement.scheduling.division.needs_capacity
        or policy.placement.scheduling.gang
        or policy.application_failover is not None
    )
