"""Capacity and health from nodes, pods and workloads: pure conversions.

Source: Kubernetes, "Scheduling Framework" (requested resources of a node) and the status fields of workloads;
design#descheduler: pods of the newest revision that the scheduler has no room for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from reconciler.api.clusters import ClusterNode, Health, LiveObject, Quota, RunOutcome, Workload
from reconciler.api.content import JsonObject, dig
from reconciler.api.demand import Resources, exact, resources
from reconciler.api.refs import Identity
from reconciler.kinds.body_fields import condition, count, mapping, mappings, text
from reconciler.kinds.interpreter import Interpreter
from reconciler.kinds.pod_template import pod_requests
from reconciler.kube.pod_shapes import Container, ContainerStatus, NodeObject, Pod, PodSpec, Requirements
from reconciler.observations import api_moment
from reconciler.observe.pod_counts import FINISHED, PodSigns, condition_of, controller, owners, refused_since
from reconciler.ownership import FLEET_LABEL, read_owner

REVISION = "deployment.kubernetes.io/revision"
REVISION_HASH = "controller-revision-hash"
_BAD_WHEN_FALSE = ("Available", "Ready", "Progressing", "Initialized", "ContainersReady", "AllReplicasReady")
_DIGITS_MAX = 19
_NO_STATUS = "-"
_BAD_WHEN_TRUE = ("Failed", "ReplicaFailure", "FailureTarget", "Stalled")


class PodRequests:
    """Requests of pods. Thousands of pods have few distinct shapes, so each shape is computed once."""

    def __init__(self) -> None:
        self._by_shape: dict[bytes, Resources] = {}

    def of(self, pod: Pod) -> Resources:
        """Return the requests that the scheduler counts for the pod, with `pods` being 1."""
        spec = as_resized(pod)
        parts = (spec.containers, spec.init_containers, spec.overhead, spec.resources)
        shape = msgspec.json.encode(parts)
        resources = self._by_shape.get(shape)
        if resources is None:
            resources = {**pod_requests(msgspec.to_builtins(spec)), "pods": 1}
            self._by_shape[shape] = resources
        return resources


def as_resized(pod: Pod) -> PodSpec:
    """Return the spec with what the scheduler counts while a pod is resized: the larger of request and allocation."""
    containers = _resized(pod.spec.containers, pod.status.container_statuses)
    init_containers = _resized(pod.spec.init_containers or [], pod.status.init_container_statuses)
    if containers is None and init_containers is None:
        return pod.spec
    return msgspec.structs.replace(
        pod.spec,
        containers=containers if containers is not None else pod.spec.containers,
        init_containers=init_containers if init_containers is not None else pod.spec.init_containers,
    )


def _resized(containers: list[Container], statuses: list[ContainerStatus] | None) -> list[Container] | None:
    """The containers with larger requests, None when nothing differs."""
    reported = {
        status.name: (status.allocated_resources, status.resources.requests if status.resources else None)
        for status in statuses or ()
    }
    result = []
    for container in containers:
        requests: Mapping[str, Any] = container.resources.requests if container.resources else {}
        largest = dict(requests)
        for amounts in reported.get(container.name, ()):
            for name, amount in (amounts or {}).items():
                if (exact(amount) or 0) > (exact(largest.get(name, 0)) or 0):
                    largest[name] = amount
        is_same, resized = largest == requests, Requirements(requests=largest)
        result.append(container if is_same else msgspec.structs.replace(container, resources=resized))
    return None if all(new is old for new, old in zip(result, containers, strict=True)) else result


def nodes_with_room(nodes: Iterable[NodeObject], pods: Iterable[Pod], requests: PodRequests) -> tuple[ClusterNode, ...]:
    """Return the nodes by name, with the requests of the pods bound to them. A terminating pod still takes capacity."""
    requested: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        if pod.spec.node_name and pod.status.phase not in FINISHED:
            requested[pod.spec.node_name].update(requests.of(pod))
    return tuple(
        ClusterNode(
            name=node.metadata.name,
            ready=(ready := condition_of(node.status.conditions, "Ready")) is not None and ready.status == "True",
            unschedulable=node.spec.unschedulable,
            labels=node.metadata.labels,
            taints=node.spec.taints or (),
            allocatable=resources(node.status.allocatable or {}),
            requested=dict(sorted(requested[node.metadata.name].items())),
        )
        for node in sorted(nodes, key=lambda node: node.metadata.name)
    )


def quota(live: LiveObject) -> Quota:
    """Return a ResourceQuota; its status.hard is enforced, spec.hard will be."""
    hard = mapping(dig(live.body, "status", "hard")) or mapping(dig(live.body, "spec", "hard"))
    return Quota(
        namespace=live.identity.namespace,
        hard=resources(hard),
        used=resources(mapping(dig(live.body, "status", "used"))),
    )


class WaitingPods(Struct, frozen=True, kw_only=True):
    """Pods of one owner that the scheduler found no node for."""

    namespace: str
    owner_kind: str
    revision: str
    """The controller-revision-hash, where the pod has one."""
    since: str


class Unscheduled(Struct, frozen=True, kw_only=True):
    """All unschedulable pods by the uid of their controller (a bare pod: its own), with the ReplicaSets' revisions."""

    by_owner: Mapping[str, tuple[WaitingPods, ...]] = field(default_factory=dict)
    newest_replica_set: Mapping[str, str] = field(default_factory=dict)
    """uid of a Deployment to the uid of the ReplicaSet of its newest revision."""
    replica_sets: Mapping[str, frozenset[str]] = field(default_factory=dict)
    """uid of a Deployment to the uids of all its ReplicaSets."""

    @property
    def replica_set_namespaces(self) -> tuple[str, ...]:
        """Return the namespaces of the ReplicaSets to read, to tell old revisions from the newest."""
        waiting = (pod for pods in self.by_owner.values() for pod in pods if pod.owner_kind == "ReplicaSet")
        return tuple(sorted({pod.namespace for pod in waiting}))


