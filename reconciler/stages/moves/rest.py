"""Whether an object is at rest everywhere but in some clusters, so that what is done there concerns no other copy.

Source: ADR 15: what happens in one cluster is read there; design#moves.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from reconciler.stages.moves.moves import Replicas


def is_at_rest_beside(clusters: Collection[str], target: Mapping[str, Replicas], old: Mapping[str, Replicas]) -> bool:
    """Whether every other copy is where it belongs, as it is to be, and none in `clusters` has to leave or to shrink.

    Whoever leaves or shrinks looks at the copies that take over, wherever they are; who comes or grows asks nobody.
    """
    for cluster in {*target, *old}:
        is_there, is_wanted = cluster in old, cluster in target
        if cluster not in clusters and not (is_there and is_wanted and old[cluster] == target[cluster]):
            return False
        if is_there and not (is_wanted and (old[cluster] or 0) <= (target[cluster] or 0)):
            return False
    return True
