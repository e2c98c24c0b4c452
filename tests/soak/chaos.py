"""One seeded trial: a whole fleet of embedded clusters, a store that changes, hand edits, and everything going wrong.

When the faults end, the clusters must come to equal the store as the trial's own simple model tells it, and on the
way the invariants must have held: nothing wanted was deleted, nothing foreign touched, nothing kept was removed, and
a move never went below the replicas that the store asked for.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.journal import Journal
from reconciler.sim import AuditEntry, ClusterSpec, Event, Fault, FaultKind, FleetInABox, Request, Settings, is_write
from tests.fakes.clocks import SPEED
from tests.fakes.definitions import DEFINITION
from tests.fakes.memory_source import MemorySource
from tests.fakes.serving import START_S, others, serves
from tests.soak import kubeconfigs
from tests.soak.apps import CLUSTERS, KEPT_AS, KINDS, App
from tests.soak.availability import AvailabilityJudge
from tests.soak.services import FaultsLogged, service_on
from tests.soak.spoiled import SpoiledPaths
from tests.soak.worlds import define, worlds

RESYNC_S = 20
REST_TIMEOUT_S = 180.0
FAULTS = (
    FaultKind.THROTTLED, FaultKind.INTERNAL, FaultKind.UNAVAILABLE, FaultKind.RESET, FaultKind.LOST_RESPONSE,
    FaultKind.TRUNCATED, FaultKind.PARTIAL_LIST, FaultKind.EMPTY_LIST, FaultKind.EXPIRED, FaultKind.HTML,
    FaultKind.UNAUTHORIZED, FaultKind.FORBIDDEN,
)  # fmt: skip
STORMS = (FaultKind.WATCH_ENDS, FaultKind.WATCH_SILENT, FaultKind.EXPIRED)
"""The answers to every watch for a while, or to every list."""


class Trial:
    def __init__(self, seed: int, folder: Path, *, faults: tuple[FaultKind, ...] = FAULTS) -> None:
        self.rng = random.Random(seed)
        specs = [ClusterSpec(name=name, settings=Settings(start_s=START_S)) for name in CLUSTERS]
        self.box = FleetInABox(specs, folder, seed=seed, speed=SPEED)
        self.folder = folder
        self.journal_path = folder / "journal.db"
        self.faults = faults
        self.source = MemorySource()
        self.apps = self.make_apps()
        self.judge = AvailabilityJudge(self.box)
        self.worlds = worlds()
        self.struck: Counter[str] = Counter()
        """The number of strikes of each unkind world."""
        self.spoiled = SpoiledPaths()
        self.brought_back: set[tuple[str, str]] = set()
        """Copies of ours that a restore brought back: whether they go is for a person to say."""
        self.is_past_back = False
        self.violations: list[str] = []
        self.by_hand: set[tuple[str, str]] = set()
        self.ever_unwanted: set[tuple[str, str]] = set()
        self.ever_absent: set[str] = set()
        self.ever_left: set[tuple[str, str]] = set()
        """Clusters that a policy once did not name: what is kept there without its template goes with its placement."""
        self.changes = 0
        self.vitals = Vitals()

    def make_apps(self) -> list[App]:
        """The templates of the store."""
        return [App(kind, f"app-{number}", self.rng) for number, kind in enumerate(KINDS)]

    async def run(self) -> int:
        """Go through everything; how many faults struck.

        Raises:
            AssertionError: the fleet did not come to rest as it should, or an invariant was broken.
        """
        async with self._watched():
            restarts = self.rng.randint(1, 2)
            for phase in range(restarts + 1):
                async with self._daemon():
                    if phase == 0:
                        await self._rest("at the beginning")
                    await self._trouble()
                    if phase == restarts:
                        await self._settle("after the faults")
                    assert not self.service.task.done(), "the service ended by itself"
        return sum(len(server.faults.struck) for server in self.box.servers.values())

    @asynccontextmanager
    async def _watched(self) -> AsyncIterator[None]:
        """The clusters with a foreign object each and the first commit; at the end what must have held is checked."""
        self.folder.mkdir(parents=True, exist_ok=True)
        async with self.box, FaultsLogged() as logged:
            for name in CLUSTERS:
                self.box[name].state.store.listeners.append(partial(self._note, name))
                define(self.box[name])
                self._foreign(name)
            foreign = {name: self._versions_of_foreign(name) for name in CLUSTERS}
            self._publish(fresh=True)
            yield
            assert {name: self._versions_of_foreign(name) for name in CLUSTERS} == foreign, (
                "a foreign object was touched"
            )
            self._check_journal()
        found = [*self.violations, *self.judge.violations, *logged.lines]
        assert not found, "\n".join(found)

    async def _settle(self, when: str) -> None:
        """The faults end: the fleet comes to rest, stays there, and follows one more commit."""
        self._clear()
        await self._rest(when)
        await self._stays_at_rest()
        await self._last_commit()

    # What happens

    async def _trouble(self) -> None:
        """Faults, commits and hand edits, for a second of real time."""
        for _ in range(self.rng.randint(3, 6)):
            name = self.rng.choice(CLUSTERS)
            server = self.box.servers[name]
            match self.rng.randrange(16):
                case 0 | 1:
                    self._commit()
                case 2:
                    rates = {kind: self.rng.choice((0.02, 0.1, 0.4)) for kind in self.rng.sample(self.faults, 3)}
                    server.faults.rates = rates
                    server.faults.latency_s = (0.0, self.rng.choice((0.0, 0.01, 0.05)))
                case 3:
                    self._edit_by_hand(name)
                case 4:
                    server.break_connections()
                    self.box[name].state.store.compact()
                case 5:
                    await server.stop()
                    await asyncio.sleep(self.rng.uniform(0.0, 0.2))
                    await server.start()
                case 6:
                    # A dead admission webhook: reads are answered.
                    server.faults.order(Fault(kind=FaultKind.HANGING), when=is_write, times=self.rng.randint(1, 40))
                case 7:
                    server.faults.rates |= {self.rng.choice(STORMS): 1.0}
                case 8:
                    await self._move_while_away()
                case 9:
                    self.struck["unreadable paths"] += 1
                    self.spoiled.spoil(f"{self.rng.choice(self.apps).name}.yaml", self.rng)
                    self._publish()
                case 10:
                    self.struck["kubeconfigs"] += 1
                    await self._has_begun()
                    kubeconfigs.mislead(self.box, name, self.rng)
                    self.service.loop.reload()
                case _:
                    self.strike(name)
            await asyncio.sleep(self.rng.uniform(0.0, 0.3))

    def strike(self, cluster: str) -> None:
        """Let a world strike; what it took away or brought back by itself is no deed of the service."""
        before = set(self._ours_unwanted(cluster))
        was = self.box[cluster].state.store.version
        world = self.rng.choice(self.worlds)
        self.struck[type(world).__name__] += 1
        world.strike(self.box.servers[cluster], self.rng)
        self.is_past_back |= self.box[cluster].state.store.version < was
        self.brought_back |= set(self._ours_unwanted(cluster)) - before
        self.judge.recount(cluster)

    async def _has_begun(self) -> None:
        """Wait until the service has read its kubeconfig: it ends where it cannot begin with one."""
        deadline = time.monotonic() + REST_TIMEOUT_S
        while not self.vitals.snapshot.clusters:
            assert not self.service.task.done(), f"the service ended: {self.service.task}"
            assert time.monotonic() < deadline, "the service looks at no cluster"
            await asyncio.sleep(0.02)

    async def _move_while_away(self) -> None:
        """A Deployment moves, and one of the clusters that it leaves or comes to is away just then."""
        app = self.rng.choice([app for app in self.apps if app.kind == "Deployment"])
        before = app.clusters
        app.move(self.rng)
        self._publish()
        await asyncio.sleep(self.rng.uniform(0.0, 0.1))
        away = self.box.servers[self.rng.choice(sorted(before | app.clusters))]
        await away.stop()
        await asyncio.sleep(self.rng.uniform(0.1, 0.5))
        await away.start()

    def _commit(self) -> None:
        for app in self.rng.sample(self.apps, self.rng.randint(1, 3)):
            app.change(self.rng)
        if self.rng.random() < 0.15:
            self._publish(broken=True)
        self._publish()

    async def _last_commit(self) -> None:
        """A fleet that came to rest still follows."""
        for app in self.apps:
            app.change(self.rng)
        self._publish()
        await self._rest("after the last commit")

    def _publish(self, *, fresh: bool = False, broken: bool = False) -> None:
        spec = {"guards": {"maxDeletes": 100, "maxDeletePercent": 100}, "drift": {"resync": f"{RESYNC_S}s"}}
        files = {
            "fleet.yaml": _text({"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet",
                                 "metadata": {"name": "chaos"}, "spec": spec}),
            "clusters.yaml": _text(*(
                {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}
                for name in CLUSTERS
            )),
        }  # fmt: skip
        for app in self.apps:
            files[f"{app.name}.yaml"] = _text(*app.documents())
            if app.kind == "Deployment" and f"{app.name}.yaml" not in self.spoiled.paths:
                self.judge.asked(app.name, app.total)
        if broken:
            files[f"{self.rng.choice(self.apps).name}.yaml"] = "apiVersion: v1\nkind: ConfigMap\n  metadata: [\n"
        unwanted = {(c, app.name) for app in self.apps for c in CLUSTERS if not app.is_wanted(c)}
        self.ever_unwanted = unwanted if fresh else self.ever_unwanted | unwanted
        self.ever_left |= {(c, app.name) for app in self.apps for c in CLUSTERS if c not in app.clusters}
        self.ever_absent |= {app.name for app in self.apps if not app.is_present}
        self.source.put(self.spoiled.over(files))

    def _edit_by_hand(self, cluster: str) -> None:
        held = [app for app in self.apps if app.kind == "ConfigMap" and self._live(cluster, app) is not None]
        if not held:
            return
        app = self.rng.choice(held)
        path = f"/api/v1/namespaces/demo/configmaps/{app.name}"
        if self.rng.random() < 0.5:
            self.by_hand.add((cluster, app.name))
            self._ask(cluster, "DELETE", path)
            self.by_hand.discard((cluster, app.name))
        else:
            patch = {"data": {"value": "by hand", "more": "by hand"}}
            self._ask(cluster, "PATCH", path, patch, "application/merge-patch+json")

    def _ask(self, cluster: str, method: str, path: str, body: Any = None, content_type: str = "") -> None:
        request = Request(method=method, path=path, query={}, body=body, content_type=content_type,
                          accept="application/json", user_agent="kubectl/v1.36")  # fmt: skip
        answer = self.box[cluster].request(request)
        # A webhook may refuse a person as well.
        assert answer.status < 300 or answer.status == 403, answer
        self.box[cluster].run_controllers()

    def _clear(self) -> None:
        for server in self.box.servers.values():
            server.faults.clear()
        for world in self.worlds:
            for name in CLUSTERS:
                world.end(self.box.servers[name])
                self.judge.recount(name)
        kubeconfigs.mend(self.box)
        self.service.loop.reload()
        self.spoiled.mend()
        self._publish()

    # The referee

    def _note(self, cluster: str, event: Event) -> None:
        name, kind = event.body["metadata"]["name"], event.body["kind"]
        app = next((app for app in self.apps if (app.kind, app.name) == (kind, name)), None)
        if event.type != "DELETED" or (cluster, name) in self.by_hand or self._went_with_its_kind(cluster, kind):
            return
        if app is None:
            if kind in KEPT_AS:
                self.violations.append(f"{kind} {name} of somebody else was deleted in {cluster}")
        elif (cluster, name) not in self.ever_unwanted:
            self.violations.append(f"{kind} {name} was deleted in {cluster} though every commit wanted it")
        elif app.is_shared:
            return  # A copy need not serve as a whole: the judge counts replicas.
        elif app.keep and (cluster, name) not in self.ever_left:
            self.violations.append(f"{kind} {name} was deleted in {cluster} though it is kept")
        elif kind == "Deployment" and self._went_too_early(cluster, event.body):
            self.violations.append(f"{kind} {name} served in {cluster} and went before another copy did")

    def _went_too_early(self, cluster: str, body: dict[str, Any]) -> bool:
        """Return whether a Deployment that serves goes before another copy serves, restores left out."""
        name = body["metadata"]["name"]
        if name in self.ever_absent or self.is_past_back or not serves(body):
            return False
        return not any(others(self.box, cluster, name).values())

    def _went_with_its_kind(self, cluster: str, kind: str) -> bool:
        return kind == "Widget" and self.box[cluster].state.get("CustomResourceDefinition", "", DEFINITION) is None

    def _live(self, cluster: str, app: App) -> dict[str, Any] | None:
        return self.box[cluster].state.store.get(KEPT_AS[app.kind], "demo", app.name)

    def _ours_unwanted(self, cluster: str) -> Iterator[tuple[str, str]]:
        """Copies that are ours and not wanted there."""
        for app in self.apps:
            live = self._live(cluster, app)
            if live is not None and _is_ours(live) and not app.is_wanted(cluster):
                yield cluster, app.name

    def _wrong(self) -> list[str]:
        """Return how the clusters differ from the store."""
        found = []
        for cluster in CLUSTERS:
            for app in self.apps:
                live = self._live(cluster, app)
                is_ours = live is not None and _is_ours(live)
                if app.is_wanted(cluster):
                    if live is None or not is_ours or not app.is_shown(live, cluster):
                        found.append(f"{cluster} {app.kind} {app.name} should say {app.value} and is {_short(live)}")
                elif (cluster, app.name) not in self.brought_back and (is_ours or (live is not None and not app.keep)):
                    found.append(f"{cluster} {app.kind} {app.name} should not be there as ours: {_short(live)}")
        return found

    def _case(self) -> Iterator[str]:
        """Yield what a person needs to see of a trial that failed."""
        yield from self._wrong()
        with Journal.open(self.journal_path, read_only=True) as journal:
            picture = journal.state() or {}
            yield f"problems {picture.get('problems')}, held {picture.get('held')}, failed {picture.get('failed')}"
            for cluster, rows in journal.ledger().items():
                yield f"{cluster} journal: {', '.join(f'{identity.name} {row.uid}' for identity, row in rows.items())}"
            events = (f"{e.time} {e.kind} {e.subject} {e.data.get('error', '')}" for e in journal.events(limit=40))
            yield from events
        for cluster in CLUSTERS:
            struck = [fault for fault in self.box.servers[cluster].faults.struck if fault[1] != "GET"]
            yield f"{cluster}: writes that faults struck {struck}"

    def _ours(self) -> int:
        return len([entry for name in CLUSTERS for entry in self.box[name].audit if _is_write_of_ours(entry)])

    async def _rest(self, when: str) -> None:
        deadline = time.monotonic() + REST_TIMEOUT_S
        while self._wrong() or not self._has_seen_all():
            assert not self.service.task.done(), f"{when}: the daemon ended: {self.service.task}"
            assert time.monotonic() < deadline, "\n".join([f"{when}, {REST_TIMEOUT_S:g} s later:", *self._case()])
            await asyncio.sleep(0.02)

    def _has_seen_all(self) -> bool:
        """Return whether this run of the service has looked into every cluster.

        What an earlier one left may be right already; this one still puts its mark there, once it gets an answer.
        """
        return len(self.vitals.snapshot.clusters) == len(CLUSTERS) and all(
            seen.is_up for seen in self.vitals.snapshot.clusters.values()
        )

    async def _stays_at_rest(self) -> None:
        """Once nothing is written for a while, nothing more is ever written."""
        deadline = time.monotonic() + REST_TIMEOUT_S
        before = -1
        while (now := self._ours()) != before:
            assert time.monotonic() < deadline, "writes go on for ever"
            before = now
            await asyncio.sleep(0.5)
        # Longer than a resync at this speed.
        await asyncio.sleep(RESYNC_S / SPEED * 1.2)
        assert self._ours() == before, "\n".join(
            ["a fleet at rest was written to", *self._last_writes(), *self._case()]
        )

    def _last_writes(self) -> Iterator[str]:
        for name in CLUSTERS:
            ours = [entry for entry in self.box[name].audit if _is_write_of_ours(entry)]
            yield from (f"{name} {e.time} {e.verb} {e.plural}/{e.name} {e.code} {e.is_dry_run}" for e in ours[-5:])

    def _foreign(self, cluster: str) -> None:
        body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "foreign", "namespace": "default"},
                "data": {"a": "b"}}  # fmt: skip
        self._ask(cluster, "POST", "/api/v1/namespaces/default/configmaps", body, "application/json")

    def _versions_of_foreign(self, cluster: str) -> str:
        return str(self.box[cluster].get("ConfigMap", "default", "foreign")["metadata"]["resourceVersion"])

    def _check_journal(self) -> None:
        with Journal.open(self.journal_path, read_only=True) as journal:
            assert not journal.open_intents(), "an intent was left open"
            assert journal.verify() == ()

    @asynccontextmanager
    async def _daemon(self) -> AsyncIterator[None]:
        self.vitals = Vitals()
        if kubeconfigs.is_broken(self.box):
            kubeconfigs.mend(self.box)
        async with service_on(self.box, self.journal_path, self.source, self.vitals) as self.service:
            yield


def _text(*documents: dict[str, Any]) -> str:
    return yaml.safe_dump_all(documents)


def _is_write_of_ours(entry: AuditEntry) -> bool:
    """A dry run, by which doubtful objects are compared, writes nothing."""
    return "fleet-reconciler/" in entry.user_agent and not entry.is_dry_run


def _is_ours(live: dict[str, Any]) -> bool:
    return "fleet.reconciler/fleet" in (live["metadata"].get("labels") or {})


def _short(live: dict[str, Any] | None) -> str:
    if live is None:
        return "not there"
    return str({key: live.get(key) for key in ("data", "spec")} | {"labels": live["metadata"].get("labels")})
