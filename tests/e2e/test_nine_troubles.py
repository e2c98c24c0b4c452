"""Nine troubles of one night on real clusters: wherever a person on call looks, it says what, who, and what to do.

Page, `status`, metrics, log and webhook are asked after each of them. Source: design#promise-3; design#told.
"""

from __future__ import annotations

import html
import re
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.scene import CLUSTERS, Scene, running
from tests.real_clusters import wait_until
from tests.unit.cli.command_line import run

pytestmark = pytest.mark.apiserver

CHANNELS = ("page", "status", "metrics", "log", "webhook")


class Receiver:
    """Somebody's endpoint for webhooks: what it was told, as one line of JSON for each event."""

    def __init__(self) -> None:
        told: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                told.append(self.rfile.read(int(self.headers["Content-Length"])).decode())
                self.send_response(204)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.told = told
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, name="receiver")
        self._thread.start()
        self.url = f"http://127.0.0.1:{self._server.server_port}/hook"

    def close(self) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class Night:
    """The scene, the receiver, and how long each trouble took to be told of everywhere."""

    def __init__(self, scene: Scene, receiver: Receiver) -> None:
        self.scene, self.receiver = scene, receiver
        self.took_s: dict[str, float] = {}
        self._log_from = self._hook_from = 0

    def begins(self) -> None:
        """Nothing that was told before counts for the next trouble."""
        self._log_from, self._hook_from = len(self.scene.daemon.text()), len(self.receiver.told)

    def says(self, channel: str) -> str:
        """All that a channel says now; of log and webhook what came since the trouble began."""
        scene = self.scene
        match channel:
            case "page":
                return text_of(scene.page("/"))
            case "status":
                return run("status", "-o", "wide", "--journal", str(scene.journal)).out
            case "metrics":
                return scene.page("/metrics")
            case "log":
                return scene.daemon.text()[self._log_from :]
            case _:
                return "\n".join(self.receiver.told[self._hook_from :])

    def tells(self, trouble: str, wanted: Mapping[str, Sequence[str]], *away: str) -> None:
        """Return once every channel has its words, and nothing is called Synced that is not."""
        assert set(wanted) == set(CHANNELS), "each channel is asked"
        began_s = time.monotonic()

        def missing() -> dict[str, list[str]]:
            said = {channel: self.says(channel) for channel in CHANNELS}
            lacking = {
                channel: [word for word in words if word not in said[channel]] for channel, words in wanted.items()
            }
            return {channel: words for channel, words in lacking.items() if words}

        def what() -> str:
            lacking = missing()
            return f"{lacking}\n" + "\n".join(f"--- {channel}\n{self.says(channel)[-4000:]}" for channel in lacking)

        wait_until(lambda: not missing(), f"{trouble} to be told of everywhere", 60, what)
        self.took_s[trouble] = time.monotonic() - began_s
        self.scene.check(*away)