def unscheduled(pods: Collection[Pod]) -> Mapping[str, tuple[WaitingPods, ...]]:
    """Return pods with PodScheduled=False for reason Unschedulable, by the uid of their top-level owner."""
    by_owner: defaultdict[str, list[WaitingPods]] = defaultdict(list)
    refused = [
        (pod, since)
        for pod in pods
        if (since := refused_since(pod)) is not None and not pod.metadata.deletion_timestamp
    ]
    owner_of = owners(pods) if refused else controller
    for pod, since in refused:
        owner = owner_of(pod)
        waiting = WaitingPods(
            namespace=pod.metadata.namespace,
            owner_kind=owner.kind if owner else "",
            revision=pod.metadata.labels.get(REVISION_HASH, ""),
            since=since,
        )
        by_owner[owner.uid if owner else pod.metadata.uid].append(waiting)
    return {uid: tuple(waiting) for uid, waiting in by_owner.items()}


def newest_replica_sets(replica_sets: Iterable[LiveObject]) -> Mapping[str, str]:
    """The uid of each Deployment to that of its ReplicaSet with the highest revision; metadata suffice."""
    newest: dict[str, tuple[int, str]] = {}
    for live in replica_sets:
        owner = _controller(live.body)
        revision = (dig(live.body, "metadata", "annotations") or {}).get(REVISION, "")
        if owner and revision.isdecimal() and len(revision) < _DIGITS_MAX:
            newest[owner] = max(newest.get(owner, (-1, "")), (int(revision), live.uid))
    return {owner: uid for owner, (_, uid) in newest.items()}


def replica_sets_by_owner(replica_sets: Iterable[LiveObject]) -> Mapping[str, frozenset[str]]:
    """The uid of each Deployment to those of all its ReplicaSets."""
    by_owner: defaultdict[str, set[str]] = defaultdict(set)
    for live in replica_sets:
        by_owner[_controller(live.body)].add(live.uid)
    return {owner: frozenset(uids) for owner, uids in by_owner.items() if owner}


def _controller(body: JsonObject) -> str:
    owners = dig(body, "metadata", "ownerReferences") or ()
    return next((str(owner["uid"]) for owner in owners if owner.get("controller")), "")


