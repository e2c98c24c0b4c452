"""Changes in clusters that windows of the Fleet document close: they wait until one opens.

What a tick or a person moves is not the store's doing and never waits; drift is put back unless a window says no.
Source: ADR 18.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from msgspec.structs import replace

from reconciler.model.plan import Cause, Change, Plan
from reconciler.model.refs import Identity
from reconciler.stages.plan.order import waves_without
from reconciler.stages.windows import Closed

CLOSED = "a window of the fleet is closed"
"""The beginning of such a hold's reason."""


def held_by_windows(plan: Plan, closed: Mapping[str, Closed], moved: Collection[Identity]) -> Plan:
    """The plan with every change held that a closed window covers. `moved`: what a tick or a person moves."""
    if not closed:
        return plan
    changes = tuple([_held(change, closed.get(change.cluster), moved) for change in plan.changes])
    return replace(plan, changes=changes, waves=waves_without(plan.waves, changes))


def _held(change: Change, closed: Closed | None, moved: Collection[Identity]) -> Change:
    if closed is None or change.held is not None:
        return change
    if change.cause is Cause.DRIFT and closed.heals_drift:
        return change
    if change.cause is Cause.PLACEMENT and change.identity in moved:
        return change
    return replace(change, held=f"{CLOSED} until {closed.until}" if closed.until else CLOSED)
