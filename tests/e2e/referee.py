"""The referee of moves: audit logs of real clusters, from which it is read what was available when, in each one.

It shares nothing with the reconciler. The logs hold every workload as it was after each write, those of the cluster's
own controllers to its status among them, with the times of the API servers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from tests.real_clusters import RealCluster

Body = Mapping[str, Any]
Resource = tuple[str, str, str]
"""Plural, namespace and name."""


class Write(NamedTuple):
    """A write that a cluster accepted: when it arrived, by whom, and the workload afterwards.

    `after` None: it is gone, or going. What rests on a write arrives after it, if not after its answer: watches tell of
    it before, by a long time on a busy machine.
    """

    cluster: str
    resource: Resource
    arrived: datetime
    verb: str
    agent: str
    after: Body | None


class Taken(NamedTuple):
    """A request of ours that took something away: `kept` replicas were left, None: the whole copy went."""

    write: Write
    before: Body
    kept: int | None


class Referee:
    """Judges what fleets took away since it was called."""

    def __init__(self, clusters: Iterable[RealCluster]) -> None:
        self._clusters = {cluster.name: cluster for cluster in clusters}
        self._since = {name: cluster.mark() for name, cluster in self._clusters.items()}

    def taken(self, resource: Resource) -> list[Taken]:
        """Return the takings of a workload, oldest first."""
        return [found for history in self._histories(resource).values() for found in self._taken(history)]

    def judge(self, resource: Resource, is_over: Callable[[Body], bool] | None = None) -> int:
        """Return the number of copies taken away for a move, each only after its successors served.

        `is_over`: the condition on a successor, if not availability.

        Raises:
            AssertionError: a copy was taken away too early.
        """
        is_over = is_over or is_available
        histories = self._histories(resource)
        found = sorted(self.taken(resource), key=lambda taken: taken.write.arrived)
        for taken in found:
            others = dict(self._others(histories, taken))
            what = f"{resource} in {taken.write.cluster} at {taken.write.arrived}, kept {taken.kept}"
            assert others, f"nobody takes over: {what}"
            waiting = {name: _told(body) for name, body in others.items() if not is_over(body)}
            assert not waiting, f"not available yet in {waiting}: {what}"
        return len(found)

    def histories(self, resource: Resource) -> dict[str, list[Write]]:
        """Per cluster the writes of a workload since the referee was called, in the order of arrival."""
        return self._histories(resource)

    def _others(self, histories: Mapping[str, list[Write]], taken: Taken) -> Iterator[tuple[str, Body]]:
        """The copies that stay when one goes: those that the same commit takes away later are no successors."""
        for name, history in histories.items():
            if name == taken.write.cluster:
                continue
            body = state_at(history, taken.write.arrived)
            leaves = any(
                found.kept is None and found.write.agent == taken.write.agent for found in self._taken(history)
            )
            if body is not None and not leaves:
                yield name, body

    def _taken(self, history: list[Write]) -> Iterator[Taken]:
        before: Body | None = None
        for write in history:
            if before is not None and write.agent.startswith("fleet-reconciler/"):
                if write.verb == "delete":
                    yield Taken(write, before, None)
                elif write.after is not None and (replicas := _replicas(write.after)) < _replicas(before):
                    yield Taken(write, before, replicas)
            before = write.after

    def _histories(self, resource: Resource) -> dict[str, list[Write]]:
        """Per cluster, in the order of arrival. An audit log has the order in which answers went out."""
        return {name: sorted(self._history(name, resource), key=lambda write: write.arrived) for name in self._clusters}

    def _history(self, name: str, resource: Resource) -> Iterator[Write]:
        for event in self._clusters[name].writes(self._since[name]):
            reference = event.get("objectRef", {})
            found = (reference.get("resource"), reference.get("namespace", ""), reference.get("name", ""))
            if found != resource or event["responseStatus"]["code"] >= 300 or "dryRun" in event["requestURI"]:
                continue
            answer = event.get("responseObject") or {}
            is_there = answer.get("kind") not in (None, "Status", "Scale")
            if event["verb"] != "delete" and not is_there:
                continue
            yield Write(
                cluster=name,
                resource=resource,
                arrived=_time(event["requestReceivedTimestamp"]),
                verb=event["verb"],
                agent=event.get("userAgent", ""),
                after=None if event["verb"] == "delete" else answer,
            )


def state_at(history: Iterable[Write], moment: datetime) -> Body | None:
    """A workload as its cluster had it at a moment; None: it was not there."""
    state: Body | None = None
    for write in history:
        if write.arrived < moment:
            state = write.after
    return state


def is_available(body: Body) -> bool:
    """Return whether a Deployment, StatefulSet or DaemonSet serves as a whole, by its own cluster."""
    status, spec = body.get("status", {}), body["spec"]
    if status.get("observedGeneration") != body["metadata"]["generation"]:
        return False
    if body["kind"] == "DaemonSet":
        wanted = status.get("desiredNumberScheduled", 0)
        return bool(wanted and min(status.get("numberAvailable", 0), status.get("updatedNumberScheduled", 0)) >= wanted)
    wanted = spec.get("replicas", 1)
    return bool(min(status.get("availableReplicas", 0), status.get("updatedReplicas", 0)) >= wanted)


def is_there(body: Body) -> bool:
    """Return whether a copy exists: the condition of Immediately on a successor."""
    return bool(body)


def _replicas(body: Body) -> int:
    return int(body["spec"].get("replicas", 1))


def _told(body: Body) -> dict[str, Any]:
    return {"replicas": body["spec"].get("replicas"), "status": body.get("status")}


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)