def text_of(page: str) -> str:
    """Return the readable text of a page."""
    body = re.sub(r"<(script|style|head).*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


@pytest.fixture
def night(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[Night]:
    receiver = Receiver()
    try:
        with running(Scene(tmp_path, three_clusters, "--webhook", receiver.url)) as scene:
            yield Night(scene, receiver)
    finally:
        receiver.close()


def test_whatever_is_looked_at_says_what_who_and_what_to_do(night: Night) -> None:
    scene = night.scene
    scene.until("m1", {"synced": 6})
    scene.until("m2", {"synced": 2})
    for trouble in (a_hand_edit, a_fight, a_roll_out_is_stuck, a_broken_commit, a_foreign_object, held_deletions,
                    a_colleague_suspends, a_colleague_evicts, a_cluster_is_away):  # fmt: skip
        night.begins()
        trouble(night)
    print({name: round(took_s, 1) for name, took_s in night.took_s.items()})


def a_hand_edit(night: Night) -> None:
    """It is undone at once, and who made it is told."""
    night.scene.by_hand("m1", "a", "theirs")
    wait_until(lambda: night.scene.held_by("m1")["a"] == "1", "the heal", 60)
    night.tells("hand edit", {
        "page": ["drift", 'healed: data.value "theirs" → "1"', "by-hand"],
        "status": ["SYNCED"],
        "metrics": ['fleet_reconciler_drift_total{cluster="m1"} 1.0'],
        "log": ['"cause": "drift"', "by-hand"],
        "webhook": ['"type":"io.fleet-reconciler.drift.v1"', '"who":"by-hand"', '"outcome":"healed"'],
    })  # fmt: skip


def a_fight(night: Night) -> None:
    """Somebody undoes what we do, again and again."""
    scene = night.scene
    for number in range(20):
        if "FightDetected" in scene.daemon.text():
            break
        scene.by_hand("m1", "b", f"theirs-{number}")
        wait_until(lambda: scene.held_by("m1")["b"] == "1" or "FightDetected" in scene.daemon.text(), "a heal", 60)
    scene.by_hand("m1", "b", "theirs at last")
    night.tells("fight", {
        "page": ["fought over", "by-hand keeps undoing our changes", "end the writes of by-hand"],
        "status": ["fought", "by-hand"],
        "metrics": ['objects{cluster="m1",state="fought"} 1.0', 'fights_total{cluster="m1"} 1.0'],
        "log": ["FightDetected", "by-hand"],
        "webhook": ['"type":"io.fleet-reconciler.fight-detected.v1"', "by-hand"],
    })  # fmt: skip


def a_roll_out_is_stuck(night: Night) -> None:
    """In sync, and green nowhere."""
    night.scene.put_deployment("no.such/image:1")
    commit = night.scene.store.commit("Take an image that is not there")
    night.scene.cannot_pull("no.such/image:1")
    night.tells("stuck roll-out", {
        "page": ["degraded", "its image cannot be pulled", commit[:12], "kubectl describe"],
        "status": ["Degraded", "its image cannot be pulled"],
        "metrics": ['object_health{cluster="m1",health="Degraded"} 1.0'],
        "log": ["HealthDegraded", "its image cannot be pulled"],
        "webhook": ['"type":"io.fleet-reconciler.degraded.v1"', "its image cannot be pulled"],
    })  # fmt: skip


def a_foreign_object(night: Night) -> None:
    """Somebody else made one of that name."""
    scene = night.scene
    scene.clusters["m2"].apply({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "theirs"},
                                "metadata": {"name": "e", "namespace": scene.namespace}})  # fmt: skip
    scene.put("e", "1", "m2")
    scene.store.commit("Add e")
    night.tells("foreign object", {
        "page": ["refused", "an object that is not ours is in the way", "e.yaml:1", "conflictResolution"],
        "status": ["refused", "e.yaml:1"],
        "metrics": ['objects{cluster="m2",state="refused"} 1.0'],
        "log": ["ObjectRefused", "object-not-ours"],
        "webhook": ['"type":"io.fleet-reconciler.object-refused.v1"', "ConfigMap"],
    })  # fmt: skip


def a_broken_commit(night: Night) -> None:
    """A file that cannot be read; what it concerns stays as it is."""
    scene = night.scene
    scene.store.write_text("broken.yaml", "kind: ConfigMap\n  apiVersion: v1\n")
    scene.store.commit("Break a file")
    told = ["broken.yaml:2"]
    night.tells("broken commit", {
        "page": ["problem", *told],
        "status": told,
        "metrics": ['store_problems{severity="error"} 1.0'],
        "log": ["StoreBroken", *told],
        "webhook": ['"type":"io.fleet-reconciler.store-broken.v1"', *told],
    })  # fmt: skip
    scene.store.write("broken.yaml")
    scene.store.commit("Mend it")
    scene.daemon.says("StoreMended")


def held_deletions(night: Night) -> None:
    """Two at once are one too many."""
    scene = night.scene
    for name in ("c", "d"):
        scene.put(name, "")
    scene.store.commit("Take c and d out")
    scene.until_trouble("m1", "c", state="held", by="guard")
    digest = str(scene.status()["heldDigest"])
    night.tells("held deletions", {
        "page": ["held", "2 ConfigMaps", f"spec.guards.confirm: {digest}", "fleet.yaml:1"],
        "status": ["Held (2)", "guard", digest],
        "metrics": ['objects{cluster="m1",state="held"} 2.0', 'changes_held{reason="guard"} 2.0'],
        "log": ["ChangeHeld", "guard"],
        "webhook": ['"type":"io.fleet-reconciler.held.v1"', "guard"],
    })  # fmt: skip


def a_colleague_suspends(night: Night) -> None:
    """Check that pending changes wait for that person."""
    scene = night.scene
    done = run("suspend", "cluster", "m3", "--reason", "disk swap", "--journal", str(scene.journal))
    assert done.code == 0, done.err
    scene.put("a", "2", *CLUSTERS)
    scene.store.commit("Change a")
    night.tells("suspension", {
        "page": ["suspended", "disk swap", "m3", "reconciler resume"],
        "status": ["disk swap", "m3", "suspended"],
        "metrics": ['objects{cluster="m3",state="held"} 1.0', "suspended_scopes 1.0"],
        "log": ["Suspended", "disk swap", '"by"'],
        "webhook": ['"type":"io.fleet-reconciler.suspended.v1"', "disk swap", '"who":'],
    })  # fmt: skip


def a_colleague_evicts(night: Night) -> None:
    """A copy goes, and everybody knows by whom."""
    scene = night.scene
    scene.put("f", "1", "m1", "m2")
    scene.store.commit("Add f")
    wait_until(lambda: "f" in scene.held_by("m1"), "f in m1", 60, scene.seen)
    done = run("evict", "configmap/f", "-n", scene.namespace, "--cluster", "m1", "--reason", "bad disk",
               "--journal", str(scene.journal))  # fmt: skip
    assert done.code == 0, done.err
    scene.wanted.pop(("m1", "f"))
    night.tells("eviction", {
        "page": ["evicted", "bad disk", "ConfigMap"],
        "status": ["bad disk", "m1"],
        "metrics": ['changes_total{action="delete",cluster="m1",result="done"}'],
        "log": ["Evicted", "bad disk", '"by"'],
        "webhook": ['"type":"io.fleet-reconciler.evicted.v1"', "bad disk", '"who":'],
    })  # fmt: skip


def a_cluster_is_away(night: Night) -> None:
    """Nobody knows anything of it, and everybody says so."""
    cluster = night.scene.clusters["m2"]
    cluster.stop()
    try:
        night.tells("cluster away", {
            "page": ["cluster away", "m2 does not answer", "connection refused", "1 away"],
            "status": ["m2", "no", "connection refused"],
            "metrics": ['cluster_up{cluster="m2"} 0.0', 'objects{cluster="m2",state="unknown"}'],
            "log": ["ClusterUnreachable", "m2"],
            "webhook": ['"type":"io.fleet-reconciler.cluster-away.v1"', "connection refused"],
        }, "m2")  # fmt: skip
    finally:
        cluster.start()
