"""The API of a running service tells elsewhere what the commands tell here."""

from __future__ import annotations

import json
import os
import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.sim import BackgroundFleet, ClusterSpec, background_fleet
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

    def run(self, *args: str) -> str:
        """A command of ours, with what it prints."""
        return run_text(*args, environment={**os.environ, "USER": "bob"}).stdout


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], tmp_path) as fleet:
        found = Watched(tmp_path, fleet)
        with found.daemon:
            found.start()
            yield found


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
