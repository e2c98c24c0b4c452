"""The control loop on embedded clusters, with time that passes quickly. Each test is a way in which something was lost.

Source: design#events-are-nudges; design#promise-3; design#promise-5; design#promise-7; design#promise-8.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from reconciler.api.content import dig
from reconciler.api.ledger import Losses, SuspensionRecord
from reconciler.clock import Clock
from reconciler.controller import timing
from reconciler.controller.loop import ControlLoop
from reconciler.controller.loop_state import LoopParts
from reconciler.controller.once import Access
from reconciler.controller.retries.conflicts import UNDONE_MAX
from reconciler.controller.round.ownership_lock import OwnershipLock
from reconciler.controller.store_in_force import StoreInForce
from reconciler.controller.vitals.service_vitals import Vitals
from reconciler.errors import FleetHeld
from reconciler.journal import Journal
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.kube import MemberClusters, UserAgent
from reconciler.kube.kube_requests import READ_DEADLINE_S
from reconciler.sim import ClusterServer, ClusterSpec, Fault, FaultKind, FleetInABox, Request, is_write
from reconciler.state import Lag
from tests.fakes.clocks import QuickClock
from tests.fakes.hands import CONFIG_MAPS, ask
from tests.fakes.memory_source import MemorySource
from tests.fakes.worlds import config_map, deployment, policy

BROKEN = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: [other\n"


class Running:
    """Clusters m1 and m2, a store in memory, and a loop that works."""

    def __init__(self, box: FleetInABox, journal: Journal, vitals: Vitals) -> None:
        self.box, self.journal, self.vitals = box, journal, vitals
        self.source = MemorySource()
        self.files: dict[str, str] = {}
        self.left_out: set[str] = set()
        self.settings: dict[str, Any] = {}
        self.task: asyncio.Task[None] | None = None
        self.loop: ControlLoop
        self._stop = asyncio.Event()

    def parts_of(self, members: MemberClusters, agent: UserAgent, clock: Clock) -> LoopParts:
        """Return what a loop on these clusters works with."""
        return LoopParts(
            source=self.source,
            store=StoreInForce({}, self.source),
            journal=self.journal,
            holder=OwnershipLock(self.journal, clock),
            opened=members,
            access=Access(kubeconfig=self.box.kubeconfig, clock=clock, interpreters=BUILT_IN_KINDS),
            agent=agent,
            vitals=self.vitals,
        )

    def start(self, parts: LoopParts) -> None:
        """A loop that knows what the journal knows."""
        self.parts, self._stop = parts, asyncio.Event()
        self.loop = ControlLoop(parts)
        self.task = asyncio.create_task(self.loop.run(self._stop))

    async def stop(self) -> None:
        """End the loop."""
        self._stop.set()
        if self.task is not None:
            await asyncio.gather(self.task, return_exceptions=True)

    def put(self, **texts: Any) -> None:
        """Files of the store: documents, text, or None for a file that goes; then a commit."""
        for name, given in texts.items():
            if given is None:
                self.files.pop(name, None)
            else:
                self.files[name] = given if isinstance(given, str) else yaml.safe_dump_all(given)
        fleet = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": "test"},
                 "spec": self.settings}  # fmt: skip
        members = [
            {"apiVersion": "cluster.karmada.io/v1alpha1", "kind": "Cluster", "metadata": {"name": name}}
            for name in self.box.names
            if name not in self.left_out
        ]
        self.source.put({"fleet.yaml": yaml.safe_dump_all([fleet, *members]),
                         **{f"{name}.yaml": text for name, text in self.files.items()}})  # fmt: skip

    def app(self, value: str, *clusters: str, name: str = "app") -> None:
        chosen = policy("ConfigMap", *clusters, name=name, preserveResourcesOnDeletion=False)
        chosen["spec"]["resourceSelectors"][0]["name"] = name
        self.put(**{name: [config_map(name, value=value)], f"{name}-policy": [chosen]})

    def value(self, cluster: str, name: str = "app") -> str | None:
        live = self.box[cluster].state.get("ConfigMap", "demo", name)
        return None if live is None else live["data"]["value"]

    def by_hand(self, cluster: str, value: str) -> None:
        ask(self.box[cluster], "PATCH", f"{CONFIG_MAPS}/app", {"data": {"value": value}})

    def writes(self) -> int:
        return sum("fleet-reconciler/" in entry.user_agent for name in self.box.names for entry in self.box[name].audit)

    async def until(self, fact: Callable[[], bool], timeout_s: float = 90) -> None:
        """Return once it is so; the resync is too far away to make it so."""
        async with asyncio.timeout(timeout_s):
            while not fact():
                assert self.task is None or not self.task.done(), self.task
                await asyncio.sleep(0.01)  # much of the loop goes on in threads

    async def quiet(self) -> None:
        """Return once nothing has been written or begun for a while, in which everybody had many turns."""
        before, still = -1, 0
        while still < 30:
            now = self.writes()
            still = still + 1 if now == before and not self.journal.open_intents() else 0
            before = now
            await asyncio.sleep(0.01)  # that nothing happens is told by no event


@asynccontextmanager
async def standing(
    folder: Path, clock: Clock, others: tuple[str, ...] = (), speed: float | None = 20.0, **settings: Any
) -> AsyncIterator[tuple[Running, LoopParts]]:
    """The clusters, and what a loop on them works with. `others`: clusters not of the fleet."""
    agent = UserAgent("test")
    async with FleetInABox([ClusterSpec(name=name) for name in ("m1", "m2", *others)], folder, speed=speed) as box:
        with Journal.open(folder / "journal.db") as journal:
            async with MemberClusters.open({}, agent=agent, clock=clock) as members:
                scene = Running(box, journal, Vitals())
                scene.settings = {"drift": {"resync": "100h"}, **settings}
                scene.left_out = set(others)
                yield scene, scene.parts_of(members, agent, clock)
            scene.journal.close()  # that of a test which took another one


@asynccontextmanager
async def running(
    folder: Path, down: str = "", others: tuple[str, ...] = (), **settings: Any
) -> AsyncIterator[Running]:
    """The loop works until the block ends. `down`: does not answer at first. `others`: clusters not of the fleet."""
    async with standing(folder, QuickClock(), others, **settings) as (scene, parts):
        scene.app("1", "m1", "m2")
        if down:
            await scene.box.servers[down].stop()
        scene.start(parts)
        try:
            names = [name for name in scene.box.names if name not in (down, *others)]
            await scene.until(lambda: all(scene.value(name) == "1" for name in names))
            await scene.quiet()
            yield scene
        finally:
            await scene.stop()


def events_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.__dict__["event"] for record in caplog.records if "event" in record.__dict__]


async def test_a_list_that_failed_once_is_read_again_though_its_watches_go_on(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        faults = scene.box.servers["m2"].faults
        faults.order(Fault(kind=FaultKind.INTERNAL), when=lambda r: "configmaps" in r.path and not is_write(r), times=4)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2")
        await scene.until(lambda: scene.value("m2") == "2")


async def test_a_cluster_that_asks_for_an_hour_is_left_alone_and_told_so(tmp_path: Path) -> None:
    """Source: design#promise-6; RFC 9110, 10.2.3."""
    async with running(tmp_path) as scene:
        asked = list[str]()

        def noted(request: Request) -> bool:
            asked.append(request.path)
            return True

        throttled = Fault(kind=FaultKind.THROTTLED, retry_after_s=3600)
        scene.box.servers["m2"].faults.order(throttled, when=noted, times=10**9)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2")

        def why() -> str:
            document = scene.journal.state() or {}
            return next(str(found.get("why")) for found in document["clusters"] if found["name"] == "m2")

        scene.loop.wake()
        await scene.until(lambda: "(Retry-After: 3600 s), and is left alone until 20" in why())
        before, rounds = len(asked), scene.vitals.rounds
        scene.loop.wake()
        await scene.until(lambda: scene.vitals.rounds > rounds)
        scene.app("3", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "3")
        assert len(asked) == before, "neither rounds nor commits nor probes ask it anything"


