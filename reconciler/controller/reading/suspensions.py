"""A person's order to stop writing, as holds on changes. Works without Git; may expire by itself.

Scopes: `fleet`, `cluster NAME`, or a subject in the common form (`Deployment demo/web`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from reconciler.api.ledger import SuspensionRecord
from reconciler.api.plan import Change, Plan
from reconciler.observations import moment_of
from reconciler.placement import closed_by_order
from reconciler.planner import Round, held_by_former_mode, held_by_windows, waves_without
from reconciler.policy import OBSERVED, closed_clusters


def closed_by(suspensions: Iterable[SuspensionRecord]) -> dict[str, str]:
    """Return the reason of each write block, by scope."""
    return {found.scope: _words(found) for found in suspensions}


def restrained(planned: Round, suspensions: Iterable[SuspensionRecord], now: str) -> Round:
    """The round as far as persons allow it: suspensions in force, closed windows, a fleet that is only observed.

    `now`: RFC 3339.
    """
    schedule, fleet, moment = planned.schedule, planned.schedule.fleet, moment_of(now)
    plan, former = suspend(planned.plan, suspensions), planned.guards.former_windows
    if OBSERVED in former and not fleet.settings.observe_only:
        plan = held_by_former_mode(plan)
    closed = closed_clusters(fleet.settings.windows, fleet.clusters.values(), moment, former)
    plan = held_by_windows(plan, closed, {identity for identity, _ in schedule.ticked})
    if fleet.settings.observe_only:
        plan = replace(plan, waves=())
    return replace(planned, plan=plan)


def suspend(plan: Plan, suspensions: Iterable[SuspensionRecord]) -> Plan:
    """The plan with every change held that a suspension covers."""
    closed = closed_by(suspensions)
    if not closed:
        return plan
    changes = tuple(_held(change, closed) for change in plan.changes)
    return replace(plan, changes=changes, waves=waves_without(plan.waves, changes))


def _held(change: Change, closed: Mapping[str, str]) -> Change:
    return replace(change, hold=change.hold or closed_by_order(closed, change.identity, change.cluster))


def _words(found: SuspensionRecord) -> str:
    who = f" by {found.who}" if found.who else ""
    until = f" until {found.until}" if found.until else ""
    reason = f": {found.reason}" if found.reason else ""
    return f"{found.scope} is suspended{who}{until}{reason}"
