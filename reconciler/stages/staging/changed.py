"""Objects that render differently than before because other revisions are active."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from reconciler.model.fleet import Fleet
from reconciler.model.refs import Identity
from reconciler.model.rollouts.staging import Staging
from reconciler.stages.decision import Decision
from reconciler.stages.incremental import changed_keys
from reconciler.stages.staging.differing import differing

_NOTHING = Staging()


def changed_by_staging(before: Decision | None, after: Decision) -> set[Identity]:
    """Return objects to evaluate, beside the differences between the two schedules themselves."""
    if before is None or before.staging is after.staging:
        return set()
    old, new = before.staging or _NOTHING, after.staging or _NOTHING
    found: set[Identity] = set()
    for one, other in (
        (old.rollouts, new.rollouts),
        (old.tied, new.tied),
        (old.lingering, new.lingering),
        (old.early, new.early),
    ):
        found |= changed_keys(one, other)
    for name in sorted({*old.in_force, *new.in_force}):
        for was, is_now in set(_turned(before.fleet, old, after.fleet, new, name)):
            if was is None or is_now is None:
                found.update(identity for side in (old, new) for identity, of in side.rollouts.items() if name in of)
            else:
                found |= differing(was[1], is_now[1], partial(_is_of, old, new, name))
    return found


def _is_of(old: Staging, new: Staging, name: str, identity: Identity) -> bool:
    """Return whether a Rollout selects a template, or did."""
    return name in old.rollouts.get(identity, ()) or name in new.rollouts.get(identity, ())


class _Side(tuple[str, Fleet]):
    """A revision and its fleet; compared by the revision."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash(self[0])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Side) and self[0] == other[0]


def _turned(
    was: Fleet, old: Staging, is_now: Fleet, new: Staging, name: str
) -> Iterator[tuple[_Side | None, _Side | None]]:
    """Return the revisions that clusters of a Rollout changed between. None: none is active, or it cannot be read."""
    before, after = old.in_force.get(name, {}), new.in_force.get(name, {})
    for cluster in {*before, *after}:
        sides = _side(was, old, name, before.get(cluster, "")), _side(is_now, new, name, after.get(cluster, ""))
        if sides[0] != sides[1]:
            yield sides


def _side(head: Fleet, staging: Staging, name: str, revision: str) -> _Side | None:
    if name not in staging.in_force:
        return _Side((head.revision, head))  # No Rollout speaks of it: HEAD is in force.
    if revision and revision == staging.newest.get(name):
        return _Side((head.revision, head))
    fleet = staging.fleets.get(revision) if revision else None
    return _Side((revision, fleet)) if fleet is not None else None