async def test_a_kubeconfig_that_was_written_anew_is_read_when_a_cluster_refuses_us(tmp_path: Path) -> None:
    """Without a SIGHUP: what renews credentials in a kubeconfig knows nothing of us. Source: kubeadm certs renew."""
    async with running(tmp_path) as scene:
        refusing = scene.box.servers["m2"]
        refusing.faults.order(Fault(kind=FaultKind.UNAUTHORIZED), times=10**9)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2")
        assert scene.value("m2") == "1"
        # Whoever comes with the new credentials is let in: here by another door.
        door = ClusterServer(scene.box["m2"], speed=refusing.speed)
        await door.start()
        try:
            text = scene.box.kubeconfig.read_text()
            scene.box.kubeconfig.write_text(text.replace(f":{refusing.port}", f":{door.port}"))
            await scene.until(lambda: scene.value("m2") == "2")
        finally:
            await door.stop()


async def test_a_cluster_that_hangs_holds_up_the_others_for_seconds_and_only_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(tmp_path) as scene:
        scene.box.servers["m2"].pause()
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "2", timeout_s=READ_DEADLINE_S * 0.8)
        monkeypatch.setattr(timing, "PROMPT_S", 2 * READ_DEADLINE_S)  # Whoever waits for it again, waits in vain.
        scene.app("3", "m1", "m2")
        await scene.until(lambda: scene.value("m1") == "3", timeout_s=READ_DEADLINE_S * 0.8)
        scene.box.servers["m2"].resume()
        await scene.until(lambda: scene.value("m2") == "3")


