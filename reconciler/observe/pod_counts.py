"""Pod diagnostics beyond the status of a workload: pods that lost their node, or find none.

The status of a Job or a training job counts a pod on a dead node as running, and one without a node as about to start.
Source: Kubernetes, "Pod disruption conditions" and "Garbage collection of Pods"; kstatus, ScheduleWindow.

Reasons of pods that do not run or are not even made, in words: details that the workload's status lacks.

Source: Kubernetes, kubelet, reasons of waiting containers; the scheduler's message of PodScheduled; events FailedCreate
of the controllers of StatefulSets, DaemonSets and Jobs, which have no condition for refused pods
(design#refused-pods).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject, RunOutcome, Workload
from reconciler.api.content import dig
from reconciler.api.refs import GVK, Identity
from reconciler.kinds.body_fields import text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.jobs import pods_wanted
from reconciler.kube.discovery import OwnerEntry
from reconciler.kube.pod_shapes import Condition, NodeObject, Pod
from reconciler.observations import age_s, api_moment, event_moment
from reconciler.regex import regex
from reconciler.state import EVICTED, NODE_LOST, TROUBLES, Degraded, Progressing, why_waiting, with_message

FINISHED: Final = ("Succeeded", "Failed")
SCHEDULE_WINDOW_S: Final = 15.0
"""A pod that the scheduler refused so short a time ago may yet find a node."""
_OF_THE_POD_ITSELF: Final = ("", "DeadlineExceeded")
"""Reasons of failed pods whose containers failed, or which ran for too long: no node and no cluster is to blame."""

OwnerOf = Callable[[Pod], OwnerEntry | None]


class PodSigns(Struct, frozen=True, kw_only=True):
    """The pods of one workload. `stuck`: since when, RFC 3339."""

    alive: int = 0
    """Run, or start, on a node that answers."""
    stuck: tuple[str, ...] = ()
    """Pods that find no node, or whose node is gone or unreachable."""
    succeeded: int = 0
    failed: int = 0
    """Failed by themselves."""
    disrupted: int = 0
    """Failed since their cluster disrupted them."""

    def stuck_since(self, needed: int) -> str:
        """Since when so few of the needed pods are alive because others are stuck; empty: they are not."""
        return "" if self.alive >= max(1, needed - self.succeeded) else min(self.stuck, default="")


def pod_signs(
    objects: Iterable[LiveObject], pods: Collection[Pod], nodes: Iterable[NodeObject] | None, now: str
) -> Mapping[Identity, PodSigns]:
    """Return pod diagnostics of workloads whose status lacks them. `nodes` None: unread, and none counts as lost."""
    # The controllers of apps/v1 report ready pods, and a lost node makes its pods unready.
    identities = {live.uid: live.identity for live in objects if live.identity.group != "apps"}
    if not identities:
        return {}
    pods_of: dict[Identity, list[Pod]] = {identity: [] for identity in identities.values()}
    owner_of = owners(pods)
    for pod in pods:
        owner = owner_of(pod)
        identity = identities.get(owner.uid if owner is not None else pod.metadata.uid)
        if identity is not None:
            pods_of[identity].append(pod)
    lost = None if nodes is None else _lost_since(nodes, now)
    return {identity: _signs(members, lost, now) for identity, members in pods_of.items()}


def owners(pods: Collection[Pod]) -> OwnerOf:
    """Return a function: a pod to its top-level owner (of a Spark executor, its driver's); None: a bare pod."""
    leaders = {owner.uid for pod in pods if (owner := controller(pod)) is not None and owner.kind == "Pod"}
    above = {pod.metadata.uid: controller(pod) for pod in pods if pod.metadata.uid in leaders} if leaders else {}

    def owner_of(pod: Pod) -> OwnerEntry | None:
        owner = controller(pod)
        return (above.get(owner.uid) or owner) if owner is not None and owner.kind == "Pod" else owner

    return owner_of


def controller(pod: Pod) -> OwnerEntry | None:
    """The controller of a pod; None for a bare one."""
    return next((owner for owner in pod.metadata.owner_references if owner.controller), None)


def condition_of(conditions: list[Condition] | None, kind: str) -> Condition | None:
    """The condition of this type."""
    return next((condition for condition in conditions or () if condition.type == kind), None)


def is_waiting(pod: Pod) -> bool:
    """Return whether the pod has no node and is not being deleted."""
    return not pod.spec.node_name and pod.status.phase not in FINISHED and not pod.metadata.deletion_timestamp


def refused_since(pod: Pod) -> str | None:
    """Return the time since which the scheduler finds no node, empty if not reported; None: not refused."""
    condition = condition_of(pod.status.conditions, "PodScheduled")
    if condition is None or (condition.status, condition.reason) != ("False", "Unschedulable"):
        return None
    return None if pod.spec.node_name or pod.status.phase in FINISHED else api_moment(condition.last_transition_time)


def _lost_since(nodes: Iterable[NodeObject], now: str) -> dict[str, str]:
    """Return by node since when it does not answer; empty: it does. One that is not there is lost by now."""
    since_by_node: dict[str, str] = {}
    for node in nodes:
        ready = condition_of(node.status.conditions, "Ready")
        since = api_moment(ready.last_transition_time) if ready is not None else ""
        since_by_node[node.metadata.name] = "" if ready is not None and ready.status == "True" else since or now
    return since_by_node


def _signs(pods: Iterable[Pod], nodes: Mapping[str, str] | None, now: str) -> PodSigns:
    alive = succeeded = failed = disrupted = 0
    stuck: list[str] = []
    for pod in pods:
        if pod.status.phase == "Failed":
            target = condition_of(pod.status.conditions, "DisruptionTarget")
            is_disrupted = target is not None and target.status == "True"
            is_own = pod.status.reason in _OF_THE_POD_ITSELF and not is_disrupted
            failed, disrupted = failed + is_own, disrupted + (not is_own)
        elif pod.status.phase == "Succeeded":
            succeeded += 1
        elif (since := _stuck_since(pod, nodes, now)) is None:
            alive += not pod.metadata.deletion_timestamp
        elif since:
            # Including pods being deleted: on a lost node nothing can end them.
            stuck.append(since)
    return PodSigns(alive=alive, stuck=tuple(stuck), succeeded=succeeded, failed=failed, disrupted=disrupted)


def _stuck_since(pod: Pod, nodes: Mapping[str, str] | None, now: str) -> str | None:
    """Since when it cannot run, empty: it may find a node yet; None: it can."""
    if pod.spec.node_name:
        return (nodes.get(pod.spec.node_name, now) or None) if nodes is not None else None
    since = refused_since(pod)
    if since is None:
        return None
    return (since or now) if age_s(since or now, now) > SCHEDULE_WINDOW_S else ""


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

    def created(self) -> Mapping[Identity, int]:
        """Pods that count for a desired one: also ended ones without a replacement."""
        done = {identity: count for identity, count in self.finished.items() if identity.kind not in _REPLACED}
        return {**self.running, **{identity: self.running.get(identity, 0) + count for identity, count in done.items()}}

    def missing(self, live: LiveObject, interpreter: Interpreter) -> int:
        """Pods that a live workload wants and that its controller has not made yet."""
        if interpreter.outcome(live.body) is not RunOutcome.RUNS:
            return 0
        has = self.running if live.identity[:2] == ("batch", "Job") else self.created()
        is_job = live.body.get("kind") == "Job"
        wanted = pods_wanted(live.body) if is_job else interpreter.demand(live.body).replicas or 0
        return max(0, wanted - has.get(live.identity, 0))

    def with_counts(self, live: LiveObject, interpreter: Interpreter, observed: Workload) -> Workload:
        """Return the workload with its pods counted; no pods prove nothing where the wanted number is unknown."""
        is_silent = live.identity not in self.without_node and interpreter.demand(live.body).replicas is None
        without_node = None if is_silent else self.without_node.get(live.identity, 0)
        return replace(observed, missing=self.missing(live, interpreter), without_node=without_node)


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


def workload_of(pod: Pod, owner: OwnerEntry | None) -> Identity:
    """Return the workload of a pod. The name of a Deployment's ReplicaSet ends in the hash that its pods carry."""
    if owner is None:
        return Identity("", "Pod", pod.metadata.namespace, pod.metadata.name)
    group, hash_ = GVK.parse(owner.api_version, owner.kind).group, pod.metadata.labels.get(_TEMPLATE_HASH)
    if (group, owner.kind) == ("apps", "ReplicaSet") and hash_ and owner.name.endswith(f"-{hash_}"):
        return Identity("apps", "Deployment", pod.metadata.namespace, owner.name.removesuffix(f"-{hash_}"))
    return Identity(group, owner.kind, pod.metadata.namespace, owner.name)


Trouble = Degraded | Progressing
"""A fault that waiting does not end is Degraded; a pod without a node may find one."""

_PREFIX: Final = regex(
    r"^(\(combined from similar events\): )?(Error creating: |create .* in StatefulSet \S+ failed error: )?"
    r"(pods \"[^\"]*\" is forbidden: )?"
)
"""Words of a controller before the reason: they name pods, other ones each time."""
STARTS_S: Final = 30.0
"""A pod takes so long to pull its image and to become ready; clocks of clusters may differ by as much."""
_SECONDS: Final = len("2026-01-31T12:00:00")
"""Moments are compared by their seconds, which is all that an API server tells of when something was made."""


def pod_troubles(pods: Collection[Pod], now: str) -> Mapping[Identity, Trouble]:
    """Return the worst pod trouble of each workload. An eviction counts until a pod made later has a node."""
    owner_of = owners(pods)
    troubles: dict[Identity, Trouble] = {}
    replaced: dict[Identity, str] = {}
    for pod in pods:
        if pod.spec.node_name and pod.status.phase not in FINISHED:
            identity = workload_of(pod, owner_of(pod))
            replaced[identity] = max(replaced.get(identity, ""), api_moment(pod.metadata.creation_timestamp))
    for pod in pods:
        for trouble in _troubles(pod, now):
            identity = workload_of(pod, owner_of(pod))
            if trouble.reason == EVICTED:
                # It was evicted then at the earliest. Source: Kubernetes, "Pod disruption conditions".
                target = condition_of(pod.status.conditions, "DisruptionTarget")
                at = api_moment(target.last_transition_time) if target is not None else ""
                if replaced.get(identity, "") >= (at or api_moment(pod.metadata.creation_timestamp)):
                    continue
            known = troubles.get(identity)
            if known is None or _rank(trouble) < _rank(known):
                troubles[identity] = trouble
    return troubles


def starting(pods: Collection[Pod], now: str) -> frozenset[Identity]:
    """Return the workloads with a pod that was made so short a time ago that it need not be ready yet."""
    owner_of = owners(pods)
    created = ((pod, api_moment(pod.metadata.creation_timestamp)) for pod in pods)
    return frozenset(workload_of(pod, owner_of(pod)) for pod, at in created if at and abs(age_s(at, now)) < STARTS_S)


def _rank(trouble: Trouble) -> tuple[bool, str]:
    return (not isinstance(trouble, Degraded), trouble.why)


def _troubles(pod: Pod, now: str) -> Iterator[Trouble]:
    if pod.status.phase == "Failed" and pod.status.reason == EVICTED:
        yield Progressing(with_message("its pod was evicted", pod.status.message), reason=EVICTED)
    if pod.status.phase in FINISHED or pod.metadata.deletion_timestamp:
        return
    for status in (*(pod.status.init_container_statuses or ()), *(pod.status.container_statuses or ())):
        waiting = status.state.waiting if status.state is not None else None
        if waiting is not None and waiting.reason in TROUBLES:
            yield Degraded(why_waiting(waiting.reason, waiting.message), reason=waiting.reason)
    scheduled = condition_of(pod.status.conditions, "PodScheduled")
    if scheduled is not None and (scheduled.status, scheduled.reason) == ("False", "Unschedulable"):
        yield Progressing(with_message("no node takes it", scheduled.message), reason=scheduled.reason)
    ready = condition_of(pod.status.conditions, "Ready"), condition_of(pod.status.conditions, "ContainersReady")
    if [(one.status, one.reason) for one in ready if one is not None] == [("False", ""), ("True", "")]:
        # Source: Kubernetes, node lifecycle controller: it sets Ready alone, of pods on nodes that are silent.
        yield Degraded("its node does not answer", reason=NODE_LOST)
    made_at = api_moment(pod.metadata.creation_timestamp)
    if scheduled is None and not pod.spec.node_name and made_at and age_s(made_at, now) > STARTS_S:
        yield Progressing(with_message("no scheduler has looked at it", pod.spec.scheduler_name), reason="NoScheduler")


def refusals(events: Iterable[LiveObject], pods: Collection[Pod], lacking: Collection[str]) -> Mapping[str, str]:
    """Return why pods are not made, by uid of the workloads in `lacking`, unless a pod was made since."""
    last: dict[str, str] = {}
    owner_of = owners(pods)
    for pod in pods:
        if (owner := owner_of(pod)) is not None:
            last[owner.uid] = max(last.get(owner.uid, ""), api_moment(pod.metadata.creation_timestamp)[:_SECONDS])
    newest: dict[str, tuple[str, str]] = {}
    for event in events:
        uid = text(dig(event.body, "involvedObject", "uid"))
        reason = (event_moment(event.body), text(event.body.get("message")))
        if uid in lacking and reason[0][:_SECONDS] >= last.get(uid, ""):
            newest[uid] = max(newest.get(uid, reason), reason)
    return {uid: _PREFIX.sub("", message) for uid, (_, message) in newest.items()}
