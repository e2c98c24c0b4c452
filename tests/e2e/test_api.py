"""The API of a running service: it says what is wrong while it is, and tells elsewhere what the commands tell here."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.sim import BackgroundFleet, ClusterSpec, Fault, FaultKind, Request, background_fleet
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.fakes.documents import config_map, policy
from tests.program import run_text
from tests.real_clusters import wait_until

CLUSTERS = ("m1", "m2", "m3")


class Watched:
    """Embedded clusters, a store with two ConfigMaps, and the service whose API is asked."""

    def __init__(self, folder: Path, fleet: BackgroundFleet) -> None:
        self.folder, self.fleet = folder, fleet
        self.store = GitRepository(folder / "store", "shop", CLUSTERS)
        for name in ("app", "other"):
            self.put(name, "1", *CLUSTERS)
        self.store.commit()
        self.journal = folder / "state/journal.db"
        self.daemon = Daemon(self.store.folder, fleet.kubeconfig, self.journal, "--listen", "127.0.0.1:0")
        self.address = ""

    def put(self, name: str, value: str, *clusters: str) -> None:
        """A ConfigMap and the policy that places it."""
        self.store.write(f"{name}.yaml", config_map(name, value=value))
        self.store.write(f"{name}-policy.yaml", policy(name, "ConfigMap", *clusters))

    def start(self) -> None:
        """Start it, and wait until all is in step."""
        self.daemon.start()
        self.daemon.says('"pages are served"')
        found = re.findall(r'"event": ?"Listening".*?"obj": ?"([^"]+)"', self.daemon.text())
        self.address = found[-1]
        wait_until(lambda: self.fleet_view().get("clusters", {}).get("inSync") == len(CLUSTERS), "all to be in step")

    def get(self, path: str) -> Any:
        """The document at a path of the API."""
        with urllib.request.urlopen(f"http://{self.address}/api/v1/{path}", timeout=180) as answer:
            return json.load(answer)

    def fleet_view(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get("fleet")
        return found

    def needs(self, what: str) -> list[dict[str, Any]]:
        """Return what the fleet's view says of that."""
        return [need for need in self.fleet_view()["needs"] if need["what"] == what]

    def says(self, what: str, words: str) -> dict[str, Any]:
        """The need of that, once there is one with those words in its title or reason."""
        found: list[dict[str, Any]] = []

        def is_said() -> bool:
            found[:] = [need for need in self.needs(what) if words in f"{need['title']} {need['why']}"]
            return bool(found)

        wait_until(is_said, f"{what} with {words!r}; it says {self.fleet_view()['needs']}")
        return found[0]

    def run(self, *args: str) -> str:
        """A command of ours, with what it prints."""
        return run_text(*args, environment={**os.environ, "USER": "bob"}).stdout

    def request(self, cluster: str, method: str, path: str, body: dict[str, Any], agent: str = "kubectl/v1") -> None:
        """Somebody else's request."""
        content = "application/merge-patch+json" if method == "PATCH" else "application/json"
        sent = Request(method=method, path=path, query={}, body=body, content_type=content, accept="application/json",
                       user_agent=agent)  # fmt: skip
        self.fleet.call(lambda box: box[cluster].request(sent))


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], tmp_path) as fleet:
        found = Watched(tmp_path, fleet)
        with found.daemon:
            found.start()
            yield found


def test_says_each_trouble_with_its_cause_its_place_and_what_to_do(watched: Watched) -> None:
    assert watched.fleet_view()["needsTotal"] == 0

    watched.store.write("broken.yaml", {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"nane": "x"}})
    watched.store.commit("Break it")
    broken = watched.says("problem", "name")
    assert (broken["weight"], broken["where"].partition(":")[0]) == ("error", "broken.yaml")
    assert broken["who"] == "a"
    watched.store.write("broken.yaml")

    watched.request("m1", "POST", "/api/v1/namespaces/demo/configmaps", config_map("theirs", value="theirs"))
    watched.put("theirs", "ours", "m1")
    watched.store.commit("Add one that is there")
    refused = watched.says("refused", "theirs")
    assert (refused["cluster"], refused["resource"]["name"], refused["where"]) == ("m1", "theirs", "theirs.yaml:1")
    assert "Overwrite" in refused["todo"]
    assert refused["since"]

    watched.run("suspend", "cluster", "m2", "--reason", "maintenance", "--journal", str(watched.journal))
    suspended = watched.says("suspended", "cluster m2")
    assert (suspended["who"].partition("@")[0], suspended["why"]) == ("bob", "maintenance")
    assert "resume cluster m2" in suspended["todo"]
    assert suspended["since"]

    watched.run("evict", "configmap/other", "-n", "demo", "--cluster", "m1", "--reason", "noisy", "--journal",
                str(watched.journal))  # fmt: skip
    evicted = watched.says("evicted", "other")
    assert (evicted["who"].partition("@")[0], evicted["cluster"]) == ("bob", "m1")
    assert [timer["what"] for timer in watched.fleet_view()["timers"]] == ["eviction"]

    watched.fleet.call(lambda box: box.servers["m3"].faults.order(Fault(kind=FaultKind.UNAVAILABLE), times=1_000_000))
    watched.put("app", "2", *CLUSTERS)
    watched.store.commit("Change it")
    away = watched.says("away", "cluster m3")
    assert (away["weight"], away["where"].partition(":")[0]) == ("error", "clusters/m3.yaml")
    assert "last read: 20" in away["why"]
    assert watched.fleet_view()["needs"][0]["what"] == "away"
    # It may be away before the commit is followed, for which the other two wait.
    counts = {"total": 3, "inSync": 0, "away": 1}
    wait_until(lambda: counts.items() <= watched.fleet_view()["clusters"].items(), "no cluster to be in step")


def test_tells_elsewhere_what_the_commands_tell_here(watched: Watched) -> None:
    here, there = ("--journal", str(watched.journal)), ("--server", f"http://{watched.address}")
    for command in (
        ("status",), ("status", "-o", "json"), ("status", "-o", "wide"), ("status", "--released"),
        ("history",), ("history", "-o", "json"),
        ("history", "configmap/app", "-n", "demo", "--limit", "1", "-o", "yaml"),
        ("history", "--cluster", "m1", "--since", "1h", "-o", "wide"),
    ):  # fmt: skip
        assert watched.run(*command, *there) == watched.run(*command, *here), command
    live = ("--store", str(watched.store.folder), "--kubeconfig", str(watched.fleet.kubeconfig), "--live", *here)
    for form in ("text", "json"):
        told = watched.run("explain", "configmap/app", "-o", form, *there)
        assert told == watched.run("explain", "configmap/app", "-o", form, *live)
        assert "app-policy.yaml" in told


def test_streams_end_at_once_with_the_service(watched: Watched) -> None:
    with urllib.request.urlopen(f"http://{watched.address}/api/v1/events", timeout=180) as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        assert stream.readline() == b"event: round\n"
        stream.readline()
        assert json.loads(stream.readline().removeprefix(b"data: "))["round"] > 0
        assert stream.readline() == b"\n"
        watched.put("app", "2", *CLUSTERS)
        watched.store.commit()
        assert stream.readline() == b"event: round\n"
        assert watched.daemon.stop(10) == 0
        stream.read()
