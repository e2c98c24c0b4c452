"""The reasons why empty, healthy nodes refuse a shape, and the causes of a cluster's lack of capacity, in words.

Source: Kubernetes, "Assigning Pods to Nodes", "Taints and Tolerations"; design#waiting-pods. A node that is not ready,
cordoned or under pressure may recover, so it refuses nothing here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from reconciler.api.clusters import ClusterNode, ClusterObservation, PendingPods
from reconciler.api.demand import PodShape
from reconciler.placement.capacity.estimate import fit_of_quota, lasting_obstacle

NAMES_MAX: Final = 3
"""So many names of pods are kept of each group."""
_CLUSTERS_MAX: Final = 3
_GROUPS_MAX: Final = 2


def refusal_of_all(nodes: Sequence[ClusterNode], shape: PodShape) -> str:
    """Return why no node ever takes such a pod, counted over the nodes; empty: one may, or there is no node yet."""
    found: Counter[str] = Counter()
    for node in nodes:
        reason = lasting_obstacle(node, shape)
        if not reason:
            return ""
        found[reason] += 1
    return ", ".join(f"{reason} ({_counted(count, 'node')})" for reason, count in found.most_common())


def causes(
    clusters: Iterable[str], observed: Mapping[str, ClusterObservation], shapes: Sequence[PodShape], namespace: str
) -> tuple[str, ...]:
    """Return why observed clusters have no more capacity for the shapes, if known.

    The first three with a cause.
    """
    found: list[str] = []
    for name in sorted(clusters):
        seen = observed.get(name)
        if seen is not None and seen.reachable and (told := _causes_in(seen, shapes, namespace)):
            found.append(f"in {name} {', '.join(told)}")
    more = (
        (f"and so on in {_counted(len(found) - _CLUSTERS_MAX, 'more cluster')}",) if len(found) > _CLUSTERS_MAX else ()
    )
    return (*found[:_CLUSTERS_MAX], *more)


def remedies(
    clusters: Iterable[str], observed: Mapping[str, ClusterObservation], shapes: Sequence[PodShape], namespace: str
) -> tuple[str, ...]:
    """Return the actions that help where more of the same nodes help in none of these clusters; none: they do."""
    seen = [observed[name] for name in clusters if name in observed and observed[name].reachable]
    found: list[str] = []
    if seen and all(_refusal(one, shapes) for one in seen):
        found.append("add nodes that admit its pods, or change what its pods ask for")
    if seen and all(_is_quota_full(one, shapes, namespace) for one in seen):
        found.append(f"raise the ResourceQuota of the namespace {namespace}")
    return tuple(found)


def _causes_in(seen: ClusterObservation, shapes: Sequence[PodShape], namespace: str) -> list[str]:
    refused = _refusal(seen, shapes)
    told = [f"no node admits its pods: {refused}"] if refused else []
    if _is_quota_full(seen, shapes, namespace):
        told.append(f"a ResourceQuota of the namespace {namespace} lets no more in")
    groups = sorted(seen.pending, key=lambda group: (-group.pods, group.namespace, group.refusal))
    takes = [group for group in groups if not group.refusal]
    if takes:
        told.append(f"{_listed(takes)} without a node {'take' if _pods(takes) > 1 else 'takes'} room")
    told += [
        f"{_listed([group])} {'take' if group.pods > 1 else 'takes'} none, since no node admits them: {group.refusal}"
        for group in groups
        if group.refusal
    ][:_GROUPS_MAX]
    return told


def _refusal(seen: ClusterObservation, shapes: Sequence[PodShape]) -> str:
    return next(filter(None, (refusal_of_all(seen.nodes or (), shape) for shape in shapes)), "")


def _is_quota_full(seen: ClusterObservation, shapes: Sequence[PodShape], namespace: str) -> bool:
    quotas = [quota for quota in seen.quotas if quota.namespace == namespace]
    return any(fit_of_quota(quota, {}, shape.requests) < 1 for quota in quotas for shape in shapes)


def _pods(groups: Iterable[PendingPods]) -> int:
    return sum(group.pods for group in groups)


def _listed(groups: Sequence[PendingPods]) -> str:
    told = [
        f"{_counted(group.pods, 'pod')} of {group.namespace} ({', '.join(group.names)}"
        f"{', …' if group.pods > len(group.names) else ''})"
        for group in groups[:_GROUPS_MAX]
    ]
    more = _pods(groups[_GROUPS_MAX:])
    return " and ".join([*told, *([f"{more} of other namespaces"] if more else [])])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
