"""A pull request on real clusters: what its check shows offline is due in the clusters, and is then written.

Source: design#one-plan; design#promise-9.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.command_line import CommandLine
from tests.e2e.fleet_on_clusters import CLUSTER, FleetOnClusters, writes_to
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver

VERBS = {"create": "patch", "update": "patch", "delete": "delete"}


LOOSENED = (
    "dispatching is suspended no more by PropagationPolicy {}/held; it was loosened: the former one counts until the "
    "next revision, or with the spec.review.confirm of its review"
)


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> Iterator[FleetOnClusters]:
    made = FleetOnClusters(tmp_path, three_clusters)
    name = f"n-{made.fleet}"
    for cluster in made.clusters.values():
        cluster.add_node(name)
    yield made
    for cluster in made.clusters.values():
        cluster.remove_node(name)


def commit(fleet: FleetOnClusters, *branch: str) -> None:
    """The files of the store as a commit, on a new branch when one is named."""
    options = ["-c", "user.name=t", "-c", "user.email=t@t"]
    for command in (
        ["init", "--quiet", "--initial-branch=main"],
        *([["checkout", "--quiet", "-b", *branch]] if branch else []),
        ["add", "--all"],
        [*options, "commit", "--quiet", "--message", "c"],
    ):
        subprocess.run(["git", *command], cwd=fleet.store, check=True, capture_output=True)


def weighted(fleet: FleetOnClusters, m1: int, m2: int) -> dict[str, Any]:
    entries = [
        {"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in (("m1", m1), ("m2", m2))
    ]
    scheduling = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Weighted"}
    placement = {"replicaScheduling": {**scheduling, "weightPreference": {"staticWeightList": entries}}}
    return fleet.policy("web", "Deployment", clusters=["m1", "m2"], placement=placement)


def write_base(fleet: FleetOnClusters) -> None:
    fleet.write("web", fleet.deployment("web", replicas=6), weighted(fleet, 1, 1))
    fleet.write("held", fleet.config_map("held"), fleet.policy("held", "ConfigMap", clusters=["m1"],
                                                               suspension={"dispatching": True}))  # fmt: skip
    fleet.write("old", fleet.config_map("old"))
    fleet.write("old-policy", fleet.policy("old", "ConfigMap", keep=False, clusters=["m2"]))
    fleet.write("far", fleet.config_map("far"), fleet.policy("far", "ConfigMap", keep=False, clusters=["m1", "m3"]))


def write_head(fleet: FleetOnClusters) -> None:
    fleet.write("web", fleet.deployment("web", replicas=6), weighted(fleet, 1, 2))
    fleet.write("held", fleet.config_map("held"), fleet.policy("held", "ConfigMap", clusters=["m1"]))
    fleet.write("old")
    fleet.write("new", fleet.config_map("new"), fleet.policy("new", "ConfigMap", clusters=["m1"],
                                                             dependentOverrides=["missing"]))  # fmt: skip
    fleet.write("clusters/m3")
    fleet.write("clusters/m1", {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": "m1"},
                                "spec": {"region": "north"}})  # fmt: skip


def changes(cli: CommandLine, *args: str) -> Any:
    process = cli.run("diff", cli.store, *args, "-o", "json")
    assert process.returncode == 0, process.stdout + process.stderr
    document = json.loads(process.stdout)
    assert document["complete"]
    # The revisions differ, and a default that an API server filled in is known to it alone.
    return document["changes"], document["summary"], document["placements"]


def test_what_was_shown_offline_is_due_live_and_is_then_written(fleet: FleetOnClusters) -> None:
    cli = CommandLine(fleet)
    write_base(fleet)
    commit(fleet)
    # A policy that suspends dispatching holds one of them.
    cli.apply(3)

    def is_available() -> bool:
        found = [fleet.live(cluster, "deployment", "web") for cluster in ("m1", "m2")]
        return all(live is not None and live.get("status", {}).get("availableReplicas") == 3 for live in found)

    wait_until(is_available, "all replicas of base are available")
    write_head(fleet)
    commit(fleet, "topic")
    observed = str(fleet.store.parent / "observed.yaml")
    cli.done("observe", cli.store, "--rev", "main", "-o", observed)
    offline = changes(cli, "--base", "main", "--head", "topic", "--observations", observed)
    assert offline == changes(cli, "--rev", "topic")
    assert [(c["action"], c["cluster"], c["resource"]["name"], c["held"]) for c in offline[0]] == [
        ("create", "m1", "held", LOOSENED.format(fleet.namespace)),
        ("create", "m1", "new", f"waits for OverridePolicy {fleet.namespace}/missing"),
        ("update", "m1", "web", "waits for m2 healthy"),
        ("delete", "m2", "old", None),
        ("update", "m2", "web", None),
    ]
    marks = {name: fleet.clusters[name].mark() for name in ("m1", "m2")}
    cli.apply()
    due = {(c["cluster"], f"{VERBS[c['action']]} {c['resource']['name']}") for c in offline[0] if not c["held"]}
    wrote = {
        (name, f"{verb} {subject}")
        for name, since in marks.items()
        for verb, _, subject in map(str.split, writes_to(fleet.clusters[name], since))
    }
    # Each apply raises the epoch where it writes and holds the fleet.
    assert wrote == due | {(name, f"patch fleet-{fleet.fleet}") for name, _ in due}
