"""Objects at rest everywhere but in some clusters: changes there concern no other copy.

Source: ADR 15: events in one cluster are read there; design#moves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.stages.moves.moves import Replicas


def is_at_rest_beside(clusters: Collection[str], target: Mapping[str, Replicas], old: Mapping[str, Replicas]) -> bool:
    """Return whether every other copy is as desired, and none in `clusters` has to leave or to shrink.

    A copy that leaves or shrinks depends on those that take over, wherever they are; one that comes or grows does not.
    """
    for cluster in {*target, *old}:
        is_there, is_wanted = cluster in old, cluster in target
        if cluster not in clusters and not (is_there and is_wanted and old[cluster] == target[cluster]):
            return False
        if is_there and not (is_wanted and (old[cluster] or 0) <= (target[cluster] or 0)):
            return False
    return True
