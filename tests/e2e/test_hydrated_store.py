"""Charts and a kustomization with variants on three real clusters: each holds what the tools say, field by field."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import CLUSTER, KARMADA, FleetOnClusters
from tests.hydration import STORE, path_with_helm
from tests.program import run_text
from tests.real_clusters import wait_until
from tests.yaml_text import load_documents

pytestmark = pytest.mark.apiserver

STAGES = {"m1": "dev", "m2": "prod", "m3": "edge"}
VALUES = {
    ("web", ""): ["web.yaml"],
    ("web", "prod"): ["web.yaml", "web-prod.yaml"],
    ("web", "edge"): ["web.yaml", "web-edge.yaml"],
    ("umbrella", "prod"): ["umbrella-prod.yaml"],
    ("operator", "prod"): ["operator-prod.yaml"],
    ("random", ""): ["random.yaml"],
}
OPTIONS = {
    "web": ["--api-versions", "policy/v1/PodDisruptionBudget"],
    "operator": ["--include-crds"],
}
NAMES = {"operator": "gauges"}
SELECTED = (
    ("apps/v1", "Deployment"),
    ("v1", "Service"),
    ("v1", "ConfigMap"),
    ("policy/v1", "PodDisruptionBudget"),
    ("batch/v1", "CronJob"),
    ("measure.example.com/v1", "Gauge"),
)


class Hydrated:
    """The store with its namespaces and clusters those of this test, and the tools to ask what is right."""

    def __init__(self, folder: Path, clusters: ThreeClusters, path: str) -> None:
        self.fleet = FleetOnClusters(folder, clusters)
        self.path = path
        shutil.copytree(STORE, self.fleet.store, dirs_exist_ok=True)
        (self.fleet.store / "clusters.yaml").unlink()
        for file in (*self.fleet.store.glob("renders/*"), *self.fleet.store.glob("apps/web/*/*/*.yaml")):
            self._rename(file)
        self._rename(self.fleet.store / "apps/web/base/kustomization.yaml")
        for name, stage in STAGES.items():
            document = {
                "apiVersion": CLUSTER,
                "kind": "Cluster",
                "metadata": {"name": name, "labels": {"stage": stage}},
            }
            self.fleet.write(f"clusters/{name}", document)
        selectors: list[dict[str, str]] = [
            {"apiVersion": version, "kind": kind, "namespace": self.fleet.namespace} for version, kind in SELECTED
        ]
        selectors.append({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "name": "gauges:read"})
        definition = "gauges.measure.example.com"
        selectors.append(
            {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "name": definition}
        )
        spec = {"resourceSelectors": selectors, "placement": {"clusterAffinity": {"clusterNames": list(STAGES)}}}
        self.fleet.write("policy", {"apiVersion": KARMADA, "kind": "ClusterPropagationPolicy",
                                    "metadata": {"name": "all"}, "spec": spec})  # fmt: skip

    def _rename(self, file: Path) -> None:
        text = file.read_text()
        for name in ("demo", "shop"):
            text = text.replace(f"namespace: {name}", f"namespace: {self.fleet.namespace}")
        file.write_text(text)

    def run(self, *args: str) -> None:
        run_text(*args, environment={**os.environ, "PATH": self.path})

    def wanted(self, render: str, stage: str) -> list[dict[str, Any]]:
        """Return the output of helm or kustomize for clusters of a stage, without hooks."""
        if render == "shop":
            overlay = "overlays/prod" if stage == "prod" else "base"
            command = ["kubectl", "kustomize", f"apps/web/{overlay}"]
        else:
            command = ["helm", "template", NAMES.get(render, render), f"charts/{render}"]
            command += ["--namespace", self.fleet.namespace, "--kube-version", "1.36", *OPTIONS.get(render, [])]
            for name in VALUES.get((render, stage), VALUES.get((render, ""), [])):
                command += ["--values", f"values/{name}"]
        environ = {"PATH": self.path, "HOME": str(self.fleet.store.parent)}
        program = shutil.which(command[0], path=self.path)
        assert program is not None
        done = subprocess.run(
            [program, *command[1:]], cwd=self.fleet.store, env=environ, capture_output=True, text=True, check=True
        )
        found = [body for body in load_documents(done.stdout) if body]
        return [body for body in found if "helm.sh/hook" not in body["metadata"].get("annotations", {})]

    def held(self, cluster: str, body: dict[str, Any]) -> dict[str, Any] | None:
        group = body["apiVersion"].rpartition("/")[0]
        kind = f"{body['kind']}.{body['apiVersion'].rpartition('/')[2]}.{group}" if group else body["kind"]
        return self.fleet.live(cluster, kind, body["metadata"]["name"])


def lacks(wanted: Any, live: Any, path: str = "") -> list[str]:
    """Return where the live object differs; additions of an API server do not count."""
    if isinstance(wanted, dict) and isinstance(live, dict):
        return [fault for key, value in wanted.items() for fault in lacks(value, live.get(key), f"{path}.{key}")]
    if isinstance(wanted, list) and isinstance(live, list) and len(wanted) == len(live):
        pairs = zip(wanted, live, strict=True)
        return [fault for index, pair in enumerate(pairs) for fault in lacks(*pair, f"{path}[{index}]")]
    is_absent = wanted in ([], {}, None) and live is None
    return [] if wanted == live or is_absent else [f"{path}: {live!r}, not {wanted!r}"]


def test_each_cluster_holds_what_its_values_say(
    tmp_path: Path, three_clusters: ThreeClusters, kubernetes_binaries: Path
) -> None:
    hydrated = Hydrated(tmp_path, three_clusters, path_with_helm(kubernetes_binaries))
    store = str(hydrated.fleet.store)
    hydrated.run("hydrate", store)
    hydrated.run("validate", store)
    hydrated.fleet.apply()
    # Objects of a kind that was unknown may need the definition that the first round brought.
    wait_until(lambda: not hydrated.fleet.apply().round.plan.changes, "all to be as the store says")

    checked = 0
    for render in ("web", "umbrella", "operator", "jobs", "random", "shop"):
        everywhere = {body["kind"] + body["metadata"]["name"]: body
                      for stage in STAGES.values() for body in hydrated.wanted(render, stage)}  # fmt: skip
        for cluster, stage in STAGES.items():
            wanted = {body["kind"] + body["metadata"]["name"]: body for body in hydrated.wanted(render, stage)}
            for name, body in everywhere.items():
                live = hydrated.held(cluster, body)
                if name not in wanted:
                    assert live is None, f"{cluster} holds {name}, which its values do not say"
                    continue
                assert live is not None, f"{cluster} lacks {name}"
                assert lacks(wanted[name], live) == [], f"{name} @ {cluster}"
                checked += 1
    assert checked > 40
    assert hydrated.fleet.plan().changes == ()
