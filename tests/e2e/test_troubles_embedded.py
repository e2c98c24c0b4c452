"""Troubles of the service itself, and of ticks, on embedded clusters: each is told wherever one looks, and ends.

Source: design#promise-3; design#told; design#one-leader; design#ticks-constrain.
"""

from __future__ import annotations

import json
import os
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from reconciler.journal import Journal
from reconciler.journal.sqlite_file import JournalFile
from reconciler.sim import (
    BackgroundFleet,
    ClusterSpec,
    Fault,
    FaultKind,
    FleetInABox,
    NodeSpec,
    Request,
    background_fleet,
)
from tests.e2e.night import Night, Receiver
from tests.e2e.scene import CLUSTERS, Scene
from tests.program import _command_line
from tests.real_clusters import wait_until
from tests.tick_cases import policy, template

pytestmark = pytest.mark.timeout(600)
LEASE_S = 10
"""Longer than a busy machine keeps a process from its turn."""


class EmbeddedScene(Scene):
    """The scene on embedded clusters, with three ConfigMaps."""

    def __init__(self, folder: Path, fleet: BackgroundFleet, *options: str, **spec: Any) -> None:
        clusters = {name: SimpleNamespace(name=name) for name in CLUSTERS}
        found: Any = SimpleNamespace(kubeconfig=fleet.kubeconfig, **clusters)
        super().__init__(folder, found, *options, **spec)
        self.box = fleet

    def get(self, cluster: str, kind: str, namespace: str, name: str) -> Mapping[str, Any]:
        return self.box.call(lambda box: box[cluster].state.get(kind, namespace, name)) or {}

    def held_by(self, cluster: str) -> dict[str, str]:
        """The values of our ConfigMaps there."""
        names = {name for _, name in self.wanted}
        live = {name: self.get(cluster, "ConfigMap", self.namespace, name) for name in names}
        return {name: body["data"]["value"] for name, body in live.items() if body}

    def seen(self) -> str:
        return f"{self.troubles()}\n{self.daemon.text()[-4000:]}"

    def holds(self, value: str) -> None:
        """Return once every cluster has this value."""
        wait_until(lambda: all(self.held_by(name) == {"a": value} for name in CLUSTERS), "the value", seen=self.seen)


@contextmanager
def at_night(
    folder: Path, command: Callable[[list[str]], None] | None = None, **spec: Any
) -> Iterator[tuple[Night, EmbeddedScene]]:
    """A service at work on three clusters with eight CPUs each."""
    nodes, receiver = (NodeSpec(name="n1", cpu="8"),), Receiver()
    try:
        with background_fleet([ClusterSpec(name=name, nodes=nodes) for name in CLUSTERS], folder) as fleet:
            scene = EmbeddedScene(folder, fleet, "--webhook", receiver.url, **spec)
            scene.daemon.command = command
            scene.put("a", "1", *CLUSTERS)
            scene.store.commit()
            with scene.daemon.start():
                scene.daemon.says('"Listening"')
                scene.holds("1")
                yield Night(scene, receiver), scene
                assert "Traceback" not in scene.daemon.text()
                assert scene.daemon.stop() == 0
    finally:
        receiver.close()


# The journal


def is_full(journal: Path) -> bool:
    return journal.with_name("full").exists()


def free_space(folder: Path) -> Any:
    return SimpleNamespace(f_bavail=0 if is_full(folder / "journal.db") else 1 << 20, f_frsize=4096)


def on_a_small_disk(arguments: list[str]) -> None:
    """Run the program; its journal cannot grow while a file `full` lies beside it."""
    begin = JournalFile.transaction

    @contextmanager
    def transaction(file: JournalFile, *, durable: bool = False) -> Iterator[None]:
        if not file.read_only:
            pages = file.pragma("page_count") if is_full(file.path) else 1 << 30
            file.execute(f"PRAGMA max_page_count = {pages}")
        with begin(file, durable=durable):
            yield

    JournalFile.transaction = transaction  # type: ignore[method-assign, assignment] # in a process of its own
    os.statvfs = free_space  # type: ignore[assignment]
    _command_line(arguments)


def test_a_full_disk_is_told_of_and_ends_by_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with at_night(tmp_path, on_a_small_disk) as (night, scene):
        monkeypatch.setattr("reconciler.journal.sqlite_file.os.statvfs", free_space)
        full = scene.journal.with_name("full")
        full.touch()
        night.begins()
        # Nothing of this fits into pages that are free.
        value = secrets.token_hex(60_000)
        scene.put("a", value, *CLUSTERS)
        commit = scene.store.commit("Grow", author="ann")
        scene.wanted = {}  # What could not be recorded may have been written, or not.
        night.tells("a full disk")
        assert scene.status()["writer"], "the service is there still"
        assert "nothing is applied" in scene.status()["journalError"], "the last round is not all there is to say"
        scene.wanted = {(cluster, "a"): value for cluster in CLUSTERS}
        full.unlink()
        scene.holds(value)
        scene.daemon.says('"JournalHasRoom"')
        wait_until(lambda: scene.status()["revision"] == commit, "a round to be recorded", seen=scene.seen)
        assert "reconciler_ready 1.0" in scene.page("/metrics")
        assert "cannot be written" not in night.says("overview")
        assert scene.status()["todo"] is None
        wait_until(lambda: "journal-has-room" in night.says("webhook"), "the webhook to be told of the end")
        of_it = [told for told in map(json.loads, night.receiver.told) if told["type"].endswith(".journal-full.v1")]
        # At once, and from the journal: as one event to whoever counts each id once.
        assert (len(of_it), of_it[0]) == (2, of_it[1])
    with Journal.open(scene.journal, read_only=True) as journal:
        assert journal.verify() == ()
        assert not journal.open_intents()
        (begun,), (over,) = (journal.events(kind=f"journal-{kind}") for kind in ("full", "has-room"))
        assert begun.time == over.data["since"]


