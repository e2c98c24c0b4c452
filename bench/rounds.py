"""The cost of the control loop for a commit of one file: `python -m bench.rounds 10000` prints JSON.

Members answer from memory and the journal is a real one, so this is the loop's own work: reading, deciding, settling,
journaling, and the picture that `status` shows.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Collection, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

from bench import corpus
from bench.measure import percentile
from bench.members import live_object, row_of
from reconciler.api.clusters import LiveObject, Observations
from reconciler.api.fleet import Fleet, Snapshot, StoreFile
from reconciler.api.plan import Manifest
from reconciler.api.refs import GVK, Identity
from reconciler.api.rollouts import Ancestry
from reconciler.clock import SystemClock
from reconciler.controller.loop import ControlLoop
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.once.planning import Access
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.store_in_force import StoreInForce
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import ConfigurationError, ObjectNotFound
from reconciler.journal.sqlite_journal import Journal
from reconciler.kinds.registry import BUILT_IN_KINDS
from reconciler.kube.answers import Listing
from reconciler.kube.connection.kubeconfig import MemberConfig
from reconciler.kube.discovery import Discovery
from reconciler.kube.kube_requests import ServedKind
from reconciler.kube.member_clusters import MemberClusters, UserAgent
from reconciler.planner import previous_of, render_schedule
from reconciler.scheduler import schedule_fleet
from reconciler.store import StoreSource

NOW = "2026-11-21T10:00:00Z"
COMMITS = 15
FLEET = "bench"
_KINDS = {
    GVK("apps", "v1", "Deployment"): "deployments",
    GVK("", "v1", "Service"): "services",
    GVK("", "v1", "ConfigMap"): "configmaps",
    GVK("", "v1", "Namespace"): "namespaces",
}
_VERBS = frozenset({"get", "list", "watch", "create", "patch", "delete"})
_DISCOVERY = Discovery(
    kinds={
        gvk: ServedKind(gvk=gvk, plural=plural, namespaced=gvk.kind != "Namespace", verbs=_VERBS)
        for gvk, plural in _KINDS.items()
    }
)


class MemoryMember:
    """The requests of a member cluster, answered at once."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.objects: dict[Identity, LiveObject] = {}
        self.versions = 1
        self.answers = 0

    async def identity(self) -> str:
        """The uid that the journal recorded."""
        return f"uid-of-{self.name}"

    async def discover(self, *, refresh: bool = False) -> Discovery:
        """The kinds of the generated fleet."""
        return _DISCOVERY

    async def list_objects(self, gvk: GVK, **_: str) -> Listing:
        """Everything is ours, so selectors select everything."""
        found = tuple(live for live in self.objects.values() if live.gvk == gvk)
        return Listing(objects=found, resource_version=str(self.versions))

    async def list_metadata(self, gvk: GVK, **query: str) -> Listing:
        """Whole objects do as well."""
        return await self.list_objects(gvk, **query)

    async def get(self, gvk: GVK, namespace: str, name: str) -> LiveObject:
        """The object. Raises ObjectNotFound."""
        found = self.objects.get(Identity(gvk.group, gvk.kind, namespace, name))
        if found is None:
            raise ObjectNotFound(self.name, f"{gvk.kind} {namespace}/{name} is not there", status=404)
        return found

    async def create(self, gvk: GVK, namespace: str, name: str, body: Any, *, manager: str) -> LiveObject:
        """The object as it is now."""
        self.versions += 1
        live = live_object(gvk, Identity(gvk.group, gvk.kind, namespace, name), body, FLEET, str(self.versions))
        self.objects[live.identity] = live
        return live

    async def apply(self, gvk: GVK, namespace: str, name: str, body: Any, *, manager: str, **_: Any) -> LiveObject:
        """The object as it is now; the manager is the only one."""
        return await self.create(gvk, namespace, name, body, manager=manager)

    async def watch(self, gvk: GVK, **_: str) -> AsyncIterator[Any]:
        """No events: the loop is nudged by commits alone."""
        await asyncio.Event().wait()
        yield None


