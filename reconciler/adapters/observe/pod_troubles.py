"""Reasons of pods that do not run or are not even made, in words: details that the workload's status lacks.

Source: Kubernetes, kubelet, reasons of waiting containers; the scheduler's message of PodScheduled; events FailedCreate
of the controllers of StatefulSets, DaemonSets and Jobs, which have no condition for refused pods
(design#refused-pods).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from reconciler.adapters.kube.client import MemberCluster
from reconciler.adapters.kube.shapes.pods import Pod
from reconciler.adapters.observe.pod_counts import workload_of
from reconciler.adapters.observe.pod_signs import FINISHED, condition_of, owners
from reconciler.interpreters.reading import text
from reconciler.model.observation import LiveObject
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import dig
from reconciler.regex import regex
from reconciler.stages.observations import told_moment
from reconciler.stages.state import TROUBLES, Degraded, Progressing, why_unschedulable, why_waiting

Trouble = Degraded | Progressing
"""A fault that waiting does not end is Degraded; a pod without a node may find one."""

EVENT: Final = GVK("", "v1", "Event")
_SELECTOR: Final = "reason=FailedCreate"
_PREFIX: Final = regex(
    r"^(\(combined from similar events\): )?(Error creating: |create .* in StatefulSet \S+ failed error: )?"
    r"(pods \"[^\"]*\" is forbidden: )?"
)
"""Words of a controller before the reason: they name pods, other ones each time."""
_SECONDS: Final = len("2026-01-31T12:00:00")
"""Moments are compared by their seconds, which is all that an API server tells of when something was made."""
_TIMES: Final = (("series", "lastObservedTime"), ("lastTimestamp",), ("eventTime",), ("firstTimestamp",))


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


async def failed_creations(member: MemberCluster, namespace: str) -> tuple[LiveObject, ...]:
    """The events of a namespace that tell of an object that a controller could not make."""
    return (await member.list_objects(EVENT, namespace=namespace, field_selector=_SELECTOR)).objects


def refusals(events: Iterable[LiveObject], pods: Iterable[Pod], lacking: Collection[str]) -> Mapping[str, str]:
    """The reasons why pods are not made, by the uid of the workload. `lacking`: the uids of those that lack pods.

    The newest event counts, unless a pod of the workload was made after it: that it was refused is over then.
    """
    made: dict[str, str] = {}
    owner_of = owners(pods := tuple(pods))
    for pod in pods:
        if (owner := owner_of(pod)) is not None:
            made[owner.uid] = max(made.get(owner.uid, ""), told_moment(pod.metadata.creation_timestamp)[:_SECONDS])
    newest: dict[str, tuple[str, str]] = {}
    for event in events:
        uid = text(dig(event.body, "involvedObject", "uid"))
        found = (_last_seen(event), text(event.body.get("message")))
        if uid in lacking and found[0][:_SECONDS] >= made.get(uid, ""):
            newest[uid] = max(newest.get(uid, found), found)
    return {uid: _PREFIX.sub("", message) for uid, (_, message) in newest.items()}


def _last_seen(event: LiveObject) -> str:
    return next((found for path in _TIMES if (found := told_moment(dig(event.body, *path)))), "")
