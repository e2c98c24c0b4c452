"""What was written and does not show in the clusters yet: its room is taken all the same.

Between the write and the pods lie a controller and a scheduler, and an observation may be older than the write. Without
this, a round would promise the room again that the round before it gave away. Source: design#booked-once.
Pods that are there, waiting ones included, are in the observation already.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.observation import ClusterObservation
from reconciler.stages.placement.values import Situation

Observed = Mapping[str, ClusterObservation]
"""The clusters of which workloads or pods were seen."""


def observed_pods(clusters: Observed) -> Observed:
    """The clusters of which workloads or pods were seen."""
    return {
        name: seen for name, seen in clusters.items() if seen.reachable and (seen.workloads or seen.pods is not None)
    }


def on_its_way(situation: Situation, observed: Observed) -> list[tuple[str, int]]:
    """Clusters with the pods that are to come there for what was assigned to them before."""
    found = []
    for cluster, replicas in situation.had.items() if observed else ():
        seen = observed.get(cluster)
        pods = _missing(situation, seen, cluster, replicas) if seen is not None else 0
        if pods > 0:
            found.append((cluster, pods))
    return found


def _missing(situation: Situation, seen: ClusterObservation, cluster: str, replicas: int) -> int:
    item = situation.item
    workload = seen.workloads.get(item.identity)
    if workload is not None:
        if workload.assigned is None:
            return max(0, item.sent(cluster, replicas) - workload.replicas) + workload.missing
        # The mark of another assignment: it was seen before it was written last.
        later = item.sent(cluster, replicas) - item.sent(cluster, workload.assigned)
        return max(0, later) + workload.missing
    if seen.pods is None or cluster not in situation.written:
        return 0
    pods = seen.pods.get(item.identity, 0)
    is_begun = pods > 0 and (item.is_autoscaled or bool(item.demand.components))
    return 0 if is_begun else item.sent(cluster, replicas) - pods
