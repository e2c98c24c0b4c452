"""Pods that wait for a node, and their requests: those that no node will ever take compete for no capacity.

Source: design#waiting-pods. Karmada's general estimator counts the requests of every pod without a node.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import msgspec

from reconciler.adapters.kube.shapes.pods import Pod
from reconciler.adapters.observe.model import PodRequests
from reconciler.adapters.observe.pod_signs import is_waiting
from reconciler.interpreters.pods.shape import pod_shape
from reconciler.model.demand import Resources
from reconciler.model.observation import Node, PendingPods
from reconciler.stages.placement import NAMES_MAX, refusal_of_all


def pending_pods(
    pods: Iterable[Pod], nodes: tuple[Node, ...], requests: PodRequests
) -> tuple[tuple[PendingPods, ...], Resources]:
    """Return the pods that wait for a node, by namespace and refusal, and the requests of those that a node may take.

    Those behind a scheduling gate compete for nothing yet. `nodes` empty: unknown or none, and nothing is refused.
    """
    names: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    total: Counter[str] = Counter()
    refusals: dict[bytes, str] = {}
    for pod in pods:
        if not is_waiting(pod) or pod.spec.scheduling_gates:
            continue
        spec = msgspec.json.encode(pod.spec)
        refusal = refusals.get(spec)
        if refusal is None:
            refusal = refusals[spec] = refusal_of_all(nodes, pod_shape(msgspec.to_builtins(pod.spec)))
        names[pod.metadata.namespace, refusal].append(pod.metadata.name)
        if not refusal:
            total.update(requests.of(pod))
    groups = tuple(
        PendingPods(namespace=namespace, pods=len(found), names=tuple(sorted(found)[:NAMES_MAX]), refusal=refusal)
        for (namespace, refusal), found in sorted(names.items())
    )
    return groups, dict(sorted(total.items()))
