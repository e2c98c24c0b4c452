"""A field of a CustomResourceDefinition is renamed: it goes with its objects, and who waits loses no live field.

Source: ADR 18; Kubernetes: an API server drops fields that a definition does not have when it reads the object.
"""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest

from reconciler.journal import Journal
from tests.e2e.daemon_process import Daemon, GitRepository
from tests.real_clusters import RealCluster, RealClusters, wait_until

pytestmark = pytest.mark.apiserver

CLUSTERS = ("m1", "m2")
PATIENCE_S = 240


def definition(group: str, field: str) -> dict[str, Any]:
    """A CustomResourceDefinition whose objects have one field."""
    spec = {"type": "object", "properties": {field: {"type": "string"}}}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"widgets.{group}"},
            "spec": {"group": group, "scope": "Namespaced", "names": {"kind": "Widget", "plural": "widgets"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": schema}]}}  # fmt: skip


def widget(group: str, namespace: str, field: str) -> dict[str, Any]:
    return {"apiVersion": f"{group}/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": namespace},
            "spec": {field: "x"}}  # fmt: skip


def policy(group: str) -> dict[str, Any]:
    selectors = [
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"},
        {"apiVersion": f"{group}/v1", "kind": "Widget"},
    ]
    return {"apiVersion": "policy.karmada.io/v1alpha1", "kind": "ClusterPropagationPolicy",
            "metadata": {"name": "all"}, "spec": {"resourceSelectors": selectors, "placement": {}}}  # fmt: skip


def rollout(namespace: str, *, approval: bool, approved: str = "") -> dict[str, Any]:
    stages = [
        {"name": "first", "clusters": {"clusterNames": ["m1"]}, "after": {"approval": approval}},
        {"name": "rest", "clusters": {}},
    ]
    approvals = [{"stage": "first", "revision": approved}] if approved else []
    return {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Rollout", "metadata": {"name": "all"},
            "spec": {"templates": {"namespaces": [namespace]}, "stages": stages, "approvals": approvals}}  # fmt: skip


def test_a_renamed_field_is_lost_nowhere(tmp_path: Path, real_clusters: RealClusters) -> None:
    fleet = f"d{uuid.uuid4().hex[:8]}"
    group, namespace = f"{fleet}.example.com", f"ns-{fleet}"
    clusters = {name: real_clusters.create(name) for name in CLUSTERS}
    store = GitRepository(tmp_path / "store", fleet, CLUSTERS)
    marks = {name: cluster.mark() for name, cluster in clusters.items()}

    def put(field: str) -> str:
        store.write("crd.yaml", definition(group, field))
        store.write("widget.yaml", widget(group, namespace, field))
        return store.commit(field)

    def specs() -> dict[str, Any]:
        """Return the spec of the object in each cluster."""
        found = {}
        for name, cluster in clusters.items():
            text = cluster.kubectl("get", f"widgets.{group}", "-n", namespace, "-o", "json", "--ignore-not-found")
            found[name] = [item["spec"] for item in json.loads(text or '{"items": []}')["items"]]
        return found

    def fields(cluster: str) -> list[str]:
        """Return the fields that the definition has in a cluster."""
        body = clusters[cluster].get("customresourcedefinition", f"widgets.{group}")
        return [*body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]]

    def recorded() -> dict[str, tuple[str, bool]]:
        with Journal.open(daemon.journal, read_only=True) as journal:
            found = journal.rollout_records().get("all", {})
        return {name: (record.revision, bool(record.completed_at)) for name, record in found.items()}

    def until(is_so: Any, what: str) -> None:
        wait_until(is_so, what, PATIENCE_S, lambda: f"{specs()} {daemon.text()[-3000:]}")

    store.write("policy.yaml", policy(group))
    store.write("rollout.yaml", rollout(namespace, approval=False))
    begun = put("old")
    kubeconfig = real_clusters.merged_kubeconfig(*CLUSTERS)
    with Daemon(store.folder, kubeconfig, tmp_path / "state/journal.db") as daemon:
        daemon.start()
        daemon.says("SourceAdvanced")
        until(lambda: recorded() == dict.fromkeys(CLUSTERS, (begun, True)), "the first one")
        store.write("rollout.yaml", rollout(namespace, approval=True))
        renamed = put("new")
        until(lambda: recorded()["m1"] == (renamed, True), "the second one in the first stage")
        assert specs() == {"m1": [{"new": "x"}], "m2": [{"old": "x"}]}
        assert (fields("m1"), fields("m2")) == (["new"], ["old"])
        patch = ("patch", f"widgets.{group}", "w", "-n", namespace, "--type=merge", "--field-manager=by-hand")
        clusters["m2"].kubectl(*patch, "-p", '{"spec": {"old": "drift"}}')
        until(lambda: specs()["m2"] == [{"old": "x"}], "the drift to be put back to the revision of its cluster")
        store.write("rollout.yaml", rollout(namespace, approval=True, approved=renamed))
        store.commit("approve")
        until(lambda: recorded() == dict.fromkeys(CLUSTERS, (renamed, True)), "the second one everywhere")
        assert specs() == {name: [{"new": "x"}] for name in CLUSTERS}
        assert daemon.stop() == 0
    first, second = (arrivals(clusters[name], marks[name], namespace) for name in CLUSTERS)
    assert [what for _, what in first] == ["customresourcedefinitions", "widgets"] * 2
    healed = ["customresourcedefinitions", "widgets", "widgets", "customresourcedefinitions", "widgets"]
    assert [what for _, what in second] == healed
    assert second[3][0] > first[3][0], "the definition comes to the second cluster after all of the first"


def arrivals(cluster: RealCluster, since: int, namespace: str) -> list[tuple[str, str]]:
    """Return when definitions and their objects were written by us, by the audit log of a cluster, in order."""
    found = []
    for event in cluster.writes(since, "fleet-reconciler/"):
        reference, code = event.get("objectRef", {}), event["responseStatus"]["code"]
        is_meant = reference.get("resource") == "customresourcedefinitions" or (
            (reference.get("resource"), reference.get("namespace")) == ("widgets", namespace)
        )
        if is_meant and code < 300 and "dryRun" not in event["requestURI"]:
            found.append((event["requestReceivedTimestamp"], reference["resource"]))
    return sorted(found)
