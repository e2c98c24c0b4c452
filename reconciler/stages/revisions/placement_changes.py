"""Placements before and after, as a reviewer wants to see them."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.binding import PreviousPlacement
from reconciler.model.plan import PlacementChange
from reconciler.model.refs import GVK, Identity
from reconciler.stages.decision import Decision


def placement_changes(
    decision: Decision, previous: Mapping[Identity, PreviousPlacement], only: frozenset[Identity] | None = None
) -> tuple[PlacementChange, ...]:
    """What moved between the previous placements and the decision, sorted; equal placements are left out.

    `only`: look at these alone.
    """
    changes: list[PlacementChange] = []
    for identity in sorted(_moved(decision, previous) if only is None else only):
        if identity in decision.frozen or (identity not in decision.bindings and not decision.fleet.is_complete):
            # A broken file may speak of it: where it is, it stays.
            continue
        binding, before = decision.bindings.get(identity), previous.get(identity)
        was, is_now = before.targets if before else (), binding.targets if binding else ()
        if was == is_now:
            continue
        changes.append(
            PlacementChange(
                gvk=_gvk(decision, identity),
                identity=identity,
                before=was,
                after=is_now,
                reasons=binding.reasons if binding else (),
            )
        )
    return tuple(changes)


def _moved(decision: Decision, previous: Mapping[Identity, PreviousPlacement]) -> set[Identity]:
    """Whatever may have moved."""
    bindings = decision.bindings
    found = zip(bindings, bindings.values(), map(previous.get, bindings), strict=True)
    moved = {identity for identity, binding, before in found if before is None or before.targets != binding.targets}
    return moved | (previous.keys() - bindings.keys())


def _gvk(decision: Decision, identity: Identity) -> GVK:
    template = decision.fleet.templates.get(identity)
    # Of a template that left the store only the identity is remembered; its version no longer matters.
    return template.gvk if template else GVK(identity.group, "v1", identity.kind)
