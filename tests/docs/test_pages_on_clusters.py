"""README, the tutorial and what goes on from there, typed in one after the other from an empty home, on clusters."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import ThreeClusters
from tests.docs.pages import blocks
from tests.docs.shell import Reader

pytestmark = [pytest.mark.apiserver]

CONTEXTS = {"m1": "hangzhou", "m2": "beijing"}
NAMESPACES = ("bakery", "shop")
FLEETS = ("bakery", "my-fleet")


@pytest.fixture
def reader(tmp_path: Path, three_clusters: ThreeClusters, kubernetes_binaries: Path) -> Iterator[Reader]:
    """A reader whose kubeconfig has the tutorial's contexts, on clusters with a node each, and with an empty home."""
    kubeconfig = tmp_path / "kubeconfig"
    config = json.loads(three_clusters.kubeconfig.read_text())
    config["contexts"] = [{**found, "name": CONTEXTS.get(found["name"], found["name"])} for found in config["contexts"]]
    kubeconfig.write_text(json.dumps(config))
    # As every program writes it: others on the machine may not read it.
    kubeconfig.chmod(0o600)
    path = f"{kubernetes_binaries}{os.pathsep}{os.environ['PATH']}"
    clusters = (three_clusters.m1, three_clusters.m2, three_clusters.m3)
    for cluster in clusters:
        cluster.add_node("bakery-1")
        # Other tests share the clusters, and a reader begins with empty ones.
        cluster.kubectl("delete", "namespace", *NAMESPACES, "--ignore-not-found", "--timeout=120s")
    reader = Reader(tmp_path, {"KUBECONFIG": str(kubeconfig)}, more=("kubectl",), path=path)
    reader.git_repository()
    yield reader
    for cluster in clusters:
        for name in NAMESPACES:
            cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
        marks = [f"configmap/fleet-{name}" for name in FLEETS]
        cluster.kubectl("delete", "-n", "fleet-system", *marks, "--ignore-not-found")
        cluster.remove_node("bakery-1")


def test_readme_then_the_tutorial_work_from_start_to_end_and_what_runs_can_be_suspended(reader: Reader) -> None:
    assert reader.follow(blocks("README.md")) > 15
    # A new terminal.
    reader.here = reader.folder
    assert reader.follow(blocks("docs/tutorial/first-fleet.md")) > 20
    assert reader.follow(block for block in blocks("docs/how-to/suspend.md") if block.needs_clusters) == 6
