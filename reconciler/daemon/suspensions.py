"""A person's order to stop writing, as holds on changes. Works without Git; expires by itself when told so.

Scopes: `fleet`, `cluster NAME`, or a subject as it is written everywhere (`Deployment demo/web`).
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from reconciler.engine import Round
from reconciler.model.ledger import SuspensionRecord
from reconciler.model.plan import Change, Plan
from reconciler.stages.order import waves_without

FLEET = "fleet"


def restrained(planned: Round, suspensions: Iterable[SuspensionRecord]) -> Round:
    """The round as far as a person's orders allow it: suspensions that are in force, a fleet that is only observed."""
    plan = suspend(planned.plan, suspensions)
    if planned.decision.fleet.settings.observe_only:
        plan = replace(plan, waves=())
    return replace(planned, plan=plan)


def suspend(plan: Plan, suspensions: Iterable[SuspensionRecord]) -> Plan:
    """The plan with every change held that a suspension covers."""
    by_scope = {found.scope: found for found in suspensions}
    if not by_scope:
        return plan
    changes = tuple(_held(change, by_scope) for change in plan.changes)
    return replace(plan, changes=changes, waves=waves_without(plan.waves, changes))


def _held(change: Change, by_scope: dict[str, SuspensionRecord]) -> Change:
    for scope in (FLEET, f"cluster {change.cluster}", str(change.identity)):
        found = by_scope.get(scope)
        if found is not None:
            return replace(change, held=change.held or _words(found))
    return change


def _words(found: SuspensionRecord) -> str:
    who = f" by {found.who}" if found.who else ""
    until = f" until {found.until}" if found.until else ""
    reason = f": {found.reason}" if found.reason else ""
    return f"{found.scope} is suspended{who}{until}{reason}"
