"""The number of pods of a shape that fit a node, a cluster and quotas, and why no more do, in words.

Source: Karmada: the accurate estimator (per node) and its quota plugin; for waiting pods the general estimator.
Affinity between pods, preferred affinity, topology spread, host ports and volumes do not count, as there. Kubernetes,
"Assigning Pods to Nodes", "Taints and Tolerations"; design#waiting-pods. A node that may recover refuses nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final

from reconciler.api.clusters import ClusterNode, ClusterObservation, PendingPods, Quota, Taint
from reconciler.api.demand import PodShape
from reconciler.api.policies import Toleration
from reconciler.placement.candidates import tolerates, untolerated

PODS_OF_A_NODE = 110
"""The kubelet's default, for a node without an observed limit."""

UNLIMITED = 2**31 - 1
"""The value for no limit; the greatest replica count in Kubernetes."""

_OF_STATE = "node.kubernetes.io/"
_CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


@lru_cache(maxsize=1024)
def _of_pods(tolerations: tuple[tuple[str, str, str, str], ...]) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(key=key, operator=operator, value=value, effect=effect)
        for key, operator, value, effect in tolerations
    )


def admits(node: ClusterNode, shape: PodShape) -> str:
    """Return why no pod of the shape may run on the node, whatever its size; empty if one may."""
    if not node.ready:
        return "not ready"
    tolerations = _of_pods(shape.tolerations)
    if node.unschedulable and not tolerates(tolerations, _CORDONED):
        return "unschedulable"
    return _taint(node.taints, tolerations) or _not_selected(node, shape)


def _taint(taints: Iterable[Taint], tolerations: tuple[Toleration, ...]) -> str:
    taint = untolerated(tolerations, taints)
    return f"taint {taint.key}:{taint.effect}" if taint is not None else ""


def _not_selected(node: ClusterNode, shape: PodShape) -> str:
    for key, value in shape.node_selector:
        if node.labels.get(key) != value:
            return f"node selector {key}={value}"
    names = {"metadata.name": node.name}
    for term in shape.node_terms:
        # Source: Kubernetes: a term without any requirement selects none.
        matches = [_meets(node.labels, *one) for one in term.labels] + [_meets(names, *one) for one in term.fields]
        if matches and all(matches):
            return ""
    return "required node affinity" if shape.node_terms else ""


def _meets(labels: Mapping[str, str], key: str, operator: str, values: tuple[str, ...]) -> bool:
    present = labels.get(key)
    match operator:
        case "In":
            return present is not None and present in values
        case "NotIn":
            return present not in values
        case "Exists":
            return present is not None
        case "DoesNotExist":
            return present is None
        case "Gt" | "Lt" if present is not None and len(values) == 1 and all(map(_is_integer, (present, *values))):
            return int(present) > int(values[0]) if operator == "Gt" else int(present) < int(values[0])
    return False


def _is_integer(text: str) -> bool:
    return len(text) < 20 and text.removeprefix("-").removeprefix("+").isdecimal() and text.isascii()


def free_room(node: ClusterNode) -> dict[str, int]:
    """Return allocatable minus requested of every resource of the node, `pods` among them. May be negative."""
    free = {name: amount - node.requested.get(name, 0) for name, amount in node.allocatable.items()}
    if "pods" not in free:
        free["pods"] = PODS_OF_A_NODE - node.requested.get("pods", 0)
    return free


