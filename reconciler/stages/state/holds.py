"""The holder of a change: one that ends by itself, or a person."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from reconciler.model.plan import Action, Cause, Change
from reconciler.stages.deletion import is_held_by_guard
from reconciler.stages.moves import is_waiting
from reconciler.stages.placement import closed_by_order
from reconciler.stages.plan import CLOSED


class HeldBy(StrEnum):
    """The actor that must act before a held change is made."""

    GUARD = "guard"
    """A person, who confirms it: it is one of too many deletions, or one that takes data along."""
    MOVE = "move"
    """Nobody: it is made once other copies serve."""
    SUSPENDED = "suspended"
    """A person, who ordered that nothing be written, or a policy that says so."""
    REPLACEMENT = "replacement"
    """A person, who allows that the object is deleted and created."""
    SETTINGS = "settings"
    """Nobody: the store says that drift is left as it is."""
    WINDOW = "window"
    """Nobody: it is made once a window of the fleet opens."""
    STAGE = "stage"
    """Nobody here: it is made with the turn of its cluster in a Rollout."""
    OTHERS = "others"
    """Nobody: it is made once another object has come or left."""


NEEDS_PERSON: Final = frozenset({HeldBy.GUARD, HeldBy.SUSPENDED, HeldBy.REPLACEMENT})


def held_by(change: Change, closed: Mapping[str, str]) -> HeldBy:
    """Return the holder of a held change. `closed`: the reasons of write blocks, by the scope of an order."""
    assert change.held is not None, "it is not held"
    if is_held_by_guard(change):
        return HeldBy.GUARD
    is_ordered = closed_by_order(closed, change.identity, change.cluster) == change.held
    if is_ordered or change.held.startswith("dispatching is suspended"):
        return HeldBy.SUSPENDED
    if change.held.startswith(CLOSED):
        return HeldBy.WINDOW
    if is_waiting(change):
        return HeldBy.MOVE
    if change.action is Action.REPLACE:
        return HeldBy.REPLACEMENT
    return HeldBy.SETTINGS if change.cause is Cause.DRIFT and change.action is Action.UPDATE else HeldBy.OTHERS


def waits_for_person(change: Change, closed: Mapping[str, str]) -> bool:
    """Return whether a change is made only after a person has acted."""
    return change.held is not None and held_by(change, closed) in NEEDS_PERSON
