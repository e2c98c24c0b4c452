"""The example store on three real clusters, through the command line: what `render` says is what the members hold."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import writes_to
from tests.program import run_text
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

EXAMPLE = Path(__file__).parents[2] / "examples/fleet-repo"
CONTEXTS = {"hangzhou": "m1", "beijing": "m2", "idc": "m3"}


class Example(NamedTuple):
    """The example store with its clusters' contexts pointed at the test's clusters."""

    store: Path
    environment: dict[str, str]
    clusters: dict[str, RealCluster]

    def run(self, *args: str) -> subprocess.CompletedProcess[str]:
        return run_text(*args, environment=self.environment, code=None)

    def json(self, *args: str) -> Any:
        done = self.run(*args)
        assert done.stdout, done.stderr
        return json.loads(done.stdout)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory, three_clusters: ThreeClusters) -> Iterator[Example]:
    folder = tmp_path_factory.mktemp("example")
    store = folder / "store"
    shutil.copytree(EXAMPLE, store)
    for name, context in CONTEXTS.items():
        path = store / f"clusters/{name}.yaml"
        text = path.read_text()
        path.write_text(text.replace("  annotations:\n", f"  annotations:\n    fleet.reconciler/context: {context}\n"))
    clusters = dict(zip(CONTEXTS, (three_clusters.m1, three_clusters.m2, three_clusters.m3), strict=True))
    for cluster in clusters.values():
        cluster.add_node("example-1", cpu="16", memory="32Gi")
    environment = {
        **os.environ,
        "RECONCILER_KUBECONFIG": str(three_clusters.kubeconfig),
        "RECONCILER_JOURNAL": str(folder / "journal.db"),
    }
    yield Example(store, environment, clusters)
    for cluster in clusters.values():
        cluster.remove_node("example-1")


@pytest.fixture(scope="module")
def applied(example: Example) -> Example:
    done = example.run("apply", str(example.store), "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    return example


def is_within(wanted: Any, live: Any) -> bool:
    """Return whether the live value holds everything wanted; list items are found by name or equality."""
    if isinstance(wanted, dict):
        return isinstance(live, dict) and all(
            key in live and is_within(value, live[key]) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        return isinstance(live, list) and all(any(is_within(item, other) for other in live) for item in wanted)
    return bool(wanted == live)


def named(body: dict[str, Any]) -> tuple[str, str, str]:
    """Return the key of an object in its cluster."""
    metadata = body["metadata"]
    return body["kind"], metadata.get("namespace", ""), metadata["name"]


def test_members_hold_what_render_says(applied: Example) -> None:
    observed = applied.store.parent / "observed.yaml"
    assert applied.run("observe", str(applied.store), "-o", str(observed)).returncode == 0
    rendered = applied.json("render", str(applied.store), "-o", "json", "--observations", str(observed))
    assert rendered["version"] == 1
    assert len(rendered["objects"]) > 50
    kinds = ",".join(sorted({entry["manifest"]["kind"].lower() for entry in rendered["objects"]}))
    found = {
        (name, *named(live)): live
        for name, cluster in applied.clusters.items()
        for live in cluster.get(kinds, "--all-namespaces")["items"]
    }
    for entry in rendered["objects"]:
        body = entry["manifest"]
        live = found[(entry["cluster"], *named(body))]
        if body["kind"] == "Secret":
            body.pop("data")
        if body["kind"] == "ResourceQuota":
            # Quantities come back in their canonical spelling, which the diff knows to be equal.
            body["spec"].pop("hard")
        assert is_within(body, live), f"{entry['cluster']} {named(body)}"


def test_a_second_apply_sends_no_write(applied: Example) -> None:
    marks = {name: cluster.mark() for name, cluster in applied.clusters.items()}
    done = applied.run("apply", str(applied.store), "--yes")
    assert done.returncode == 0, done.stderr
    assert {name: writes_to(cluster, marks[name]) for name, cluster in applied.clusters.items()} == {
        name: [] for name in applied.clusters
    }


def test_diff_is_clean_then_names_a_hand_edit_which_apply_heals(applied: Example) -> None:
    store = str(applied.store)
    assert applied.run("diff", store, "--detailed-exitcode").returncode == 0
    hangzhou = applied.clusters["hangzhou"]
    hangzhou.kubectl("set", "image", "deployment/web", "nginx=nginx:by-hand", "-n", "shop", "--field-manager=a-person")
    done = applied.run("diff", store, "--detailed-exitcode", "-o", "json")
    assert done.returncode == 2, done.stderr
    changes = json.loads(done.stdout)["changes"]
    assert [(change["cluster"], change["action"], change["cause"]) for change in changes] == [
        ("hangzhou", "update", "drift")
    ]
    field = changes[0]["fields"][0]
    assert field["path"] == "spec.template.spec.containers[name=nginx].image"
    assert (field["before"], field["after"]) == ("nginx:by-hand", "nginx:1.27")
    assert field["owner"]["manager"] == "a-person"
    assert field["owner"]["time"].startswith("20")
    assert applied.run("apply", store, "--yes").returncode == 0
    assert applied.run("diff", store, "--detailed-exitcode").returncode == 0


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        ("pods", ["NAME", "CLUSTER", "CLUSTER_ALIAS", "READY", "STATUS", "RESTARTS", "AGE", "ADOPTION"]),
        ("nodes", ["NAME", "CLUSTER", "CLUSTER_ALIAS", "STATUS", "ROLES", "AGE", "VERSION", "ADOPTION"]),
    ],
)
def test_pods_and_nodes_are_listed_and_not_ours(applied: Example, kind: str, columns: list[str]) -> None:
    wait_until(
        lambda: applied.run("get", "pods", "-n", "shop", "--store", str(applied.store)).stdout != "", "pods start"
    )
    done = applied.run("get", kind, "-n", "shop", "--store", str(applied.store))
    header, *rows = done.stdout.splitlines()
    assert header.split() == columns
    assert rows
    assert all(row.split()[-1] == "N" for row in rows)


def test_doctor_finds_every_cluster_in_order(applied: Example) -> None:
    found = applied.json("doctor", str(applied.store), "-o", "json")["clusters"]
    assert [(cluster["cluster"], cluster["reachable"], cluster["denied"]) for cluster in found] == [
        (name, True, []) for name in sorted(CONTEXTS)
    ]
