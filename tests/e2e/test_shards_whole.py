"""Whichever process of a fleet with shards is asked, it shows all of the fleet. Source: ADR 22.

The leader, both appliers and a leader that stands by are asked for the same: `status`, the matrix, and metrics.
"""

from __future__ import annotations

import json
import re
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from reconciler.sim import ClusterSpec, background_fleet
from tests.e2e.daemon_process import Daemon
from tests.e2e.test_shards import CLUSTERS, MEMBERS, Scene
from tests.fakes.documents import policy, web

pytestmark = pytest.mark.timeout(300)


class Whole(Scene):
    """A scene whose processes serve pages, with a leader that stands by."""

    def process(self, name: str, *words: str) -> Daemon:
        return super().process(name, "--listen", "127.0.0.1:0", *words)

    def get_from(self, process: Daemon, path: str) -> bytes:
        address = next(reversed(re.findall(r'"event": ?"Listening".*?"obj": ?"([^"]+)"', process.text())), "")
        if not address:
            lines = [json.loads(line) for line in process.text().splitlines() if line.startswith("{")]
            address = next(line["obj"] for line in reversed(lines) if line.get("event") == "Listening")
        with urllib.request.urlopen(f"http://{address}{path}", timeout=30) as answer:
            return bytes(answer.read())

    def matrix(self, process: Daemon) -> dict[tuple[str, str], tuple[str, str]]:
        """By workload and cluster its sync and health."""
        view = json.loads(self.get_from(process, "/api/v1/matrix?kind=*"))
        names = [head["name"] for head in view["clusters"]]
        return {
            (f"{row['resource']['kind']}/{row['resource']['name']}", names[cell[0]]): (cell[1], cell[3])
            for row in view["rows"]
            for cell in row["cells"]
        }

    def samples(self, process: Daemon) -> dict[str, float]:
        """The metrics of the whole fleet: `cluster_up{cluster="m1",shard="a"}` and their values."""
        text = self.get_from(process, "/metrics").decode()
        found = re.findall(r"^fleet_reconciler_fleet_(\S+) (\S+)$", text, re.MULTILINE)
        return {name: float(value) for name, value in found}


@contextmanager
def whole(folder: Path) -> Iterator[tuple[Whole, dict[str, Daemon]]]:
    with background_fleet([ClusterSpec(name=name) for name in CLUSTERS], folder) as fleet, ExitStack() as stack:
        found = Whole(folder, fleet)
        processes = {"leader": found.leader, "a": found.a, "b": found.b, "spare": found.process("spare")}
        for process in processes.values():
            stack.enter_context(process)
        yield found, processes


def test_each_process_shows_the_whole_fleet(tmp_path: Path) -> None:
    with whole(tmp_path) as (found, processes):
        found.put("1")
        found.store.write("web.yaml", web("nginx:broken", 2), policy("web", "Deployment", "m1", "m2"))
        found.store.commit()
        for process in processes.values():
            process.start()
        found.until(lambda: found.everywhere("1"), "all to be there")
        found.fleet.wait(lambda box: box.servers["m3"].stop())
        for name, process in processes.items():
            found.until(partial(_tells, _is_troubled, found, process), f"the status of {name}")
            found.until(partial(_tells, _shows_troubles, found, process), f"the matrix of {name}")
            found.until(partial(_tells, _measures_troubles, found, process), f"the metrics of {name}")
            page = found.get_from(process, "/").decode()
            assert all(f'data-key="{shard}"' in page for shard in ("a", "b"))
            assert "2 of 4 clusters in sync" not in page, "one is away, and the others hold what is wanted"
        # What nobody tells any more looks fine nowhere.
        found.b.kill()
        left = {name: process for name, process in processes.items() if name != "b"}
        for name, process in left.items():
            found.until(partial(_tells, _is_b_unknown, found, process), f"{name} to know nothing of shard b")
        # It is there again with the first word of its next process.
        found.fleet.wait(lambda box: box.servers["m3"].start())
        found.b.start()
        for name, process in left.items():
            found.until(partial(_tells, _is_b_known, found, process), f"{name} to know shard b again")
        # Of a commit each tells as far as it is there.
        found.store.write("web.yaml", web("nginx:2", 2), policy("web", "Deployment", *MEMBERS))
        revision = found.store.commit()
        for name, process in processes.items():
            found.until(partial(_tells, _is_all_well, found, process, revision), f"{name} to tell that all is well")


