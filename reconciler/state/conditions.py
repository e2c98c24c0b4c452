"""Lasting conditions of a copy, evaluated after a round: it holds, it is over, or it was not evaluated.

Only evidence of this round ends anything. A copy that was not compared, since its cluster is unreachable, its kind
cannot be read, a broken file freezes it or it is being written, keeps its known state. Source: design#promise-3;
design#history.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, Generic, TypeVar

from msgspec import Struct

from reconciler.api.clusters import Read
from reconciler.api.plan import HeldBy
from reconciler.api.refs import Copy
from reconciler.state.state_values import (
    Degraded,
    Frozen,
    Held,
    ObjectState,
    Progressing,
    Refused,
    StateFacts,
    UnknownHealth,
)

T = TypeVar("T")
FOR_A_PERSON: Final = frozenset({HeldBy.GUARD, HeldBy.REPLACEMENT})
"""Holds that a person has to confirm or to allow. A suspension has an alert of its own."""


class Holds(Struct, Generic[T], frozen=True):
    """It is so, and how."""

    value: T


class ConditionEnd(Enum):
    """It is not known to be so now."""

    OVER = "over"
    """It was looked at, and is so no longer."""
    NOT_EVALUATED = "not evaluated"
    """Nobody looked: it is as it was known to be."""


Verdict = Holds[T] | ConditionEnd
Condition = Callable[[StateFacts, Copy, "ObjectState | None"], "Holds[T] | ConditionEnd"]
"""Evaluates one copy. The state is None if nominal, or neither there nor desired."""


def is_evaluated(facts: StateFacts, copy: Copy, state: ObjectState | None) -> bool:
    """Return whether the state of a copy comes from a comparison with its desired state."""
    cluster, identity = copy
    if state is not None:
        return state.sync.is_evaluated
    member = facts.members.get(cluster)
    if facts.is_left(cluster) or not isinstance(member, Read) or facts.why_frozen(cluster, identity) is not None:
        return False
    if identity in member.under_way or identity in member.unread:
        return False
    # That nothing is wanted there follows from absence from the store, which a partial reading does not prove.
    return identity in facts.manifests.get(cluster, {}) or facts.schedule.fleet.is_complete


def refused(facts: StateFacts, copy: Copy, state: ObjectState | None) -> Verdict[Refused]:
    """Return whether an object that is not ours blocks it."""
    found = state.sync if state is not None else None
    return Holds(found) if isinstance(found, Refused) else _ending(facts, copy, state)


def held_for_person(facts: StateFacts, copy: Copy, state: ObjectState | None) -> Verdict[Held]:
    """Return whether a change waits until a person confirms or allows it."""
    ending = _ending(facts, copy, state)
    for change in facts.changes.get(copy, ()) if ending is ConditionEnd.OVER else ():
        if (hold := change.hold) is not None and hold.by in FOR_A_PERSON:
            return Holds(Held(hold.by, hold.why))
    return ending


def degraded(facts: StateFacts, copy: Copy, state: ObjectState | None) -> Verdict[Degraded]:
    """Return whether an object is degraded. One that makes progress has not recovered yet."""
    health = state.health if state is not None else None
    if isinstance(health, Degraded):
        return Holds(health)
    if isinstance(health, Progressing | UnknownHealth) or (state is None and not is_evaluated(facts, copy, state)):
        return ConditionEnd.NOT_EVALUATED
    return ConditionEnd.OVER


def frozen(facts: StateFacts, copy: Copy, state: ObjectState | None) -> Verdict[Frozen]:
    """Return whether a broken file freezes it. A complete reading of the store ends it in any case."""
    if state is not None and isinstance(state.sync, Frozen):
        return Holds(state.sync)
    return ConditionEnd.OVER if facts.schedule.fleet.is_complete else _ending(facts, copy, state)


def _ending(facts: StateFacts, copy: Copy, state: ObjectState | None) -> ConditionEnd:
    return ConditionEnd.OVER if is_evaluated(facts, copy, state) else ConditionEnd.NOT_EVALUATED
