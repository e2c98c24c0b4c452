"""The health probe of a rollout's copies in one cluster: the gate of their stage is met, or the reason why not.

Source: Open Cluster Management, RolloutStrategy: conditions of applied objects; Karmada's proposal of staged rollouts:
requireHealthy and requiredConditions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from reconciler.model.refs import Identity
from reconciler.model.rollouts.record import Met, Sight, Unmet
from reconciler.model.rollouts.rollout import Check, ConditionCheck, ExpressionCheck, Gate, ObjectName
from reconciler.model.tree import JsonObject, dig


class Copy(NamedTuple):
    """A copy in a cluster. `is_in_step`: it is as in the active revision. `why`: why it is not healthy."""

    identity: Identity
    is_in_step: bool
    is_healthy: bool
    why: str
    body: JsonObject


def sight_of(
    gate: Gate, revision: str, copies: Iterable[Copy], objects: Mapping[ObjectName, JsonObject], since: str = ""
) -> Sight:
    """Return whether all copies are in step with the revision and the gate is met.

    `objects`: the found objects that its conditions name. `since`: RFC 3339 of the beginning of this state; empty:
    unknown.
    """
    found = sorted(copies, key=lambda copy: copy.identity)
    for copy in found:
        if not copy.is_in_step:
            return Unmet(f"{copy.identity} is not as it is to be yet")
    for copy in found if gate.healthy else ():
        if not copy.is_healthy:
            return Unmet(f"{copy.identity}: {copy.why or 'it is not healthy'}")
    for check in gate.checks:
        why = _unmet(check, found, objects)
        if why:
            return Unmet(why)
    return Met(revision, since)


def named_objects(gate: Gate) -> tuple[ObjectName, ...]:
    """The objects that the conditions of a gate name, beside the copies."""
    return tuple(check.of for check in gate.checks if check.of is not None)


def _unmet(check: Check, copies: Iterable[Copy], objects: Mapping[ObjectName, JsonObject]) -> str:
    """Return the reason why a condition does not hold, empty if it does."""
    if isinstance(check, ExpressionCheck):
        return f"the expression about {check.of} cannot be evaluated"
    if check.of is not None:
        body = objects.get(check.of)
        return f"{check.of} is not there" if body is None else _unlike(check, str(check.of), body)
    told = [(str(copy.identity), copy.body) for copy in copies]
    having = [(name, body) for name, body in told if _status(body, check.condition) is not None]
    if not having:
        return f"no copy has the condition {check.condition} yet"
    return next(filter(None, (_unlike(check, name, body) for name, body in having)), "")


def _unlike(check: ConditionCheck, name: str, body: JsonObject) -> str:
    status = _status(body, check.condition)
    if status == check.status:
        return ""
    shown = "not there yet" if status is None else status
    return f"the condition {check.condition} of {name} is {shown}, not {check.status}"


def _status(body: JsonObject, condition: str) -> str | None:
    """Return the status of a condition; None if missing, or about an older generation of the object."""
    conditions, generation = dig(body, "status", "conditions"), dig(body, "metadata", "generation")
    for found in conditions if isinstance(conditions, list | tuple) else ():
        if dig(found, "type") == condition:
            seen = dig(found, "observedGeneration")
            is_old = isinstance(seen, int) and isinstance(generation, int) and seen < generation
            status = dig(found, "status")
            return status if isinstance(status, str) and not is_old else None
    return None