async def test_a_start_says_how_far_it_is(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "reconciler")
    async with running(tmp_path) as scene:
        await scene.stop()
        scene.source.forget()
        scene.vitals.rounds = 0
        scene.box.servers["m2"].pause()
        caplog.clear()
        scene.start(scene.parts)
        await scene.until(lambda: "Starting" in events_of(caplog))
        scene.box.servers["m2"].resume()
        await scene.until(lambda: scene.vitals.rounds > 0)
    said = [record.getMessage() for record in caplog.records if record.__dict__.get("event") == "Starting"]
    assert "starting: meeting the clusters" in said


async def test_files_that_go_one_after_another_are_held_as_one_commit_that_takes_them_all(tmp_path: Path) -> None:
    names = [f"a{number}" for number in range(12)]

    def left(scene: Running) -> set[str]:
        return {name for name in names if scene.value("m1", name) is not None}

    def held(scene: Running) -> list[dict[str, Any]]:
        document: Any = scene.journal.state() or {}
        return document.get("held") or []

    async with running(tmp_path) as scene:
        for name in names:
            scene.app("1", "m1", name=name)
        await scene.until(lambda: len(left(scene)) == 12)
        for number, name in enumerate(names):
            if number == 6:
                await scene.stop()
                scene.source.forget()
                scene.start(scene.parts)
            scene.put(**{name: None})
            await scene.until(lambda name=name: name not in left(scene) or name in str(held(scene)))  # type: ignore[misc]
        assert left(scene) == set(names[3:])
        words = r"12 deletions and releases in one cluster since \S+Z, 3 of them made already"
        assert re.search(words, held(scene)[0]["why"])
        scene.settings["guards"] = {"confirm": (scene.journal.state() or {})["heldDigest"]}
        scene.put()
        await scene.until(lambda: not left(scene))
        await scene.until(lambda: replace(scene.journal.losses(), guards=None) == Losses())
        # What was confirmed counts no more: the next small edit is not held.
        scene.put(app=None)
        await scene.until(lambda: scene.value("m1") is None)


