"""Pod diagnostics of unhealthy workloads, since their own status only counts ready replicas.

Without an unhealthy workload nothing is asked. After some seconds, the pods of its namespace are listed, ever more
rarely while no new one becomes unhealthy there; if it lacks pods and only events tell why, those events, too. Without
the right to list them, the status has to do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from typing import Final, TypeVar

from reconciler.adapters.clock import Clock
from reconciler.adapters.kube.client import MemberCluster
from reconciler.adapters.kube.shapes.pods import Pod
from reconciler.adapters.observe.pod_troubles import Trouble, failed_creations, pod_troubles, refusals
from reconciler.containment import Contained, awaited, contained, fault_fields
from reconciler.daemon import timing
from reconciler.daemon.observing.members import Reachable
from reconciler.daemon.pace.healths import Healths
from reconciler.daemon.work_queue import WorkQueue
from reconciler.errors import MemberClusterError
from reconciler.interpreters.registry import GENERIC, Registry
from reconciler.model.refs import Identity
from reconciler.stages.state import Copy

log = logging.getLogger("reconciler")

_T = TypeVar("_T")

_AT_ONCE = 4
"""So many namespaces of one cluster are asked in one turn."""

NOT_ASKED: Final[Contained[Mapping[str, str]]] = Contained(None)

_Place = tuple[str, str]


class Ailments:
    """The namespaces that are asked, by when."""

    def __init__(self, healths: Healths, interpreters: Registry, clock: Clock) -> None:
        """Nothing ails."""
        self._healths = healths
        self._interpreters = interpreters
        self._since: dict[Copy, float] = {}
        self._clock = clock
        self._queue = WorkQueue[_Place](timing.RETRY_BACK_OFF, clock)
        self._asked: dict[_Place, frozenset[Copy]] = {}
        """Unhealthy copies of a namespace when it was asked last."""

    async def watch(self, reachable: Callable[[], Reachable]) -> None:
        """Look now and then, without end, in the clusters that can be reached by then."""
        while True:
            await self._clock.sleep(timing.TICK_S)
            there = {name: member for name, member in reachable().items() if not isinstance(member, str)}
            await self.look(there)

    async def look(self, members: Mapping[str, MemberCluster]) -> int:
        """List the pods of unhealthy workloads that are due; return the number of lists."""
        ailing = [copy for copy in self._healths.ailing() if self._has_pods(copy[1])]
        if not ailing:
            self._since, self._asked = {}, {}
            self._queue.keep(())
            return 0
        now_s = self._clock.monotonic_s()
        self._since = {copy: self._since.get(copy, now_s) for copy in ailing}
        due = self._due(members)
        await asyncio.gather(*(self._ask(members[cluster], namespace) for cluster, namespace in due))
        return len(due)

    def _has_pods(self, identity: Identity) -> bool:
        # A bare Pod reports all of it itself.
        is_pod = identity[:2] == ("", "Pod")
        return not is_pod and self._interpreters.of(*identity[:2]).pod_template is not GENERIC.pod_template

    def _due(self, members: Iterable[str]) -> list[_Place]:
        now_s = self._clock.monotonic_s()
        places: dict[_Place, set[Copy]] = {}
        for copy, since_s in self._since.items():
            if now_s - since_s >= timing.AILS_S and copy[0] in members:
                places.setdefault((copy[0], copy[1].namespace), set()).add(copy)
        self._asked = {place: asked for place, asked in self._asked.items() if place in places}
        self._queue.keep(places.keys())
        stirred, self._healths.stirred = self._healths.stirred, set()
        for place, copies in sorted(places.items()):
            if not copies <= self._asked.get(place, frozenset()):
                self._queue.reset(place)
                self._queue.add(place)
            elif copies & stirred:
                self._queue.reset(place)
                self._queue.add_after(place, timing.RETRY_BACK_OFF.least_s)
        due: list[_Place] = []
        for place in self._queue.due():
            if sum(cluster == place[0] for cluster, _ in due) < _AT_ONCE:
                self._queue.requeue_rate_limited(place)
                self._asked[place] = frozenset(places[place])
                due.append(place)
        return due

    async def _ask(self, member: MemberCluster, namespace: str) -> None:
        copies = [copy for copy in self._since if copy[0] == member.name and copy[1].namespace == namespace]
        lacking = self._healths.lacking_pods(copies)
        asked = await awaited(_prompt(member.pods(namespace=namespace)))
        pods = asked.value or ()
        refused = await awaited(_prompt(_refusals(member, namespace, pods, lacking))) if lacking else NOT_ASKED
        found = contained(pod_troubles, pods)
        for fault in filter(None, (asked.fault, refused.fault, found.fault)):
            _tell(member.name, namespace, fault)
        troubles, why = found.value or {}, refused.value or {}
        told: dict[Identity, Trouble | None] = {identity: troubles.get(identity) for _, identity in copies}
        self._healths.explain(member.name, told, {lacking[uid]: said for uid, said in why.items()})


async def _refusals(
    member: MemberCluster, namespace: str, pods: Iterable[Pod], lacking: Collection[str]
) -> Mapping[str, str]:
    return refusals(await failed_creations(member, namespace), pods, lacking)


async def _prompt(asked: Awaitable[_T]) -> _T:
    async with asyncio.timeout(timing.PROMPT_S):
        return await asked


def _tell(cluster: str, namespace: str, fault: Exception) -> None:
    if isinstance(fault, MemberClusterError | TimeoutError):
        log.debug("it could not be asked why pods do not run", extra={"cluster": cluster, "error": str(fault)})
    else:
        extra = fault_fields(cluster, f"pods of {namespace}")
        log.error("pods could not be understood", exc_info=fault, extra=extra)
