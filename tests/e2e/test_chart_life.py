"""A chart on a real cluster from its first version to its removal, as a person goes through it.

It has what charts have that are hard to keep: definitions with an object, a hook with an account of its own, an empty
Secret that a controller fills. Source: docs/how-to/hydrate.md; ADR 26.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import FleetOnClusters
from tests.e2e.test_rollouts_hooks import arrivals
from tests.hydration import path_with_helm
from tests.program import run_text
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

DEFINITION = """\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gears.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Gear, plural: gears}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties: {spec: {type: object, properties: {FIELD: {type: string}}}}
"""
OBJECTS = """\
apiVersion: v1
kind: ServiceAccount
metadata:
  name: migrate
  annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-1"}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  template:
    spec:
      serviceAccountName: migrate
      restartPolicy: Never
      containers: [{name: main, image: "migrate:VERSION"}]
---
apiVersion: v1
kind: Secret
metadata: {name: webhook-certificate}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: of-VERSION, annotations: {argocd.argoproj.io/sync-wave: "-1"}}
data: {version: VERSION}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: main, image: "web:VERSION"}]}
---
apiVersion: GROUP/v1
kind: Gear
metadata: {name: gear, annotations: {argocd.argoproj.io/sync-wave: "1"}}
spec: {FIELD: "VERSION"}
"""
FIELDS = {"1.0.0": "teeth", "2.0.0": "cogs"}


class ChartLife:
    """A chart in one cluster, by a Render that places it."""

    def __init__(self, folder: Path, clusters: ThreeClusters, path: str) -> None:
        self.fleet, self.path = FleetOnClusters(folder, clusters, guards={"maxDeletes": 50}), path
        self.group = f"{self.fleet.fleet}.example.com"
        self.fleet.write("renders/web", {
            "apiVersion": "fleet.reconciler/v1alpha1", "kind": "Render", "metadata": {"name": "web"},
            "spec": {"helm": {"chart": "charts/web", "namespace": self.fleet.namespace, "kubeVersion": "1.36",
                              "includeCRDs": True},
                     "placement": {"clusters": {"clusterNames": ["m1"]}, "preserveResourcesOnDeletion": False},
                     "output": "rendered/web"},
        })  # fmt: skip

    def put(self, version: str) -> None:
        """Write a version of the chart, and render it."""
        chart = self.fleet.store / "charts/web"
        files = {"Chart.yaml": f"apiVersion: v2\nname: web\nversion: {version}\n", "crds/gears.yaml": DEFINITION,
                 "templates/all.yaml": OBJECTS}  # fmt: skip
        for name, text in files.items():
            filled = text.replace("GROUP", self.group).replace("FIELD", FIELDS[version]).replace("VERSION", version)
            (chart / name).parent.mkdir(parents=True, exist_ok=True)
            (chart / name).write_text(filled)
        environment = {**os.environ, "PATH": self.path}
        said = run_text("hydrate", self.fleet.store, environment=environment).stderr
        assert "hook-succeeded" not in said
        run_text("validate", self.fleet.store, environment=environment)

    def settle(self) -> None:
        """Apply until the cluster is as the store says; nothing differs then."""

        def is_in_step() -> bool:
            done = self.fleet.apply()
            return not done.results and not done.round.plan.changes

        wait_until(is_in_step, "all to be as the store says", seen=lambda: str(self.fleet.plan().changes))

    def held(self) -> dict[str, list[str]]:
        """Return what the cluster has of the chart: names by resource."""
        label = ("-n", self.fleet.namespace, "-l", f"fleet.reconciler/fleet={self.fleet.fleet}")
        resources = ("deployments", "configmaps", "secrets", "serviceaccounts", "jobs")
        return {
            resource: sorted(one["metadata"]["name"] for one in self.cluster.get(resource, *label)["items"])
            for resource in resources
        }

    @property
    def cluster(self) -> RealCluster:
        return self.fleet.clusters["m1"]


def test_a_chart_is_installed_upgraded_and_removed(
    tmp_path: Path, three_clusters: ThreeClusters, kubernetes_binaries: Path
) -> None:
    life = ChartLife(tmp_path, three_clusters, path_with_helm(kubernetes_binaries))
    cluster, node = life.cluster, f"node-{life.fleet.fleet}"
    cluster.add_node(node)
    try:
        begun = cluster.mark()
        for runs, (version, field) in enumerate(FIELDS.items(), 1):
            life.put(version)
            life.settle()
            assert arrivals(cluster, begun, life.fleet.namespace) == runs, "the hook ran once for each version"
            assert life.held() == {
                "deployments": ["web"], "configmaps": [f"of-{version}"], "secrets": ["webhook-certificate"],
                "serviceaccounts": ["migrate"], "jobs": [],
            }  # fmt: skip
            gear = cluster.get(f"gears.{life.group}", "gear", "-n", life.fleet.namespace)
            assert gear["spec"] == {field: version}
        for folder in ("rendered", "charts"):  # Without a Render that reads it, a chart's definitions are documents.
            shutil.rmtree(life.fleet.store / folder)
        life.fleet.write("renders/web")
        held = life.fleet.plan()
        life.fleet.write("fleet", {
            "apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": life.fleet.fleet},
            "spec": {"guards": {"maxDeletes": 50, "confirm": held.held_digest}},
        })  # fmt: skip
        life.settle()
        assert not any(life.held().values()), life.held()
        cluster.kubectl("wait", "crd", f"gears.{life.group}", "--for=delete", "--timeout=120s")
    finally:
        cluster.remove_node(node)
