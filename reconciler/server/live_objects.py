"""Looks at one copy in its cluster on demand: short, few at a time, and kept for a moment for all readers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping
from typing import Final, TypeVar

from reconciler.api.clusters import LiveObject
from reconciler.api.content import dig
from reconciler.api.refs import GVK, Identity
from reconciler.clock import Clock
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import MemberClusterError
from reconciler.kube.client import MemberCluster
from reconciler.report.views.live_view import LiveLog, LiveReading, container_states, is_broken, owner_uid

READ_S: Final = 5.0
"""A look ends by then, with what it has."""
KEPT_S: Final = 10.0
"""For so long a look is not repeated."""
_SPARE_S: Final = 0.5
"""So long before its end a look gives up what is still to come."""
_READS_MAX: Final = 4
_KEPT_MAX: Final = 64
_PODS_MAX: Final = 100
_EVENTS_MAX: Final = 50
_BROKEN_MAX: Final = 3
_LOG_LINES: Final = 50
_LOG_BYTES: Final = 32_768
_POD, _EVENT = GVK("", "v1", "Pod"), GVK("", "v1", "Event")
_REPLICA_SET, _JOB = GVK("apps", "v1", "ReplicaSet"), GVK("batch", "v1", "Job")
_OWNS: Final = {"Deployment": (_REPLICA_SET, _POD), "CronJob": (_JOB, _POD)}
"""Kinds below a kind; below any other one with a selector, its pods."""

_T = TypeVar("_T")


class LiveObjects:
    """The looks of one service. `logs`: the operator allows reading the end of a broken pod's log."""

    def __init__(self, vitals: Vitals, clock: Clock, *, logs: bool) -> None:
        """Nothing is asked before the first look. `vitals`: has the clusters as they are reached now."""
        self._vitals, self._clock, self._logs = vitals, clock, logs
        self._readings: dict[tuple[str, Identity], tuple[float, asyncio.Task[LiveReading]]] = {}
        self._slots = asyncio.Semaphore(_READS_MAX)
        self._locks: dict[str, asyncio.Lock] = {}

    async def read(self, cluster: str, gvk: GVK, identity: Identity) -> LiveReading:
        """Return what is there now, or was a moment ago; `why` says why nothing is known."""
        key, now_s = (cluster, identity), self._clock.monotonic_s()
        self._readings = {each: one for each, one in self._readings.items() if now_s - one[0] < KEPT_S}
        if key not in self._readings:
            if len(self._readings) >= _KEPT_MAX:
                return LiveReading(
                    at=self._clock.now(), why="too many objects are looked at now; ask again in a moment"
                )
            self._readings[key] = now_s, asyncio.create_task(self._read_live(cluster, gvk, identity))
        # A reader that goes ends no look of others.
        return await asyncio.shield(self._readings[key][1])

    async def close(self) -> None:
        """End all looks."""
        tasks = [task for _, task in self._readings.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _read_live(self, cluster: str, gvk: GVK, identity: Identity) -> LiveReading:
        at, member = self._clock.now(), self._vitals.members.get(cluster)
        if member is None:
            return LiveReading(at=at, why="this process has no access to the cluster now")
        ends_s = asyncio.get_running_loop().time() + READ_S
        try:
            async with asyncio.timeout_at(ends_s):
                # A silent cluster holds up only those who look at it.
                async with self._locks.setdefault(cluster, asyncio.Lock()), self._slots:
                    live = await member.get(gvk, identity.namespace, identity.name)
                    return await _CopyReader(member, live, at, ends_s - _SPARE_S, logs=self._logs).around()
        except TimeoutError:
            return LiveReading(at=at, why=f"the cluster does not answer: nothing came within {READ_S:g} s")
        except MemberClusterError as error:
            return LiveReading(at=at, why=error.message)


class _CopyReader:
    """Reads one object and what is around it. Each part may fail by itself, and is then noted."""

    def __init__(self, member: MemberCluster, live: LiveObject, at: str, ends_s: float, *, logs: bool) -> None:
        self._member, self._live, self._at, self._ends_s, self._logs = member, live, at, ends_s, logs
        self._notes: list[str] = []

    async def around(self) -> LiveReading:
        owned = await self._part("pods", self._owned(), ())
        broken = [each for each in (self._live, *owned) if is_broken(each)][:_BROKEN_MAX]
        # The newest between a workload and its pods tells why pods are not made.
        between = [each for each in owned if each.identity.kind != "Pod"]
        between.sort(key=lambda each: str(dig(each.body, "metadata", "creationTimestamp")))
        about = {each.uid: each for each in (self._live, *broken, *between[-1:])}
        events, logs = await asyncio.gather(
            self._part("events", self._events(about.values()), ()),
            asyncio.gather(*(self._part(f"log of {pod.identity.name}", self._tails(pod), ()) for pod in broken)),
        )
        tails = tuple(tail for of_pod in logs for tail in of_pod)
        notes = tuple(sorted(set(self._notes)))
        return LiveReading(at=self._at, live=self._live, owned=owned, events=events, logs=tails, notes=notes)

    async def _part(self, what: str, answer: Awaitable[_T], otherwise: _T) -> _T:
        try:
            async with asyncio.timeout_at(self._ends_s):
                return await answer
        except TimeoutError:
            self._notes.append(f"{what}: nothing came in time")
        except MemberClusterError as error:
            self._notes.append(f"{what}: {error.message}")
        return otherwise

    async def _owned(self) -> tuple[LiveObject, ...]:
        labels = dig(self._live.body, "spec", "selector", "matchLabels")
        kinds = _OWNS.get(self._live.identity.kind, (_POD,))
        if not isinstance(labels, Mapping) and self._live.identity.kind != "CronJob":
            return ()
        selector = ",".join(f"{key}={value}" for key, value in dict(labels or {}).items())
        owned: list[LiveObject] = []
        uids = {self._live.uid}
        for kind in kinds:
            listed = await self._member.first_objects(
                kind, _PODS_MAX, namespace=self._live.identity.namespace, label_selector=selector
            )
            ours = [each for each in listed if owner_uid(each) in uids]
            uids |= {each.uid for each in ours}
            owned += ours
        return tuple(owned)

    async def _events(self, about: Iterable[LiveObject]) -> tuple[LiveObject, ...]:
        lists = await asyncio.gather(
            *(
                self._member.first_objects(
                    _EVENT,
                    _EVENTS_MAX,
                    namespace=each.identity.namespace or "default",
                    field_selector=f"involvedObject.uid={each.uid}",
                )
                for each in about
            )
        )
        return tuple(event for events in lists for event in events)

    async def _tails(self, pod: LiveObject) -> tuple[LiveLog, ...]:
        if not self._logs:
            return ()
        tails = []
        for name, is_ready, restarts, reason in container_states(pod):
            if is_ready or (not restarts and reason in _NEVER_RAN):
                continue
            # Between two runs there is only the log of the last one.
            is_previous = restarts > 0 and reason == "CrashLoopBackOff"
            text = await self._member.pod_log(
                pod.identity.namespace, pod.identity.name, name,
                lines=_LOG_LINES, bytes_max=_LOG_BYTES, is_previous=is_previous,
            )  # fmt: skip
            tails.append(LiveLog(pod=pod.identity.name, container=name, lines=(text,), is_previous=is_previous))
        return tuple(tails)


_NEVER_RAN: Final = frozenset(
    {"ContainerCreating", "PodInitializing", "ErrImagePull", "ImagePullBackOff", "InvalidImageName",
     "CreateContainerConfigError", "CreateContainerError"}
)  # fmt: skip
"""Reasons of containers that have not run, so that they have no log."""
