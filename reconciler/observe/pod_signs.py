"""Pod diagnostics beyond the status of a workload: pods that lost their node, or find none.

The status of a Job or a training job counts a pod on a dead node as running, and one without a node as about to start.
Source: Kubernetes, "Pod disruption conditions" and "Garbage collection of Pods"; kstatus, ScheduleWindow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from reconciler.api.clusters import LiveObject
from reconciler.api.refs import Identity
from reconciler.kube.pod_shapes import Condition, NodeObject, OwnerReference, Pod
from reconciler.observations import age_s, told_moment

FINISHED: Final = ("Succeeded", "Failed")
SCHEDULE_WINDOW_S: Final = 15.0
"""A pod that the scheduler refused so short a time ago may yet find a node."""
_OF_THE_POD_ITSELF: Final = ("", "DeadlineExceeded")
"""Reasons of failed pods whose containers failed, or which ran for too long: no node and no cluster is to blame."""

OwnerOf = Callable[[Pod], OwnerReference | None]


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
    objects: Iterable[LiveObject], pods: Iterable[Pod], nodes: Iterable[NodeObject] | None, now: str
) -> Mapping[Identity, PodSigns]:
    """Return the pod diagnostics of every workload whose own status does not cover them.

    `nodes` None: they could not be read, and no pod is on a lost one.
    """
    pods = tuple(pods)
    # The controllers of apps/v1 report ready pods, and a lost node makes its pods unready.
    identities = {live.uid: live.identity for live in objects if live.identity.group != "apps"}
    if not identities:
        return {}
    found: dict[Identity, list[Pod]] = {identity: [] for identity in identities.values()}
    owner_of = owners(pods)
    for pod in pods:
        owner = owner_of(pod)
        identity = identities.get(owner.uid if owner is not None else pod.metadata.uid)
        if identity is not None:
            found[identity].append(pod)
    lost = None if nodes is None else _NodeAnswers(nodes, now)
    return {identity: _signs(members, lost, now) for identity, members in found.items()}


def owners(pods: Iterable[Pod]) -> OwnerOf:
    """Return a function that finds the top-level owner of a pod; for a Spark executor, the owner of its driver.

    None for a bare pod.
    """
    pods = tuple(pods)
    leaders = {owner.uid for pod in pods if (owner := controller(pod)) is not None and owner.kind == "Pod"}
    above = {pod.metadata.uid: controller(pod) for pod in pods if pod.metadata.uid in leaders} if leaders else {}

    def owner_of(pod: Pod) -> OwnerReference | None:
        owner = controller(pod)
        return (above.get(owner.uid) or owner) if owner is not None and owner.kind == "Pod" else owner

    return owner_of


def controller(pod: Pod) -> OwnerReference | None:
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
    return None if pod.spec.node_name or pod.status.phase in FINISHED else told_moment(condition.last_transition_time)


class _NodeAnswers:
    """Which nodes answer, and since when the others do not."""

    def __init__(self, nodes: Iterable[NodeObject], now: str) -> None:
        self._now = now
        self._since: dict[str, str] = {}
        for node in nodes:
            ready = condition_of(node.status.conditions, "Ready")
            is_ready = ready is not None and ready.status == "True"
            since = told_moment(ready.last_transition_time) if ready is not None else ""
            self._since[node.metadata.name] = "" if is_ready else since or now

    def lost_since(self, name: str) -> str:
        """Return since when the node has not answered; empty: it does. A deleted node counts as since now."""
        return self._since.get(name, self._now)


def _signs(pods: Iterable[Pod], nodes: _NodeAnswers | None, now: str) -> PodSigns:
    alive = succeeded = failed = disrupted = 0
    stuck: list[str] = []
    for pod in pods:
        if pod.status.phase == "Failed":
            is_own = _failed_by_itself(pod)
            failed, disrupted = failed + is_own, disrupted + (not is_own)
        elif pod.status.phase == "Succeeded":
            succeeded += 1
        elif (since := _stuck_since(pod, nodes, now)) is None:
            alive += not pod.metadata.deletion_timestamp
        elif since:
            # Including pods being deleted: on a lost node nothing can end them.
            stuck.append(since)
    return PodSigns(alive=alive, stuck=tuple(stuck), succeeded=succeeded, failed=failed, disrupted=disrupted)


def _stuck_since(pod: Pod, nodes: _NodeAnswers | None, now: str) -> str | None:
    """Since when it cannot run, empty: it may find a node yet; None: it can."""
    if pod.spec.node_name:
        return (nodes.lost_since(pod.spec.node_name) or None) if nodes is not None else None
    since = refused_since(pod)
    if since is None:
        return None
    return (since or now) if age_s(since or now, now) > SCHEDULE_WINDOW_S else ""


def _failed_by_itself(pod: Pod) -> bool:
    """Return whether its containers failed, and it was ended neither by its node nor by a preemption or a person."""
    return pod.status.reason in _OF_THE_POD_ITSELF and not any(map(_disrupts, pod.status.conditions or ()))


def _disrupts(condition: Condition) -> bool:
    return (condition.type, condition.status) == ("DisruptionTarget", "True")


def waiting_pods(pods: Iterable[Pod]) -> Iterator[tuple[Pod, str]]:
    """Pods that the scheduler found no node for and that are not on their way out, with since when."""
    for pod in pods:
        since = refused_since(pod)
        if since is not None and not pod.metadata.deletion_timestamp:
            yield pod, since