def held_room(
    objects: Iterable[LiveObject], pods: Iterable[Pod], waiting: Unscheduled, requests: PodRequests
) -> Mapping[Identity, Mapping[str, Resources]]:
    """Return the resources on each node of the pods of each workload that waits, older revisions included."""
    identities = {
        uid: live.identity
        for live in objects
        if _waiting_of(live, waiting)
        for uid in waiting.replica_sets.get(live.uid, (live.uid,))
    }
    if not identities:
        return {}
    held_by: dict[Identity, dict[str, Counter[str]]] = {identity: {} for identity in identities.values()}
    for pod in pods:
        owner = controller(pod)
        identity = identities.get(owner.uid) if owner is not None else None
        if identity is not None and pod.spec.node_name and pod.status.phase not in FINISHED:
            held = held_by[identity].setdefault(pod.spec.node_name, Counter())
            held.update(requests.of(pod))
    return {identity: {node: dict(held) for node, held in by_node.items()} for identity, by_node in held_by.items()}


def workload(
    live: LiveObject,
    interpreter: Interpreter,
    pods: Unscheduled,
    *,
    now: str,
    held: Mapping[str, Resources] | None = None,
    signs: PodSigns | None = None,
) -> Workload:
    """Return the state of a workload. `signs`: diagnostics of its pods; None: not read, or there are none."""
    waiting = _waiting_of(live, pods)
    health, outcome = interpreter.health(live.body), interpreter.outcome(live.body)
    replicas = interpreter.demand(live.body).replicas or 0
    is_over = outcome is not RunOutcome.RUNS
    stuck_since = signs.stuck_since(interpreter.pods_needed(live.body)) if signs is not None and not is_over else ""
    if stuck_since:
        health = Health.UNHEALTHY
    return Workload(
        gvk=live.gvk,
        identity=live.identity,
        replicas=replicas,
        ready=_ready(live.body),
        unschedulable=len(waiting),
        unschedulable_since=min((pod.since for pod in waiting if pod.since), default=now) if waiting else "",
        health=health,
        unhealthy_since=_unhealthy_since(live.body, now, stuck_since) if health is Health.UNHEALTHY else "",
        ended_by_itself=outcome is RunOutcome.FAILED
        and (signs is None or interpreter.fails_by_itself(live.body, signs.failed, signs.disrupted)),
        assigned=owner.replicas if (owner := read_owner(live.body)) is not None else None,
        of_fleet=str(dig(live.body, "metadata", "labels", FLEET_LABEL) or ""),
        held=held,
    )


def _waiting_of(live: LiveObject, pods: Unscheduled) -> tuple[WaitingPods, ...]:
    observed, generation = dig(live.body, "status", "observedGeneration"), dig(live.body, "metadata", "generation")
    if isinstance(observed, int) and isinstance(generation, int) and observed < generation:
        # The controller has not made pods of the newest revision yet; those there are belong to an older one.
        return ()
    if live.identity.kind == "Deployment" and live.identity.group == "apps":
        return pods.by_owner.get(pods.newest_replica_set.get(live.uid, ""), ())
    waiting = pods.by_owner.get(live.uid, ())
    newest = dig(live.body, "status", "updateRevision")
    return tuple(pod for pod in waiting if not newest or pod.revision == newest)


def _ready(body: JsonObject) -> int:
    """Return the number of ready pods. A Job's succeeded pods count, since they are done."""
    status = mapping(body.get("status"))
    match body.get("kind"):
        case "Job":
            return count(status.get("ready"), 0) + count(status.get("succeeded"), 0)
        case "DaemonSet":
            return count(status.get("numberReady"), 0)
        case "Pod":
            return int(condition(body, "Ready").get("status") == "True")
    return count(status.get("readyReplicas"), 0)


def _unhealthy_since(body: JsonObject, now: str, stuck_since: str) -> str:
    """Since when it is known to be unhealthy; the latest bad condition, as an earlier one may have been a rollout."""
    if stuck_since:
        return min(stuck_since, now)
    bad = {**dict.fromkeys(_BAD_WHEN_FALSE, "False"), **dict.fromkeys(_BAD_WHEN_TRUE, "True")}
    times = [
        since
        for _, entry in mappings(dig(body, "status", "conditions"))
        if (since := api_moment(entry.get("lastTransitionTime")))
        and entry.get("status") == bad.get(text(entry.get("type")), _NO_STATUS)
    ]
    return min(max(times, default=now), now)
