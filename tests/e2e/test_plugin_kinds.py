"""A kind that an installed package describes: found by its entry point, divided and rendered by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.rule_stores import write_store

PLUGIN = """
from reconciler.kinds.pod_template import PodKind
from reconciler.kinds.body_fields import REPLICAS, replicas_of, with_count
from reconciler.api.demand import Demand


class CloneSet(PodKind):
    replicas_path = REPLICAS

    def demand(self, body):
        return Demand(replicas=replicas_of(body), shape=self.shape(body))

    def with_replicas(self, body, replicas):
        return with_count(body, REPLICAS, replicas)


INTERPRETER = CloneSet(("apps.kruise.io", "CloneSet"))
"""
CLONE_SET = {
    "apiVersion": "apps.kruise.io/v1alpha1",
    "kind": "CloneSet",
    "metadata": {"name": "web", "namespace": "demo"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {"containers": [{"name": "c", "image": "nginx", "envFrom": [{"configMapRef": {"name": "c"}}]}]},
        },
    },
}
STORE = {
    "store": [
        CLONE_SET,
        {"ConfigMap": "c"},
        {
            "PropagationPolicy": "web",
            "select": ["apps.kruise.io/v1alpha1/CloneSet"],
            "propagateDeps": True,
            "placement": {"by": {"m1": 2, "m2": 1}},
        },
    ]
}
SERVED = {
    "version": 1,
    "clusters": [
        {"name": name, "apis": ["apps.kruise.io/v1alpha1/CloneSet", "v1/ConfigMap", "v1/Namespace"]}
        for name in ("m1", "m2")
    ],
}


def install(site: Path, module: str, source: str, entry: str) -> None:
    """Write what a package manager leaves behind: a module and a distribution with an entry point."""
    (site / f"{module}.py").write_text(source)
    info = site / f"{module}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {module}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[reconciler.interpreters]\n{entry}\n")


def run(tmp_path: Path, site: Path | None) -> subprocess.CompletedProcess[str]:
    store = write_store(tmp_path / "store", STORE)
    (tmp_path / "observed.json").write_text(json.dumps(SERVED))
    environment = {**os.environ, **({"PYTHONPATH": str(site)} if site else {})}
    args = ["render", str(store), "--dir", "-o", "json", "--observations", str(tmp_path / "observed.json")]
    return subprocess.run(
        [sys.executable, "-m", "reconciler", *args], env=environment, capture_output=True, text=True, check=False
    )


@pytest.fixture
def site(tmp_path: Path) -> Path:
    folder = tmp_path / "site"
    folder.mkdir()
    return folder


def test_a_kind_of_a_plugin_is_divided_and_brings_its_dependencies(tmp_path: Path, site: Path) -> None:
    install(site, "kruise_kinds", PLUGIN, "kruise = kruise_kinds:INTERPRETER")
    done = run(tmp_path, site)
    assert done.returncode == 0, done.stderr + done.stdout
    document = json.loads(done.stdout)
    placed = {binding["resource"]["kind"]: binding["placement"] for binding in document["bindings"]}
    assert placed["CloneSet"] == [{"cluster": "m1", "replicas": 2}, {"cluster": "m2", "replicas": 1}]
    assert placed["ConfigMap"] == [{"cluster": "m1", "replicas": None}, {"cluster": "m2", "replicas": None}]
    replicas = {
        entry["cluster"]: entry["manifest"]["spec"]["replicas"]
        for entry in document["objects"]
        if entry["manifest"]["kind"] == "CloneSet"
    }
    assert replicas == {"m1": 2, "m2": 1}


def test_without_the_plugin_the_kind_is_carried_whole(tmp_path: Path) -> None:
    done = run(tmp_path, None)
    assert done.returncode == 0, done.stderr + done.stdout
    placed = {binding["resource"]["kind"]: binding["placement"] for binding in json.loads(done.stdout)["bindings"]}
    assert placed["CloneSet"] == [{"cluster": "m1", "replicas": None}, {"cluster": "m2", "replicas": None}]
    assert "ConfigMap" not in placed
