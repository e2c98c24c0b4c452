"""A fleet store in a temporary folder, applied to real clusters, for tests of whole scenarios."""

from __future__ import annotations

import asyncio
import json
import uuid
from pathlib import Path
from typing import Any

import yaml

from reconciler.api.plan import Action, Change, Plan
from reconciler.controller.once import Access, plan_once
from reconciler.controller.once.applying import Applied, apply_once
from reconciler.fleet import parse
from reconciler.kinds import BUILT_IN_KINDS
from reconciler.planner import Round
from reconciler.store import read_directory
from tests.conftest import ThreeClusters
from tests.real_clusters import RealCluster

CLUSTER = "cluster.karmada.io/v1alpha1"
ACK = "policy.one.alibabacloud.com/v1alpha1"
KARMADA = "policy.karmada.io/v1alpha1"


class FleetOnClusters:
    """One store, one journal, a fleet name and a namespace of its own on shared clusters."""

    def __init__(self, folder: Path, clusters: ThreeClusters, **settings: Any) -> None:
        self.store = folder / "store"
        self.clusters = {cluster.name: cluster for cluster in (clusters.m1, clusters.m2, clusters.m3)}
        self.fleet = f"f{uuid.uuid4().hex[:8]}"
        self.namespace = f"ns-{self.fleet}"
        self.access = Access(kubeconfig=clusters.kubeconfig, journal=folder / "journal.db", interpreters=BUILT_IN_KINDS)
        self.write("fleet", {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet",
                             "metadata": {"name": self.fleet}, "spec": settings})  # fmt: skip
        for name in self.clusters:
            self.write(f"clusters/{name}", {"apiVersion": CLUSTER, "kind": "Cluster", "metadata": {"name": name}})

    def write(self, name: str, *documents: dict[str, Any]) -> None:
        """Documents as one file of the store; without any, the file goes."""
        path = self.store / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        if documents:
            written = self.store.with_name("written")  # as an editor does: a service reads no half of it
            written.write_text(yaml.safe_dump_all(documents))
            written.replace(path)
        else:
            path.unlink()

    def write_text(self, name: str, text: str) -> None:
        (self.store / f"{name}.yaml").write_text(text)

    def apply(self) -> Applied:
        """`reconciler apply --yes`."""
        applied = asyncio.run(apply_once(parse(read_directory(self.store)), self.access, lambda planned: True))
        failed = [
            f"{result.change.identity} @ {result.change.cluster}: {result.error}"
            for result in applied.results
            if result.error
        ]
        assert not failed, failed
        return applied

    def plan(self) -> Plan:
        """`reconciler diff`."""
        return self.round().plan

    def round(self) -> Round:
        """The round behind `diff`."""
        return asyncio.run(plan_once(parse(read_directory(self.store)), self.access))

    def live(self, cluster: str, kind: str, name: str) -> dict[str, Any] | None:
        """The object in a cluster, None when it is not there."""
        text = self.clusters[cluster].kubectl(
            "get", kind, name, "-n", self.namespace, "-o", "json", "--ignore-not-found"
        )
        return json.loads(text) if text.strip() else None

    def config_map(self, name: str, **data: str) -> dict[str, Any]:
        return {"apiVersion": "v1", "kind": "ConfigMap",
                "metadata": {"name": name, "namespace": self.namespace}, "data": data or {"k": "v"}}  # fmt: skip

    def deployment(self, name: str, replicas: int = 2, **pod: Any) -> dict[str, Any]:
        """A Deployment template; `pod` are more fields of its pod spec."""
        labels = {"app": name}
        return {
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": self.namespace},
            "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
                     "template": {"metadata": {"labels": labels},
                                  "spec": {"containers": [{"name": "main", "image": "busybox:1"}], **pod}}},
        }  # fmt: skip

    def policy(self, name: str, kind: str, *, api: str = ACK, keep: bool | None = None, **spec: Any) -> dict[str, Any]:
        """A PropagationPolicy for one resource; `clusters` names its clusters, else more of its spec."""
        api_version = "apps/v1" if kind == "Deployment" else "v1"
        clusters = spec.pop("clusters", None)
        if clusters is not None:
            spec.setdefault("placement", {})["clusterAffinity"] = {"clusterNames": clusters}
        if keep is not None:
            spec["preserveResourcesOnDeletion"] = keep
        selector = {"apiVersion": api_version, "kind": kind, "name": spec.pop("selects", name)}
        return {"apiVersion": api, "kind": "PropagationPolicy",
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"resourceSelectors": [selector], "placement": {}, **spec}}  # fmt: skip


def is_marked(live: dict[str, Any]) -> bool:
    """Return whether an object carries a mark of ours, or a field of a manager of ours."""
    metadata = live["metadata"]
    managers = [entry["manager"] for entry in metadata.get("managedFields", ())]
    names = [*metadata.get("labels", {}), *metadata.get("annotations", {}), *managers]
    return any(name.startswith(("fleet.reconciler/", "fleet-reconciler/")) for name in names)


def of_action(plan: Plan, action: Action) -> list[Change]:
    return [change for change in plan.changes if change.action is action]


def writes_to(cluster: RealCluster, since: int) -> list[str]:
    """Return who wrote what since a mark, our requests only: `patch deployments demo/web`."""
    found = cluster.writes(since, "fleet-reconciler/")
    return [f"{event['verb']} {event['objectRef'].get('resource')} {event['objectRef'].get('name')}" for event in found]