def fit(free: Mapping[str, int], requests: tuple[tuple[str, int], ...]) -> int:
    """Return how many pods with these requests fit, at most `free["pods"]`; a missing resource gives 0."""
    pods = free.get("pods", 0)
    for resource, amount in requests:
        if amount > 0:
            pods = min(pods, free.get(resource, 0) // amount)
    return max(0, pods)


def fit_of_quota(quota: Quota, reserved: Mapping[str, int], requests: tuple[tuple[str, int], ...]) -> int:
    """Return how many pods with these requests a ResourceQuota still lets in, after this round's `reserved`.

    `requests.cpu` and `cpu` mean the same, and so on; `pods` and `count/pods` count pods. Limits are not known here and
    do not count, nor do keys that no pod touches.
    """
    pods = UNLIMITED
    requested = {**{name: amount for name, amount in requests if amount > 0}, "pods": 1}
    for key, hard in quota.hard.items():
        resource = "pods" if key == "count/pods" else key.removeprefix("requests.")
        amount = requested.get(resource, 0)
        if amount:
            pods = min(pods, (hard - quota.used.get(key, 0) - reserved.get(resource, 0)) // amount)
    return max(0, pods)


NAMES_MAX: Final = 3
"""So many names of pods are kept of each group."""
_CLUSTERS_MAX: Final = 3
_GROUPS_MAX: Final = 2


def refusal_of_all(nodes: Sequence[ClusterNode], shape: PodShape) -> str:
    """Return why no node ever takes such a pod, counted over the nodes; empty: one may, or there is no node yet."""
    reasons: Counter[str] = Counter()
    for node in nodes:
        # Taints of Kubernetes itself come and go with the state of a node. An unknown size excludes nobody.
        lasting = [taint for taint in node.taints if not taint.key.startswith(_OF_STATE)]
        reason = _taint(lasting, _of_pods(shape.tolerations)) or _not_selected(node, shape)
        lacking = [name for name, amount in shape.requests if amount > node.allocatable.get(name, 0)]
        if not reason and lacking and node.allocatable:
            reason = f"too little {' and '.join(lacking)}"
        if not reason:
            return ""
        reasons[reason] += 1
    return ", ".join(f"{reason} ({_counted(count, 'node')})" for reason, count in reasons.most_common())


def causes(
    clusters: Iterable[str], observed: Mapping[str, ClusterObservation], shapes: Sequence[PodShape], namespace: str
) -> tuple[str, ...]:
    """Return why observed clusters have no more capacity for the shapes, if known: the first three with a cause."""
    clauses: list[str] = []
    for name in sorted(clusters):
        observation = observed.get(name)
        if observation is not None and observation.reachable and (here := _causes_in(observation, shapes, namespace)):
            clauses.append(f"in {name} {', '.join(here)}")
    more = len(clauses) - _CLUSTERS_MAX
    if more > 0:
        clauses[_CLUSTERS_MAX:] = [f"and so on in {_counted(more, 'more cluster')}"]
    return tuple(clauses)


def remedies(
    clusters: Iterable[str], observed: Mapping[str, ClusterObservation], shapes: Sequence[PodShape], namespace: str
) -> tuple[str, ...]:
    """Return the actions that help where more of the same nodes help in none of these clusters; none: they do."""
    reachable = [observed[name] for name in clusters if name in observed and observed[name].reachable]
    actions: list[str] = []
    if reachable and all(_refusal(one, shapes) for one in reachable):
        actions.append("add nodes that admit its pods, or change what its pods ask for")
    if reachable and all(_is_quota_full(one, shapes, namespace) for one in reachable):
        actions.append(f"raise the ResourceQuota of the namespace {namespace}")
    return tuple(actions)


def _causes_in(observation: ClusterObservation, shapes: Sequence[PodShape], namespace: str) -> list[str]:
    refused = _refusal(observation, shapes)
    clauses = [f"no node admits its pods: {refused}"] if refused else []
    if _is_quota_full(observation, shapes, namespace):
        clauses.append(f"a ResourceQuota of the namespace {namespace} lets no more in")
    groups = sorted(observation.pending, key=lambda group: (-group.pods, group.namespace, group.refusal))
    takes = [group for group in groups if not group.refusal]
    if takes:
        clauses.append(f"{_listed(takes)} without a node {'take' if _pods(takes) > 1 else 'takes'} room")
    clauses += [
        f"{_listed([group])} {'take' if group.pods > 1 else 'takes'} none, since no node admits them: {group.refusal}"
        for group in groups
        if group.refusal
    ][:_GROUPS_MAX]
    return clauses


def _refusal(observation: ClusterObservation, shapes: Sequence[PodShape]) -> str:
    return next(filter(None, (refusal_of_all(observation.nodes or (), shape) for shape in shapes)), "")


def _is_quota_full(observation: ClusterObservation, shapes: Sequence[PodShape], namespace: str) -> bool:
    quotas = [quota for quota in observation.quotas if quota.namespace == namespace]
    return any(fit_of_quota(quota, {}, shape.requests) < 1 for quota in quotas for shape in shapes)


def _pods(groups: Iterable[PendingPods]) -> int:
    return sum(group.pods for group in groups)


def _listed(groups: Sequence[PendingPods]) -> str:
    texts = [
        f"{_counted(group.pods, 'pod')} of {group.namespace} ({', '.join(group.names)}"
        f"{', …' if group.pods > len(group.names) else ''})"
        for group in groups[:_GROUPS_MAX]
    ]
    more = _pods(groups[_GROUPS_MAX:])
    return " and ".join([*texts, *([f"{more} of other namespaces"] if more else [])])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