def _tells(what: Callable[..., bool], *asked: Any) -> bool:
    """Whether it is so; a process that has just begun tells nothing."""
    try:
        return what(*asked)
    except (OSError, KeyError, StopIteration):
        return False


def _is_troubled(found: Whole, process: Daemon) -> bool:
    told = found.status(process)
    clusters = {each["name"]: each for each in told["clusters"]}
    sick = {(each["cluster"], each["health"]) for each in told["troubles"] if each["resource"]["kind"] == "Deployment"}
    return (
        {name: each["shard"] for name, each in clusters.items()} == {"m1": "a", "m2": "b", "m3": "b", "hub": "a"}
        and {name: each["up"] for name, each in clusters.items()} == {"m1": True, "m2": True, "m3": False, "hub": True}
        and sick == {("m1", "Degraded"), ("m2", "Degraded")}
        and clusters["m1"]["objects"]["synced"] >= 2
        and clusters["m2"]["health"]["Degraded"] == 1
        and not told["complete"]
        and {each["name"]: bool(each["process"]) for each in told["shards"]} == {"a": True, "b": True}
    )


def _shows_troubles(found: Whole, process: Daemon) -> bool:
    cells = found.matrix(process)
    return (
        {name: cells["Deployment/web", name] for name in ("m1", "m2")}
        == dict.fromkeys(("m1", "m2"), ("Synced", "Degraded"))
        and {name: cells["ConfigMap/settings", name] for name in ("m1", "m2")}
        == dict.fromkeys(("m1", "m2"), ("Synced", "Healthy"))
        and cells["ConfigMap/settings", "m3"] == ("Unknown", "Unknown")
    )


def _measures_troubles(found: Whole, process: Daemon) -> bool:
    samples = found.samples(process)
    return (
        samples['object_health{cluster="m1",health="Degraded",shard="a"}'] == 1
        and samples['object_health{cluster="m2",health="Degraded",shard="b"}'] == 1
        and samples['cluster_up{cluster="m2",shard="b"}'] == 1
        and samples['cluster_up{cluster="m3",shard="b"}'] == 0
        and (samples["clusters"], samples["clusters_in_step"]) == (4, 3)
        and (samples['shard_told{shard="a"}'], samples['shard_told{shard="b"}']) == (1, 1)
    )


def _is_b_unknown(found: Whole, process: Daemon) -> bool:
    clusters = {each["name"]: each for each in found.status(process)["clusters"]}
    cells, samples = found.matrix(process), found.samples(process)
    return (
        all("shard b has not told since" in clusters[name]["why"] for name in ("m2", "m3"))
        and not any(clusters[name]["told"] or clusters[name]["objects"]["synced"] for name in ("m2", "m3"))
        and cells["ConfigMap/settings", "m2"] == cells["Deployment/web", "m2"] == ("Unknown", "Unknown")
        and cells["ConfigMap/settings", "m1"] == ("Synced", "Healthy")
        and samples['shard_told{shard="b"}'] == 0
        and 'cluster_up{cluster="m2",shard="b"}' not in samples
    )


def _is_b_known(found: Whole, process: Daemon) -> bool:
    return found.matrix(process)["ConfigMap/settings", "m3"] == ("Synced", "Healthy")


def _is_all_well(found: Whole, process: Daemon, revision: str) -> bool:
    told = found.status(process)
    return (
        told["revision"] == revision
        and set(found.matrix(process).values()) == {("Synced", "Healthy")}
        and {each["name"] for each in told["clusters"] if each["objects"]["synced"] >= 3} == set(MEMBERS)
        and not told["troubles"]
    )