# The Lease


def is_of_a_lease(request: Request) -> bool:
    return "/leases/" in request.path


def lease_of(box: FleetInABox, scene: EmbeddedScene) -> dict[str, Any]:
    return dict(box["m3"].get("Lease", "fleet-system", f"fleet-{scene.fleet}"))


@contextmanager
def lease_of_another(scene: EmbeddedScene) -> Iterator[None]:
    """Another process holds the Lease and renews it; its clock is wrong by many years: no clock but our own counts."""
    over = threading.Event()
    transitions = scene.box.call(lambda box: lease_of(box, scene)["spec"]["leaseTransitions"]) + 1

    def renew(second: int, box: FleetInABox) -> None:
        lease, time = lease_of(box, scene), f"2001-01-01T00:{second // 60:02}:{second % 60:02}.000000Z"
        spec = {**lease["spec"], "acquireTime": time, "renewTime": time, "holderIdentity": "somebody-else",
                "leaseTransitions": transitions}  # fmt: skip
        box["m3"].state.put({**lease, "spec": spec})

    def hold() -> None:
        for second in count():
            scene.box.call(partial(renew, second))
            if over.wait(1):
                return

    holding = threading.Thread(target=hold)
    holding.start()
    try:
        yield
    finally:
        over.set()
        holding.join()


def test_a_lease_that_is_lost_is_told_of_until_it_is_held_again(tmp_path: Path) -> None:
    with at_night(tmp_path, ha={"cluster": "m3", "leaseDuration": f"{LEASE_S}s"}) as (night, scene):
        night.begins()
        with lease_of_another(scene):
            night.tells("a Lease that another takes")
        leads_again(scene, "2")

        night.begins()
        hanging = Fault(kind=FaultKind.HANGING)
        scene.box.call(lambda box: box.servers["m3"].faults.order(hanging, when=is_of_a_lease, times=1 << 30))
        night.tells("a Lease whose API server hangs")
        scene.box.call(lambda box: box.servers["m3"].faults.clear())
        leads_again(scene, "3")


def leads_again(scene: EmbeddedScene, value: str) -> None:
    """The Lease has run out, or can be reached again: the service works as before."""
    scene.put("a", value, *CLUSTERS)
    scene.store.commit(f"Write {value}")
    scene.holds(value)
    wait_until(lambda: "stands by" not in scene.page("/"), "the page of a leader", seen=scene.seen)


# Ticks


def test_a_copy_that_a_tick_moves_is_told_of(tmp_path: Path) -> None:
    terms = {"interval": "1s", "unschedulableThreshold": "1s"}
    with at_night(tmp_path, descheduling=terms) as (night, scene):

        def put(name: str, case: dict[str, Any]) -> None:
            bodies = [template(name, case), policy(name, case)]
            for body in bodies:
                body["metadata"]["namespace"] = scene.namespace
            scene.store.write(f"{name}.yaml", *bodies)
            scene.store.commit(f"Put {name}")

        def ready(name: str) -> dict[str, int]:
            live = {at: scene.get(at, "Deployment", scene.namespace, name) for at in ("m1", "m2")}
            return {at: body["status"].get("readyReplicas", 0) for at, body in live.items() if body}

        divided = {"replicas": 4, "policy": {"affinity": ["m1", "m2"]}}
        put("many", divided)
        wait_until(lambda: ready("many") == {"m1": 2, "m2": 2}, "both to have some", seen=scene.seen)
        night.begins()
        scene.box.call(lambda box: box["m1"].set_capacity("n1", cpu="0"))
        put("many", {**divided, "image": "nginx:2"})
        wait_until(lambda: ready("many") == {"m2": 4}, "all to be in m2", seen=scene.seen)
        night.tells("a copy that descheduling moves")
        scene.box.call(lambda box: box["m1"].set_capacity("n1", cpu="16"))

        failover = {"decisionConditions": {"tolerationSeconds": 1}, "purgeMode": "Immediately"}
        put("one", {"replicas": 1, "policy": {"division": "duplicated", "only": 1, "affinity": ["m1", "m2"],
                                              "failover": failover}})  # fmt: skip
        wait_until(lambda: sum(ready("one").values()) == 1, "one to run", seen=scene.seen)
        ((ill, _),) = ready("one").items()
        night.begins()
        scene.box.call(lambda box: box[ill].set_node_ready("n1", is_ready=False))
        wait_until(lambda: ready("one") == {({"m1", "m2"} - {ill}).pop(): 1}, "the other to have it", seen=scene.seen)
        night.tells("a copy that failover moves", cluster=ill)
