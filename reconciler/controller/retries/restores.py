"""Restored clusters: somebody put back a backup of their etcd. Source: design#restored-cluster.

Versions of a kind in one cluster grow. An answer with an earlier version than seen before is a reason for a check; but
one of several API servers may lag, or answer from memory. A cluster was restored if it has its identity, and each of
several answers, over new connections and read through to etcd, is older than seen before. Source: Kubernetes API
Concepts, resource versions; KEP-5504 (versions of a kind are compared as numbers).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from heapq import nlargest
from operator import itemgetter
from typing import Final, NamedTuple

from reconciler.api.ledger import Event
from reconciler.api.problem import NOWHERE, Problem, warning
from reconciler.api.refs import GVK
from reconciler.clock import Clock, within
from reconciler.containment import fault_fields, try_await
from reconciler.controller import timing
from reconciler.controller.inbox import ClusterChanged, ClusterScope, Inbox, Published
from reconciler.controller.loop_state import State
from reconciler.controller.vitals.logs import Transitions
from reconciler.errors import KindFault, MemberClusterError, ObjectNotFound
from reconciler.kube.client import MemberCluster
from reconciler.observations import age_s

ANSWERS: Final = 3
"""So many answers have to agree. Each comes over a connection of its own, and may be another API server's."""

REMEMBERED_MAX: Final = 3
"""So many kinds of a cluster are compared after a restart: all are of one etcd as a rule."""

CLUSTER_WENT_BACK: Final = "cluster-went-back"


class VersionDecrease(NamedTuple):
    """A version seen before, while a later answer had an earlier one. `name` empty: the list of the kind."""

    gvk: GVK
    namespace: str
    name: str
    version: int


class Restores:
    """The versions that were seen, what contradicts them, and the clusters that went back. All of one loop."""

    def __init__(self) -> None:
        self._newest: dict[str, dict[GVK, int]] = {}
        self.suspected: dict[str, dict[VersionDecrease, None]] = {}
        """By cluster to be checked. Nothing is written there before: that would make what is older new."""
        self._since: dict[str, str] = {}
        """Cluster to when it was noticed (RFC 3339)."""
        self._faults = Transitions()

    def recall(self, events: Iterable[Event], versions: Mapping[str, Mapping[GVK, int]]) -> None:
        """Continue from history, newest first, and check each cluster by what the process before has seen there."""
        for event in events:
            self._since.setdefault(event.subject.removeprefix("cluster "), event.time)
        for cluster, kinds in versions.items():
            self._newest[cluster] = dict(kinds)
            for gvk, version in kinds.items():
                if "." not in gvk.group:  # What an extension serves may fail for long.
                    self.suspect(cluster, VersionDecrease(gvk, "", "", version))

    def newest(self) -> dict[str, dict[GVK, int]]:
        """By cluster the newest versions that were seen, of a few kinds."""
        return {
            cluster: dict(nlargest(REMEMBERED_MAX, kinds.items(), key=itemgetter(1)))
            for cluster, kinds in self._newest.items()
        }

    def saw(self, cluster: str, gvk: GVK, resource_version: str) -> None:
        """An event, or the answer to a write, has this version. An older one says nothing: it may have come late."""
        newest = self._newest.setdefault(cluster, {})
        newest[gvk] = max(number_of(resource_version), newest.get(gvk, 0))

    def listed(self, cluster: str, gvk: GVK, resource_version: str) -> None:
        """A list is as of this version."""
        number, newest = number_of(resource_version), self._newest.get(cluster, {}).get(gvk, 0)
        if 0 < number < newest:
            self.suspect(cluster, VersionDecrease(gvk, "", "", newest))
        else:
            self.saw(cluster, gvk, resource_version)

    def suspect(self, cluster: str, suspicion: VersionDecrease) -> None:
        """Note an answer that is older than an earlier one."""
        self.suspected.setdefault(cluster, {})[suspicion] = None

    def forget(self, clusters: Iterable[str]) -> None:
        """Nothing was seen of these."""
        for cluster in clusters:
            self._newest.pop(cluster, None)
            self.suspected.pop(cluster, None)

    def went_back(self, cluster: str, now: str) -> None:
        """The past that was seen is none any more."""
        self.forget((cluster,))
        self._since[cluster] = now

    def problems(self, now: str) -> tuple[Problem, ...]:
        """Return the problems of recently restored clusters."""
        return tuple(
            warning(
                NOWHERE, "", CLUSTER_WENT_BACK,
                f"it went back to an earlier state, noticed at {since}; was a backup of its etcd put back? All of it "
                "is looked at again: what is missing is made again, what had been deleted and is back stays "
                f"(not-deleted) until 'reconciler journal rebuild STORE --cluster {name}', without the service, has "
                "taken stock of it", name,
            )
            for name, since in sorted(self._since.items()) if age_s(since, now) < timing.WENT_BACK_SHOWN_S
        )  # fmt: skip

    async def watch(self, latest: Published[State], clock: Clock, inbox: Inbox) -> None:
        """Check suspected clusters for ever; each restored one is sent."""
        while True:
            members, uids = latest.value.members, latest.value.known.cluster_uids
            identified = {name: (member, uids[name]) for name, member in members.items() if name in uids}
            for name in await self.confirmed(identified):
                inbox.send(ClusterChanged(name, ClusterScope.RESTORED))
            await clock.sleep(timing.TICK_S)

    async def confirmed(self, members: Mapping[str, tuple[MemberCluster, str]]) -> list[str]:
        """Those of the suspected clusters that went back. What could not be asked is asked the next time."""
        due = {name: members[name] for name, why in self.suspected.items() if why and name in members}
        looks = (try_await(_went_back(*at, tuple(self.suspected[name]))) for name, at in due.items())
        went_back = []
        for name, answer in zip(due, await asyncio.gather(*looks), strict=True):
            if answer.fault is not None:
                text = "whether a cluster went back could not be found out by a fault of this program"
                self._faults.fault(name, answer.fault, text, **fault_fields(name))
            elif answer.value:
                went_back.append(name)
                self.suspected[name] = {}  # Until a round knows it, nothing is written there.
            if answer.fault is not None or answer.value is False:
                self.suspected.pop(name, None)
        return went_back


async def _went_back(member: MemberCluster, uid: str, suspicions: Iterable[VersionDecrease]) -> bool | None:
    """Return whether a cluster was restored, by the first suspicion that can be checked; None: it cannot be asked."""
    try:
        # Another cluster is told and left alone.
        for suspicion in suspicions if await within(member.identity(), timing.PROMPT_S) == uid else ():
            is_older = await _is_older(member, suspicion)
            if is_older is not None:
                return is_older
    except (MemberClusterError, TimeoutError):
        return None
    return False


async def _is_older(member: MemberCluster, suspicion: VersionDecrease) -> bool | None:
    """Return whether several answers each have an older version than was seen; None: it is gone, or may not be read."""
    gvk, namespace, name, version = suspicion
    try:
        for _ in range(ANSWERS):
            version_now = member.current_version(gvk, namespace=namespace, name=name)
            if not 0 < number_of(await within(version_now, timing.PROMPT_S)) < version:
                return False
    except (KindFault, ObjectNotFound):
        return None
    return True


def number_of(version: str) -> int:
    """A version as a number; 0: it is none."""
    return int(version) if version.isdecimal() else 0
