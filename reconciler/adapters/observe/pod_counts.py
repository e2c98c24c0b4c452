"""Pods of each workload of a cluster, by the names of their owners, so that nothing else is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.adapters.kube.shapes.pods import OwnerReference, Pod
from reconciler.adapters.observe.pod_signs import FINISHED, OwnerOf, is_waiting
from reconciler.interpreters.base import Interpreter
from reconciler.interpreters.jobs.job import pods_wanted
from reconciler.model.observation import LiveObject, Outcome, Workload
from reconciler.model.refs import GVK, Identity
from reconciler.model.tree import JsonObject

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
        if interpreter.outcome(live.body) is not Outcome.RUNS:
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
