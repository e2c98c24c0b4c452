"""The Rollouts of a schedule's bound templates, kept up from one schedule to the next."""

from __future__ import annotations

from collections.abc import Collection

from msgspec.structs import replace

from reconciler.api.fleet import Fleet
from reconciler.api.refs import Identity, PolicyRef
from reconciler.incremental import changed_keys, patched
from reconciler.rollouts import RolloutSelection, select
from reconciler.scheduler import Schedule


class SelectedTables:
    """The selection of the last schedule. Source: design#incremental."""

    def __init__(self) -> None:
        """Nothing is selected."""
        self._decision: Schedule | None = None
        self._selection = RolloutSelection()

    def update(self, decision: Schedule) -> RolloutSelection:
        """Return the selection of a schedule; the same object as before if nothing differs."""
        before = self._decision
        if before is not decision:
            selection = self._patched(before, decision) if before is not None else None
            self._selection = selected_of(decision) if selection is None else selection
            self._decision = decision
        return self._selection

    def _patched(self, before: Schedule, decision: Schedule) -> RolloutSelection | None:
        """Return the selection with differences updated; None: that is not enough, since more may depend on it."""
        known = self._selection
        if before.fleet.rollouts != decision.fleet.rollouts or known.problems:
            return None
        pairs = (
            (before.fleet.templates, decision.fleet.templates),
            (before.policies, decision.policies),
            (before.bindings, decision.bindings),
        )
        dirty: set[Identity] = set().union(*(changed_keys(old, new) for old, new in pairs))
        found = _selected_among(decision, dirty)
        if found.problems:
            return None
        for identity in dirty:
            is_other = known.rollouts.get(identity) != found.rollouts.get(identity)
            if is_other and identity in before.bindings and identity in decision.bindings:
                return None  # What it brings along may go with another Rollout, too.
        changes = {identity: found.rollouts.get(identity) for identity in dirty}
        rollouts = patched(known.rollouts, changes)
        return known if rollouts is known.rollouts else replace(known, rollouts=rollouts)


def selected_of(decision: Schedule) -> RolloutSelection:
    """Return the Rollouts of a schedule's templates. A dependency has those of its owners; a Namespace none.

    Source: ADR 18.
    """
    return _selected_among(decision, None)


def _selected_among(decision: Schedule, identities: Collection[Identity] | None) -> RolloutSelection:
    """`identities`: these alone; None: all."""
    fleet = decision.fleet
    if not fleet.rollouts:
        return RolloutSelection()
    among = decision.bindings if identities is None else identities
    owners: dict[Identity, tuple[Identity, ...]] = {}
    for identity in among:
        binding = decision.bindings.get(identity)
        if binding is not None and binding.owners and identity[:2] != ("", "Namespace"):
            owners[identity] = binding.owners
    meant = (
        fleet
        if identities is None
        else _restricted(fleet, {*identities, *(o for each in owners.values() for o in each)})
    )
    governing: dict[Identity, PolicyRef] = {
        identity: decision.policies[identity].ref for identity in meant.templates if identity in decision.policies
    }
    return select(meant, governing, owners)


def _restricted(fleet: Fleet, identities: Collection[Identity]) -> Fleet:
    templates = {identity: fleet.templates[identity] for identity in sorted(identities) if identity in fleet.templates}
    return replace(fleet, templates=templates)
