"""Whether free capacity of the members matters for a store: reading nodes and pods is the dearest part of a look."""

from __future__ import annotations

from reconciler.model.fleet import Fleet


def wants_capacity(fleet: Fleet) -> bool:
    """Whether any policy divides by free capacity, or places a gang, or can fail over."""
    return any(
        policy.placement.scheduling.division.needs_capacity
        or policy.placement.scheduling.gang
        or policy.application_failover is not None
        for policy in fleet.propagation
    )
