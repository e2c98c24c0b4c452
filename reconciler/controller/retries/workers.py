"""One worker for each cluster writes its changes; no other cluster and no round waits for it.

An object that is being written is unknown to rounds until its answer is in: it is neither compared nor written a second
time. Source: design#promise-7: a bad cluster fails by itself; ADR 14.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, Iterable, Sequence
from functools import partial
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from reconciler.api.clusters import LiveObject, Read
from reconciler.api.refs import Identity
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.inbox import ApplyDone, Inbox
from reconciler.controller.round.apply_plan import ChangeResult
from reconciler.controller.tasks import end_tasks, start
from reconciler.fleet_snapshot import FleetSnapshot
from reconciler.kube.watch_stream import WatchEvent

_SHARE: Final = 10
"""So many times as long as that took, the next time is put off: it looks at all that is due still."""


class ApplyResult(Struct, frozen=True, kw_only=True):
    """The result of a job, or of a part of it: then the rest is another one.

    `events`: the last one of each object during its write. `skipped`: objects that rounds left out in this cluster
    meanwhile, and have to evaluate now. `now`: the time of the round (RFC 3339).
    """

    cluster: str
    revision: str
    now: str
    identities: frozenset[Identity]
    results: tuple[ChangeResult, ...]
    events: tuple[WatchEvent, ...] = ()
    skipped: frozenset[Identity] = frozenset()


class _ApplyJob(Struct, kw_only=True):
    cluster: str
    revision: str
    now: str
    identities: frozenset[Identity]
    writing: asyncio.Task[None]
    is_of_this_round: bool = True
    results: list[ChangeResult]
    versions: dict[Identity, tuple[str, str]] = field(default_factory=dict)
    """The answers: uid and version."""
    events: dict[Identity, WatchEvent] = field(default_factory=dict)
    skipped: set[Identity] = field(default_factory=set)
    listed: dict[Identity, tuple[str, str]] = field(default_factory=dict)
    """Listed versions during the write: uid and version."""


async def _collect(writing: AsyncIterable[Sequence[ChangeResult]], results: list[ChangeResult]) -> None:
    async for group in writing:
        results += group


class ClusterWorkers:
    """At most one job in each cluster. All of it belongs to the control loop's task.

    Results are recorded at once if few, else at most 10 % of the time: that costs as much as the fleet is large.
    """

    def __init__(self, inbox: Inbox, clock: Clock) -> None:
        self._inbox, self._clock = inbox, clock
        self._jobs: dict[str, _ApplyJob] = {}
        self._next_part_s = self._next_end_s = 0.0

    def begin(
        self,
        cluster: str,
        writing: AsyncIterable[Sequence[ChangeResult]],
        *,
        revision: str,
        now: str,
        identities: frozenset[Identity],
    ) -> None:
        """Write one cluster's part of a plan, which yields its results, in a cluster that is not busy."""
        results: list[ChangeResult] = []
        running = start(
            _collect(writing, results), f"writing to {cluster}", partial(self._inbox.send, ApplyDone(cluster))
        )
        self._jobs[cluster] = _ApplyJob(
            cluster=cluster, revision=revision, now=now, identities=identities, writing=running, results=results
        )

    def answered(self, result: ChangeResult) -> None:
        """Record one answer. An event with just that version is no news, and is not kept."""
        job, identity = self._jobs.get(result.change.cluster), result.change.identity
        if job is None or result.error:
            return
        version = job.versions[identity] = (result.uid, result.resource_version)
        event = job.events.get(identity)
        if event is not None and _shows(event, version):
            del job.events[identity]
        if job.listed.get(identity) == version:
            del job.listed[identity]

    @property
    def busy(self) -> frozenset[str]:
        """Return the clusters with running writes, or with uncollected results."""
        return frozenset(self._jobs)

    @property
    def is_of_this_round_open(self) -> bool:
        """Return whether a job of this round still runs."""
        return any(job.is_of_this_round and not job.writing.done() for job in self._jobs.values())

    @property
    def has_ended(self) -> bool:
        """Return whether a finished job is to be collected."""
        return any(job.writing.done() for job in self._jobs.values())

    def recorded(self, begun_s: float) -> None:
        """Results were recorded just now, which began then (monotonic seconds)."""
        ends_s = self._clock.monotonic_s()
        self._next_end_s = ends_s + (ends_s - begun_s) * _SHARE
        self._next_part_s = max(ends_s + timing.TICK_S, self._next_end_s)

    @property
    def is_part_due(self) -> bool:
        """Return whether results of running jobs are to be recorded now."""
        has_results = any(job.results or job.writing.done() for job in self._jobs.values())
        return has_results and self._clock.monotonic_s() >= self._next_part_s

    @property
    def is_end_due(self) -> bool:
        """Return whether finished jobs are to be recorded now, without a round that does so in any case."""
        ended = [job.writing for job in self._jobs.values() if job.writing.done()]
        # What ends the service, and the last one of all, wait for nothing.
        is_last = len(ended) == len(self._jobs) or any(not one.cancelled() and one.exception() for one in ended)
        return bool(ended) and (is_last or self._clock.monotonic_s() >= self._next_end_s)

    @property
    def pause_s(self) -> float:
        """Return the seconds until the next recording, while jobs run."""
        left_s = self._next_end_s - self._clock.monotonic_s() if self.has_ended else timing.TICK_S
        return max(0.0, min(left_s, timing.TICK_S))

    def is_under_way(self, cluster: str, identity: Identity) -> bool:
        """Return whether the object is being written."""
        job = self._jobs.get(cluster)
        return job is not None and identity in job.identities

    def is_awaited(self, cluster: str, identity: Identity) -> bool:
        """Return whether the object is being written, or is to be evaluated after its cluster's job."""
        job = self._jobs.get(cluster)
        return job is not None and (identity in job.identities or identity in job.skipped)

    def saw(self, cluster: str, event: WatchEvent) -> bool:
        """Keep an event of a pending object until its answer is in; return False if it is not pending."""
        if not self.is_under_way(cluster, event.object.identity):
            return False
        job, identity = self._jobs[cluster], event.object.identity
        if not _shows(event, job.versions.get(identity)):
            job.events[identity] = event
        return True

    def listed(self, cluster: str, live: LiveObject) -> None:
        """Record a listed pending object, perhaps of before the write or as others left it."""
        job, version = self._jobs[cluster], (live.uid, live.resource_version)
        if job.versions.get(live.identity) != version:
            job.listed[live.identity] = version

    def skip(self, cluster: str, identities: Iterable[Identity]) -> None:
        """A round wants something of these in a busy cluster: they are looked at once it no longer is."""
        self._jobs[cluster].skipped.update(identities)

    def without(self, snapshot: FleetSnapshot) -> FleetSnapshot:
        """Return the snapshot with pending objects unknown."""
        members = dict(snapshot.members)
        for name, job in self._jobs.items():
            member, writes = members.get(name), job.identities
            if isinstance(member, Read):
                objects = {identity: live for identity, live in member.objects.items() if identity not in writes}
                members[name] = replace(
                    member, objects=objects, absent=member.absent - writes, under_way=member.under_way | writes
                )
            job.skipped.update(identity for identity in writes if snapshot.is_asked(name, identity))
        return replace(snapshot, members=members)

    def collect(self, *, of_this_round: bool = False, parts: bool = True) -> list[ApplyResult]:
        """Return new results, in the order of the clusters.

        `of_this_round`: only of jobs that this round began. `parts`: also of running jobs. Results are collected part
        by part, so that neither they nor events pile up during a large write.

        Raises:
            FleetHeld: another journal holds the fleet.
            JournalError: nothing is sent that could not be journaled first.
        """
        ended = []
        for name, job in sorted(self._jobs.items()):
            if job.is_of_this_round < of_this_round:
                continue
            if job.writing.done():
                del self._jobs[name]
                if not job.writing.cancelled():
                    job.writing.result()
                    ended.append(_part(job, job.identities))
                    continue
            if job.results and (parts or job.writing.done()):
                ended.append(_part(job, frozenset(result.change.identity for result in job.results)))
        return ended

    def round_ends(self) -> None:
        """End the round: running jobs no longer belong to it."""
        for job in self._jobs.values():
            job.is_of_this_round = False

    async def close(self, leave_s: float = 0.0) -> None:
        """Wait for running jobs, then cancel them as a crash would: open intents are inspected at the next start."""
        running = [job.writing for job in self._jobs.values()]
        if running and leave_s:
            await asyncio.wait(running, timeout=leave_s)
        await end_tasks(running)


def _shows(event: WatchEvent, version: tuple[str, str] | None) -> bool:
    return event.type != "DELETED" and (event.object.uid, event.object.resource_version) == version


def _part(job: _ApplyJob, identities: frozenset[Identity]) -> ApplyResult:
    """Return the results of these objects and remove them; a complete job's part includes the skipped objects."""
    left = job.identities - identities
    to_look_at = job.skipped.union(job.listed)
    skipped = frozenset(to_look_at & identities if left else to_look_at)
    events = {identity: job.events.pop(identity) for identity in identities & job.events.keys()}
    results = tuple(job.results)
    job.results.clear()
    for identity in identities:
        job.versions.pop(identity, None)
        job.listed.pop(identity, None)
    part = ApplyResult(
        cluster=job.cluster,
        revision=job.revision,
        now=job.now,
        identities=identities,
        results=results,
        events=tuple(event for _, event in sorted(events.items())),
        skipped=skipped,
    )
    job.identities = left
    job.skipped -= skipped
    return part
