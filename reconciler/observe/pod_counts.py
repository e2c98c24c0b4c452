"""Pods of each workload of a cluster, by the names of their owners, so that nothing else is read.

Reasons of pods that do not run or are not even made, in words: details that the workload's status lacks.

Source: Kubernetes, kubelet, reasons of waiting containers; the scheduler's message of PodScheduled; events FailedCreate
of the controllers of StatefulSets, DaemonSets and Jobs, which have no condition for refused pods
(design#refused-pods).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject, RunOutcome, Workload
from reconciler.api.refs import GVK, Identity
from reconciler.api.tree import JsonObject, dig
from reconciler.kinds.body_fields import text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.jobs import pods_wanted
from reconciler.kube.client import MemberCluster
from reconciler.kube.pod_shapes import OwnerReference, Pod
from reconciler.observations import told_moment
from reconciler.observe.pod_signs import FINISHED, OwnerOf, condition_of, is_waiting, owners
from reconciler.regex import regex
from reconciler.state import TROUBLES, Degraded, Progressing, why_unschedulable, why_waiting

_TEMPLATE_HASH = "pod-template-hash"
_REPLACED = frozenset({"Deployment", "ReplicaSet", "StatefulSet"})
"""Kinds that replace a pod that has ended."""


class PodCounts(Struct, frozen=True, kw_only=True):
    """Pods by workload."""

    running: Mapping[Identity, int] = field(default_factory=dict)
    """Those that have not ended."""
    finished: Mapping[Identity, int] = field(default_factory=dict)
    without_node: Mapping[Identity, int] = field(default_factory=dict)
    """Those of the running that have no node: refused by the scheduler, gated, or not looked at by it."""

    def made(self) -> Mapping[Identity, int]:
        """Pods that count for a desired one: also ended ones without a replacement."""
        kept = {identity: count for identity, count in self.finished.items() if identity.kind not in _REPLACED}
        return {**self.running, **{identity: self.running.get(identity, 0) + count for identity, count in kept.items()}}

    def missing(self, live: LiveObject, interpreter: Interpreter) -> int:
        """Pods that a live workload wants and that its controller has not made yet."""
        if interpreter.outcome(live.body) is not RunOutcome.RUNS:
            return 0
        has = self.running if live.identity[:2] == ("batch", "Job") else self.made()
        return max(0, _wanted(live.body, interpreter) - has.get(live.identity, 0))

    def told_of(self, live: LiveObject, interpreter: Interpreter, found: Workload) -> Workload:
        """Return the workload with the counts of its pods.

        For a kind without a known number of pods, such as a DaemonSet, no pods prove nothing.
        """
        is_silent = live.identity not in self.without_node and interpreter.demand(live.body).replicas is None
        without_node = None if is_silent else self.without_node.get(live.identity, 0)
        return replace(found, missing=self.missing(live, interpreter), without_node=without_node)


def pod_counts(pods: Iterable[Pod], owner_of: OwnerOf) -> PodCounts:
    """Return the pods of every workload of a cluster. `owner_of`: returns the top-level owner of a pod."""
    running: Counter[Identity] = Counter()
    finished: Counter[Identity] = Counter()
    without_node: Counter[Identity] = Counter()
    known: dict[str, Identity] = {}
    for pod in pods:
        owner = owner_of(pod)
        uid = owner.uid if owner is not None else pod.metadata.uid
        identity = known.get(uid)
        if identity is None:
            identity = known[uid] = workload_of(pod, owner)
        (finished if pod.status.phase in FINISHED else running)[identity] += 1
        without_node[identity] += is_waiting(pod)
    return PodCounts(running=running, finished=finished, without_node=without_node)


def workload_of(pod: Pod, owner: OwnerReference | None) -> Identity:
    """Return the workload of a pod. The name of a Deployment's ReplicaSet ends in the hash that its pods carry."""
    if owner is None:
        return Identity("", "Pod", pod.metadata.namespace, pod.metadata.name)
    group, hash_ = GVK.parse(owner.api_version, owner.kind).group, pod.metadata.labels.get(_TEMPLATE_HASH)
    if (group, owner.kind) == ("apps", "ReplicaSet") and hash_ and owner.name.endswith(f"-{hash_}"):
        return Identity("apps", "Deployment", pod.metadata.namespace, owner.name.removesuffix(f"-{hash_}"))
    return Identity(group, owner.kind, pod.metadata.namespace, owner.name)


def _wanted(body: JsonObject, interpreter: Interpreter) -> int:
    """Pods that should be there at once: of a Job, no more than the completions that are left."""
    return pods_wanted(body) if body.get("kind") == "Job" else interpreter.demand(body).replicas or 0


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
