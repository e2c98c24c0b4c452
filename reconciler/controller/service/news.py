"""The store's freshness at the beginning of a term: nothing older than the last leader's active revision.

Source: ADR 20. A clone of a Git URL is as old as its last fetch, and a standby that acted by it would undo reviewed
changes. A plain directory has no order, and is as it is.
"""

from __future__ import annotations

import logging
from enum import Enum, auto
from typing import Final, NamedTuple

from reconciler.api.fleet import Fleet
from reconciler.containment import awaited, fault_fields
from reconciler.controller import timing
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.store_follower import StoreFollower
from reconciler.controller.tasks import in_thread
from reconciler.controller.vitals.logs import Transitions
from reconciler.errors import StoreError, StoreIsOlder

log = logging.getLogger("reconciler")

_ASKED_MAX: Final = 5
"""So often at most: then another process may have what this one lacks."""


class _Age(Enum):
    """The relation of the store's content to a revision."""

    NOT_OLDER = auto()
    OLDER = auto()
    NOT_KNOWN = auto()
    """It was never fetched here: it is newer, or of a branch that was rewritten since."""


async def news(parts: LoopParts, follower: StoreFollower, fleet: Fleet, left: str) -> Fleet:
    """Return the fleet to lead by, after asking the store again. `left`: the last leader's active revision.

    A store that answers without that revision is trusted after as many answers.

    Raises:
        StoreIsOlder: this process must not lead by what it has.
    """
    told = Transitions(log)
    found = await _ask(parts, follower, fleet, left)
    for _ in range(_ASKED_MAX - 1):
        if found.age is _Age.NOT_OLDER:
            return found.fleet
        told.enter("older", found.why, logging.WARNING, "the store that was read is older than what was in force",
                   event="StoreIsOlder", rev=found.fleet.revision, error=found.why)  # fmt: skip
        await parts.clock.sleep(timing.LOOK_S)
        found = await _ask(parts, follower, found.fleet, left)
    if found.age is _Age.NOT_KNOWN and found.is_answered:
        log.warning(
            "going on without the revision that was in force: the store does not have it any more",
            extra={"event": "StoreRewritten", "rev": found.fleet.revision, "error": f"{left} is not there"},
        )
    elif found.age is not _Age.NOT_OLDER:
        raise StoreIsOlder(found.why)
    return found.fleet


class _StoreAnswer(NamedTuple):
    """The result of a question. `is_answered`: the store answered. `why`: the reason why it is not enough."""

    fleet: Fleet
    age: _Age
    is_answered: bool
    why: str


async def _ask(parts: LoopParts, follower: StoreFollower, fleet: Fleet, left: str) -> _StoreAnswer:
    asked = await awaited(parts.source.ask_now())
    if asked.fault is not None and not isinstance(asked.fault, StoreError):
        log.error("the store cannot be asked for a fault of the program", exc_info=asked.fault, extra=fault_fields())
    fleet = await follower.read() or fleet
    age = await in_thread(_age, parts, fleet.revision, left)
    cause = asked.fault or "nothing newer came"
    why = f"it is at {_short(fleet.revision)}, and {_short(left)} was in force: {cause}"
    return _StoreAnswer(fleet, age, asked.fault is None, why)


def _age(parts: LoopParts, revision: str, left: str) -> _Age:
    if left in ("", revision) or left.startswith("dir:") or revision.startswith("dir:"):
        return _Age.NOT_OLDER
    if left in parts.source.lineage({left}, revision).order:
        return _Age.NOT_OLDER
    found = parts.source.lineage({revision}, left)
    if left in found.missing or not found.order:
        return _Age.NOT_KNOWN
    return _Age.OLDER if revision in found.order else _Age.NOT_OLDER


def _short(revision: str) -> str:
    return revision[:12]