async def test_a_change_that_failed_is_shown_with_its_error_until_it_is_made(tmp_path: Path) -> None:
    def failed(scene: Running) -> list[tuple[str, str, str]]:
        document: Any = scene.journal.state() or {}
        return [(found["cluster"], found["resource"]["name"], found["error"]) for found in document["failed"]]

    def counts(scene: Running) -> dict[str, Any]:
        document: Any = scene.journal.state() or {}
        return {found["name"]: found["objects"] for found in document["clusters"]}

    async with running(tmp_path) as scene:
        faults = scene.box.servers["m1"].faults
        faults.order(Fault(kind=FaultKind.FORBIDDEN), when=lambda r: is_write(r) and r.path.endswith("/app"), times=999)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: bool(failed(scene)))
        (shown,) = failed(scene)
        assert shown[:2] == ("m1", "app")
        assert shown[2]
        # By now it is tried again so rarely that the next round is one over something else.
        await scene.until(lambda: scene.vitals.changes["m1", "update", "failed"] == 5)
        scene.app("1", "m1", name="other")
        await scene.until(lambda: scene.vitals.changes["m1", "create", "done"] > 2 and scene.vitals.phase == "idle")
        assert scene.vitals.changes["m1", "update", "failed"] == 5
        assert failed(scene) == [shown]
        assert (counts(scene)["m1"]["failed"], counts(scene)["m1"]["pending"]) == (1, 0)
        assert scene.vitals.snapshot.clusters["m1"].syncs[Lag.FAILED] == 1
        faults.clear()
        await scene.until(lambda: scene.value("m1") == "2")
        await scene.until(lambda: not failed(scene))
        assert counts(scene)["m1"]["failed"] == 0


async def test_a_fleet_that_another_journal_holds_is_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        await scene.quiet()
        await scene.stop()
        before = scene.writes()
        with Journal.open(tmp_path / "other.db") as other:
            scene.source.forget()
            scene.start(replace(scene.parts, journal=other, holder=OwnershipLock(other, scene.parts.access.clock)))
            assert scene.task is not None
            with pytest.raises(FleetHeld, match=scene.journal.uuid):
                await asyncio.wait_for(scene.task, 90)
            assert other.ledger() == {}
            assert other.complete_rounds() == 0
        assert scene.writes() == before


