"""Placements before and after, as a reviewer wants to see them."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from reconciler.model.binding import PreviousPlacement, TargetCluster
from reconciler.model.plan import Manifest, PlacementChange
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import dig
from reconciler.stages.decision import Decision
from reconciler.stages.rendering import RenderCache, render_copy, render_inputs


def placement_changes(
    decision: Decision, previous: Mapping[Identity, PreviousPlacement], only: frozenset[Identity] | None = None
) -> tuple[PlacementChange, ...]:
    """Return the placements that moved between the previous placements and the schedule, sorted.

    `only`: these alone.
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


def with_overridden(
    placements: tuple[PlacementChange, ...], decision: Decision, manifests: Mapping[str, Mapping[Identity, Manifest]]
) -> tuple[PlacementChange, ...]:
    """The placements, with the replicas that overrides make of those that are assigned."""
    overridden = {
        identity for found in manifests.values() for identity, manifest in found.items() if manifest.overrides
    }
    if not any(placement.identity in overridden for placement in placements):
        return placements
    inputs, cache = render_inputs(decision), RenderCache()

    def told(placement: PlacementChange) -> PlacementChange:
        path = decision.interpreters.of(*placement.identity[:2]).replicas_path
        if placement.identity not in overridden or not path:
            return placement
        found = []
        for cluster, replicas in placement.after:
            manifest = render_copy(inputs, placement.identity, cluster, replicas, cache).manifest
            made = dig(manifest.body, *path) if manifest is not None and not manifest.replicas_yielded else None
            if isinstance(made, int) and made != replicas:
                found.append(TargetCluster(cluster, made))
        return replace(placement, overridden=tuple(found))

    return tuple(map(told, placements))


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