class MemoryMembers(Mapping[str, MemoryMember]):
    """All members; every one can be reached."""

    def __init__(self, names: Iterable[str]) -> None:
        self._members = {name: MemoryMember(name) for name in names}
        self.failed: Mapping[str, Exception] = {}

    def __getitem__(self, name: str) -> MemoryMember:
        return self._members[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def reached_by(self, *_: Any) -> MemoryMembers:
        """They stay as they are."""
        return self

    def servers(self) -> dict[str, str]:
        """They have no addresses."""
        return dict.fromkeys(self._members, "")


class CommitSource(StoreSource):
    """A store in memory of which a commit changes some files."""

    name = description = "memory"

    def __init__(self, files: Iterable[StoreFile]) -> None:
        self.files = {file.path: file for file in files}
        self.number = 0
        self._changed = asyncio.Event()
        self._read = -1

    def commit(self, path: str, data: bytes) -> None:
        """One file has another content."""
        self.files[path] = corpus.store_file(path, data)
        self.number += 1
        self._changed.set()

    def snapshot(self) -> Snapshot:
        """The store as it is now; files that did not change are the same objects."""
        return Snapshot(revision=f"r{self.number}", files=tuple(self.files.values()))

    async def changed(self) -> None:
        """Return at the next commit."""
        await self._changed.wait()
        self._changed.clear()

    async def ask_now(self) -> None:
        """There is nobody to be asked."""

    async def read(self) -> Snapshot | None:
        """The store, None when it is as it was read last."""
        if self._read == self.number:
            return None
        self._read = self.number
        return self.snapshot()

    def recall(self, revision: str) -> Snapshot | None:
        """Earlier revisions are gone."""
        return None

    def ancestry(self, revisions: Collection[str], head: str) -> Ancestry:
        """The head alone is there."""
        return Ancestry(order=(head,), missing=frozenset(revisions) - {head})

    async def close(self) -> None:
        """Nothing is open."""
        return None


def files_of(workloads: int) -> list[StoreFile]:
    """The generated store without the policies that divide by free capacity."""
    return [file for file in corpus.snapshot(workloads).files if not file.path.endswith("/dynamic.yaml")]


def filled(source: CommitSource, journal: Journal) -> MemoryMembers:
    """Members and a journal that are in step with the store."""
    fleet = StoreInForce({}, source).parse(source.snapshot())
    members = MemoryMembers(fleet.clusters)
    schedule = schedule_fleet(fleet, Observations(), NOW, interpreters=BUILT_IN_KINDS)
    shared: dict[tuple[Identity, str], LiveObject] = {}
    with journal.transaction(durable=True):
        journal.record_fleet(FLEET)
        for name in fleet.clusters:
            journal.record_clusters({name: f"uid-of-{name}"})
        journal.record_applied(_apply(render_schedule(schedule).manifests, members, shared))
        journal.record_bindings(fleet.revision, previous_of(schedule.bindings))
        journal.record_round(fleet.revision, NOW, {})
    return members


def _apply(
    manifests: Iterable[Manifest], members: MemoryMembers, shared: dict[tuple[Identity, str], LiveObject]
) -> Iterable[Any]:
    for manifest in manifests:
        key = (manifest.identity, manifest.digest)
        if key not in shared:
            shared[key] = live_object(manifest.gvk, manifest.identity, manifest.body, FLEET, "1")
        members[manifest.cluster].objects[manifest.identity] = shared[key]
        yield row_of(manifest, shared[key].uid)


class _Parts(LoopParts, frozen=True, kw_only=True):
    """Parts of a loop whose clusters are in memory: no kubeconfig says how they are reached."""

    def configs_of(self, fleet: Fleet) -> Mapping[str, MemberConfig | ConfigurationError]:
        """Return nothing to be reached."""
        return {}


@asynccontextmanager
async def running(workloads: int, folder: Path) -> AsyncIterator[tuple[CommitSource, Vitals, ControlLoop]]:
    """A loop that has settled the whole fleet."""
    source, vitals, clock = CommitSource(files_of(workloads)), Vitals(), SystemClock()
    with Journal.open(folder / "journal.db") as journal:
        members = filled(source, journal)
        parts = _Parts(
            source=source,
            store=StoreInForce({}, source),
            journal=journal,
            holder=OwnershipLock(journal, clock),
            opened=cast("MemberClusters", members),
            access=Access(clock=clock, interpreters=BUILT_IN_KINDS),
            agent=UserAgent(FLEET),
            vitals=vitals,
        )
        loop, stop = ControlLoop(parts), asyncio.Event()
        task = asyncio.create_task(loop.run(stop))
        try:
            await _rounds(vitals, 1, task)
            yield source, vitals, loop
        finally:
            stop.set()
            await task


async def _rounds(vitals: Vitals, number: int, task: asyncio.Task[None] | None = None) -> None:
    while vitals.rounds < number or vitals.phase != "idle":
        if task is not None and task.done():
            task.result()
        await asyncio.sleep(0.01)


async def commits(workloads: int, number: int = COMMITS) -> dict[str, float]:
    """CPU seconds of the first round, and of rounds of one commit each."""
    with tempfile.TemporaryDirectory() as folder:
        async with running(workloads, Path(folder)) as (source, vitals, _):
            gc.collect()
            gc.freeze()
            spent = []
            for index in range(number + 2):
                rounds, started, changes = vitals.rounds, time.process_time(), vitals.changes.total()
                namespace = index % (workloads // corpus.PER_NAMESPACE)
                place = (namespace, 5)
                source.commit(corpus.file_path(*place), corpus.workload_file(*place, 2 + index))
                await _rounds(vitals, rounds + 1)
                spent.append(time.process_time() - started)
                assert vitals.changes.total() > changes, "the commit was written"
            kept = spent[2:]
            return {"round_p50": percentile(kept, 0.5), "round_p99": percentile(kept, 0.99)}


if __name__ == "__main__":
    json.dump(asyncio.run(commits(int(sys.argv[1]))), sys.stdout)