async def test_a_cluster_that_could_not_be_held_is_written_to_later(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        faults = scene.box.servers["m1"].faults
        faults.order(Fault(kind=FaultKind.FORBIDDEN), when=lambda r: "fleet-system" in r.path, times=2)
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m2") == "2")
        assert scene.value("m1") == "1"
        await scene.until(lambda: scene.value("m1") == "2")


async def test_what_a_broken_file_froze_follows_when_it_is_mended(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1", name="other")
        await scene.until(lambda: scene.value("m1", "other") == "1")
        scene.put(app=None, other=BROKEN)
        await scene.until(lambda: bool(scene.vitals.snapshot.problems))
        await scene.quiet()
        assert scene.value("m1") == "1", "absent from an incomplete store is not absent"
        scene.app("1", "m1", name="other")
        await scene.until(lambda: scene.value("m1") is None)


async def test_what_a_file_said_before_is_told_to_stay_in_force(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1", name="other")
        await scene.until(lambda: scene.value("m1", "other") == "1")
        await scene.quiet()
        scene.put(other=BROKEN)
        await scene.until(lambda: "StoreBroken" in events_of(caplog))
        (told,) = (record for record in caplog.records if record.__dict__.get("event") == "StoreBroken")
        assert "; the last good content of files stays in force, and what else they" in told.getMessage()


async def test_the_store_is_recorded_as_another_command_finds_it(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        document = scene.journal.state()
        assert document is not None
        assert document["source"] == scene.source.name


async def test_a_commit_that_changes_no_object_is_shown_as_in_step_and_asks_no_cluster(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "reconciler")
    async with running(tmp_path) as scene:
        asked = {name: len(scene.box[name].audit) for name in scene.box.names}

        def is_shown() -> bool:
            return (scene.journal.state() or {}).get("revision") == scene.source.newest

        for text in ("# a remark\n", "# another\n"):
            scene.put(remarks=text)
            await scene.until(is_shown)
            in_step = [one.__dict__["rev"] for one in caplog.records if one.__dict__.get("event") == "InStep"]
            assert in_step[-1] == scene.source.newest
        await scene.quiet()
        assert {name: len(scene.box[name].audit) for name in scene.box.names} == asked


async def test_a_resumed_suspension_is_caught_up_with(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.journal.suspend(SuspensionRecord(scope="cluster m1"))
        scene.app("2", "m1", "m2")
        await scene.until(lambda: scene.value("m2") == "2")
        assert scene.value("m1") == "1"
        scene.journal.resume("cluster m1")
        scene.loop.wake()
        await scene.until(lambda: scene.value("m1") == "2")


async def test_deletions_that_waited_for_the_first_complete_round_are_made(tmp_path: Path) -> None:
    async with running(tmp_path, down="m2") as scene:
        scene.app("1", "m1", name="other")
        await scene.until(lambda: scene.value("m1", "other") == "1")
        scene.put(other=None)
        await scene.until(lambda: scene.vitals.snapshot.held.get("other") == 1)
        assert scene.value("m1", "other") == "1"
        await scene.box.servers["m2"].start()
        await scene.until(lambda: scene.value("m1", "other") is None)


async def test_a_rebuilt_journal_deletes_after_its_first_complete_round(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        scene.app("1", "m1", name="other")
        await scene.until(lambda: scene.value("m1", "other") == "1")
        await scene.quiet()
        await scene.stop()
        rows = [row for found in scene.journal.ledger().values() for row in found.values()]
        scene.journal.reset()
        scene.journal.record_applied(rows)
        scene.put(other=None)
        scene.start(scene.parts)
        await scene.until(lambda: scene.value("m1", "other") is None)


@pytest.mark.parametrize("looks", [0, 1])
async def test_a_fight_is_left_and_taken_up_again_after_its_pause(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, looks: int
) -> None:
    clock = QuickClock()
    async with running(tmp_path) as scene:
        before_s = clock.monotonic_s()
        for number in range(UNDONE_MAX):
            assert "FightDetected" not in events_of(caplog)
            before_s = clock.monotonic_s()
            scene.by_hand("m1", f"theirs {number}")
            await scene.until(lambda: scene.value("m1") == "1")
        await scene.until(lambda: "FightDetected" in events_of(caplog))
        for _ in range(looks):
            # What a round finds in order while the pause lasts may be written after it all the same.
            rounds = scene.vitals.rounds
            scene.loop.wake()
            await scene.until(lambda before=rounds: scene.vitals.rounds > before)  # type: ignore[misc]
        scene.by_hand("m1", "theirs at last")
        # The pause is a minute, which passes in three seconds here; whoever writes last must not win for good.
        await scene.until(lambda: scene.value("m1") == "1")
        assert clock.monotonic_s() - before_s >= 60
        await scene.stop()
        scene.source.forget()
        rounds = scene.vitals.rounds
        scene.start(scene.parts)
        await scene.until(lambda: scene.vitals.rounds > rounds)
        assert "GoesOn" not in events_of(caplog), "nobody undoes anything now"


async def test_an_object_that_is_gone_comes_back_before_the_fight_about_its_field_is_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    clock = QuickClock()
    async with running(tmp_path) as scene:
        before_s = clock.monotonic_s()
        for number in range(UNDONE_MAX):
            before_s = clock.monotonic_s()
            scene.by_hand("m1", f"theirs {number}")
            await scene.until(lambda: scene.value("m1") == "1")
        await scene.until(lambda: "FightDetected" in events_of(caplog))
        path, faults = "/api/v1/namespaces/demo/configmaps/app", scene.box.servers["m1"].faults
        faults.order(
            Fault(kind=FaultKind.FORBIDDEN), when=lambda asked: (asked.method, asked.path) == ("PATCH", path), times=2
        )
        request = Request(method="DELETE", path=path, user_agent="kubectl/v1")
        assert scene.box["m1"].request(request).status == 200
        await scene.until(lambda: "ApplyFailed" in events_of(caplog))
        await scene.until(lambda: scene.value("m1") == "1")
        assert clock.monotonic_s() - before_s < 50, "the pause of the fight is a minute"


async def test_a_fleet_that_another_journal_took_over_is_let_go(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        ask(
            scene.box["m1"],
            "PATCH",
            "/api/v1/namespaces/fleet-system/configmaps/fleet-test",
            {"data": {"journal": "somebody-else"}},
        )
        scene.app("2", "m1", "m2")
        assert scene.task is not None
        with pytest.raises(FleetHeld, match="somebody-else"):
            await asyncio.wait_for(scene.task, 90)
        assert scene.value("m1") == scene.value("m2") == "1"


async def with_settings(scene: Running) -> None:
    """Make a Deployment in m1 that brings its ConfigMap along; neither is kept."""
    owner = deployment("web", 1)
    owner["spec"]["template"]["spec"]["containers"][0]["envFrom"] = [{"configMapRef": {"name": "settings"}}]
    terms: dict[str, Any] = {"propagateDeps": True, "preserveResourcesOnDeletion": False}
    rule = policy("Deployment", "m1", name="web", **terms)
    scene.put(web=[owner, config_map("settings", value="1")], rule=[rule])
    await scene.until(lambda: scene.box["m1"].state.get("Deployment", "demo", "web") is not None)
    await scene.quiet()


async def test_a_dependency_of_a_suspended_owner_leaves_after_it(tmp_path: Path) -> None:
    async with running(tmp_path) as scene:
        await with_settings(scene)
        scene.journal.suspend(SuspensionRecord(scope="Deployment demo/web"))
        scene.put(web=None)
        await scene.until(lambda: "waits until Deployment demo/web has left" in str(scene.journal.state()))
        await scene.quiet()
        assert scene.value("m1", "settings") == "1"
        scene.journal.resume("Deployment demo/web")
        scene.loop.wake()
        await scene.until(lambda: scene.box["m1"].state.get("Deployment", "demo", "web") is None)
        await scene.until(lambda: scene.value("m1", "settings") is None)


async def test_a_dependency_that_waits_for_its_owner_leaves_as_soon_as_that_is_gone(tmp_path: Path) -> None:
    """Nothing tells of the dependency itself: it is looked at again when what it followed has left."""
    path = "/apis/apps/v1/namespaces/demo/deployments/web"

    def by_hand(scene: Running, method: str, body: Any = None) -> None:
        ask(scene.box["m1"], method, path, body)

    async with running(tmp_path) as scene:
        await with_settings(scene)
        by_hand(scene, "PATCH", {"metadata": {"finalizers": ["example.com/slow"]}})
        by_hand(scene, "DELETE")
        scene.put(web=None)
        await scene.until(lambda: "waits until Deployment demo/web has left" in str(scene.journal.state()))
        await scene.quiet()
        assert scene.value("m1", "settings") == "1"
        by_hand(scene, "PATCH", {"metadata": {"finalizers": None}})
        await scene.until(lambda: scene.value("m1", "settings") is None)


@pytest.mark.parametrize("way", ["template", "policy", "move", "replacement"])
async def test_what_we_deleted_and_finalizers_kept_was_deleted_by_nobody_else(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is wanted again before it is gone; to make it again then heals no drift, and no other change waits for it."""
    monkeypatch.setattr(timing, "PATIENCE_S", 0.1)

    def keep(scene: Running, *finalizers: str) -> None:
        ask(scene.box["m1"], "PATCH", f"{CONFIG_MAPS}/app", {"metadata": {"finalizers": finalizers}})

    def uid(scene: Running) -> str:
        live = scene.box["m1"].state.get("ConfigMap", "demo", "app")
        return "" if live is None or "deletionTimestamp" in live["metadata"] else live["metadata"]["uid"]

    def put(scene: Running, value: str) -> None:
        app = config_map(value=value)
        app["metadata"]["annotations"] = {"fleet.reconciler/replace": "allowed"}
        scene.put(app=[{**app, "immutable": True}])

    async with running(tmp_path) as scene:
        scene.app("1", "m1")
        put(scene, "1")
        await scene.until(lambda: scene.value("m1") == "1")
        await scene.quiet()
        before = uid(scene)
        keep(scene, "example.com/cleanup")
        await scene.quiet()
        if way == "template":
            scene.put(app=None)
        elif way == "policy":
            scene.put(**{"app-policy": None})
        elif way == "move":
            scene.app("1", "m2")
        else:
            put(scene, "2")
        await scene.until(lambda: not uid(scene))
        if way != "replacement":
            await scene.quiet()
            scene.app("1", "m1")
            put(scene, "1")
        await scene.until(lambda: "is made again when it is gone" in str(scene.journal.state()))
        if way == "replacement":
            await scene.until(lambda: dig(scene.journal.state(), "summary", "held") == 1)
            rule = policy("ConfigMap", "m1", name="other")
            scene.put(other=[config_map("other", value="1"), rule])
            await scene.until(lambda: scene.value("m1", "other") == "1")
            assert [one.verb for one in scene.box["m1"].audit if one.verb == "delete"] == ["delete"]
        keep(scene)
        await scene.until(lambda: uid(scene) not in ("", before))
        await scene.quiet()
        assert not scene.journal.events(subject="ConfigMap demo/app @ m1", kind="drift")
        assert not sum(scene.vitals.drifts.values())


def operator_of_config_maps() -> list[dict[str, Any]]:
    """A Deployment that may finalize ConfigMaps by its Role."""
    group = "rbac.authorization.k8s.io"
    metadata = {"name": "operator", "namespace": "demo"}
    rule = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["update"]}
    role = {"apiVersion": f"{group}/v1", "kind": "Role", "metadata": metadata, "rules": [rule]}
    binding = {"apiVersion": f"{group}/v1", "kind": "RoleBinding", "metadata": metadata,
               "roleRef": {"apiGroup": group, "kind": "Role", "name": "operator"},
               "subjects": [{"kind": "ServiceAccount", "name": "operator"}]}  # fmt: skip
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
    workload = deployment("operator", 1)
    workload["spec"]["template"]["spec"]["serviceAccountName"] = "operator"
    rules = [policy("ServiceAccount", "m1", name="account", preserveResourcesOnDeletion=False),
             policy("Deployment", "m1", name="operator", preserveResourcesOnDeletion=False)]  # fmt: skip
    for kind in ("Role", "RoleBinding"):
        chosen = policy(kind, "m1", name=kind.lower(), preserveResourcesOnDeletion=False)
        chosen["spec"]["resourceSelectors"][0]["apiVersion"] = f"{group}/v1"
        rules.append(chosen)
    return [role, binding, account, workload, *rules]


async def test_an_operator_leaves_as_soon_as_what_it_finalizes_is_gone(tmp_path: Path) -> None:
    path = "/api/v1/namespaces/demo/configmaps/app"

    def by_hand(scene: Running, method: str, body: Any = None) -> None:
        ask(scene.box["m1"], method, path, body)

    def parts(scene: Running) -> list[bool]:
        state = scene.box["m1"].state
        kinds = ("Role", "RoleBinding", "ServiceAccount", "Deployment")
        return [state.get(kind, "demo", "operator") is not None for kind in kinds]

    async with running(tmp_path, guards={"maxDeletes": 100, "maxDeletePercent": 100}) as scene:
        documents = operator_of_config_maps()
        scene.put(operator=documents[:4], rules=documents[4:])
        scene.app("1", "m1")
        await scene.until(lambda: all(parts(scene)) and scene.value("m1") == "1")
        await scene.quiet()
        by_hand(scene, "PATCH", {"metadata": {"finalizers": ["example.com/cleanup"]}})
        await scene.quiet()
        by_hand(scene, "DELETE")
        scene.put(operator=None, app=None)
        held = "waits until ConfigMap demo/app has left, which example.com/cleanup keeps"
        await scene.until(lambda: held in str(scene.journal.state()))
        await scene.quiet()
        assert all(parts(scene))
        by_hand(scene, "PATCH", {"metadata": {"finalizers": None}})
        await scene.until(lambda: not any(parts(scene)))


async def test_a_quiet_fleet_is_not_written_to_over_many_resyncs(tmp_path: Path) -> None:
    async with running(tmp_path, drift={"resync": "10s"}) as scene:
        before, rounds = scene.writes(), scene.vitals.rounds
        await scene.until(lambda: scene.vitals.rounds >= rounds + 3)
        assert scene.writes() == before
