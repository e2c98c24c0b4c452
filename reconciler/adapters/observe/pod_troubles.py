"""Reasons of pods that do not run, in words: details that the workload's status lacks.

Source: Kubernetes, kubelet, reasons of waiting containers; the scheduler's message of PodScheduled.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.adapters.kube.shapes.pods import Pod
from reconciler.adapters.observe.pod_counts import workload_of
from reconciler.adapters.observe.pod_signs import FINISHED, condition_of, owners
from reconciler.model.refs import Identity
from reconciler.stages.state import TROUBLES, Degraded, Progressing, why_unschedulable, why_waiting

Trouble = Degraded | Progressing
"""A fault that waiting does not end is Degraded; a pod without a node may find one."""


def pod_troubles(pods: Iterable[Pod]) -> Mapping[Identity, Trouble]:
    """The worst trouble of the pods of each workload that has any; of equal ones the first by its words."""
    pods = tuple(pods)
    owner_of = owners(pods)
    found: dict[Identity, Trouble] = {}
    for pod in pods:
        for trouble in _troubles(pod):
            identity = workload_of(pod, owner_of(pod))
            known = found.get(identity)
            if known is None or _rank(trouble) < _rank(known):
                found[identity] = trouble
    return found


def _rank(trouble: Trouble) -> tuple[bool, str]:
    return (not isinstance(trouble, Degraded), trouble.why)


def _troubles(pod: Pod) -> Iterator[Trouble]:
    if pod.status.phase in FINISHED or pod.metadata.deletion_timestamp:
        return
    for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        waiting = status.state.waiting if status.state is not None else None
        if waiting is not None and waiting.reason in TROUBLES:
            yield Degraded(why_waiting(waiting.reason, waiting.message))
    scheduled = condition_of(pod.status.conditions, "PodScheduled")
    if scheduled is not None and (scheduled.status, scheduled.reason) == ("False", "Unschedulable"):
        yield Progressing(why_unschedulable(scheduled.message))
