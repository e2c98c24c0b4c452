"""The policy that holds for what travels with others and has no policy of its own."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from reconciler.model.policy import ConflictResolution, PropagationPolicy, Suspension


def inherited_policy(owners: Sequence[PropagationPolicy]) -> PropagationPolicy:
    """The policy of the first owner, with what all owners together ask of a dependency.

    Source: design#dependencies; Karmada: any Overwrite, any preserve. It is suspended where every owner
    is. It neither fails over by itself nor brings anything along.
    """
    overwrites = any(owner.conflict_resolution is ConflictResolution.OVERWRITE for owner in owners)
    suspended = set.intersection(*(set(owner.suspension.clusters) for owner in owners))
    return replace(
        owners[0],
        keep=any(owner.keep for owner in owners),
        conflict_resolution=ConflictResolution.OVERWRITE if overwrites else ConflictResolution.ABORT,
        suspension=Suspension(
            dispatching=all(owner.suspension.dispatching for owner in owners), clusters=tuple(sorted(suspended))
        ),
        propagate_deps=False,
        dependent_overrides=(),
        application_failover=None,
        brings=frozenset(),
    )
