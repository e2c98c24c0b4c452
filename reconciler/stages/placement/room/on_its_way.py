"""Pending writes: written replicas that the clusters do not show yet still take capacity.

Between the write and the pods are a controller and a scheduler, and an observation may be older than the write. Without
this, a round would promise the capacity again that the round before it gave away. Source: design#booked-once. Existing
pods, waiting ones included, are in the observation already.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.model.observation import ClusterObservation
from reconciler.stages.placement.values import Situation

Observed = Mapping[str, ClusterObservation]
"""Clusters with observed workloads or pods."""


def observed_pods(clusters: Observed) -> Observed:
    """Return the clusters with observed workloads or pods."""
    return {
        name: seen for name, seen in clusters.items() if seen.reachable and (seen.workloads or seen.pods is not None)
    }


def on_its_way(situation: Situation, observed: Observed) -> list[tuple[str, int]]:
    """Return clusters with the number of expected pods of earlier assignments."""
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
