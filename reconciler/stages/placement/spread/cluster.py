"""Choice of clusters under a constraint on the number of clusters.

Source: Karmada: the first clusters in order, then swaps from the last one upwards for the unselected cluster with the
most capacity, until the replicas fit.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.model.policy import SpreadConstraint
from reconciler.stages.placement.spread.constraints import Ranked, Selection


def select_by_cluster(constraint: SpreadConstraint, candidates: Sequence[Ranked], replicas: int | None) -> Selection:
    """Return clusters for a `cluster` constraint, from ordered candidates; `replicas` None: capacity is ignored."""
    if len(candidates) < constraint.min_groups:
        return Selection(failure=f"{len(candidates)} clusters fit, minGroups asks for {constraint.min_groups}")
    wanted = min(len(candidates), constraint.max_groups or len(candidates))
    chosen, others = list(candidates[:wanted]), list(candidates[wanted:])
    if replicas is not None:
        _swap_for_room(chosen, others, replicas)
    names = tuple(candidate.name for candidate in chosen)
    text = f"spread over {wanted} of {len(candidates)} clusters: {', '.join(names)}"
    room = sum(candidate.available for candidate in chosen)
    if replicas is not None and room < replicas:
        failure = f"no {wanted} clusters together have room for {replicas} replicas (at most {room})"
        return Selection(names=names, text=text, failure=failure, lacks_room=True)
    return Selection(names=names, text=text)


def _swap_for_room(chosen: list[Ranked], others: list[Ranked], replicas: int) -> None:
    room = sum(candidate.available for candidate in chosen)
    for slot in reversed(range(len(chosen))):
        if room >= replicas or not others:
            return
        best = max(range(len(others)), key=lambda index: (others[index].available, -index))
        if others[best].available > chosen[slot].available:
            room += others[best].available - chosen[slot].available
            chosen[slot], others[best] = others[best], chosen[slot]
