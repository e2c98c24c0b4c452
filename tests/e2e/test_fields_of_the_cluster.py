"""Fields that controllers of a real cluster write are left to them: a round after them has nothing to do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import ACK, FleetOnClusters
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> FleetOnClusters:
    return FleetOnClusters(tmp_path, three_clusters)


def write(fleet: FleetOnClusters, *bodies: dict[str, Any]) -> None:
    """Cluster-scoped templates that go to m1."""
    selectors = [
        {"apiVersion": body["apiVersion"], "kind": body["kind"], "name": body["metadata"]["name"]} for body in bodies
    ]
    placement = {"clusterAffinity": {"clusterNames": ["m1"]}}
    policy = {"apiVersion": ACK, "kind": "ClusterPropagationPolicy", "metadata": {"name": "all"},
              "spec": {"resourceSelectors": selectors, "placement": placement}}  # fmt: skip
    fleet.write("all", *bodies, policy)


def test_the_rules_of_an_aggregated_role_are_filled_by_the_cluster(fleet: FleetOnClusters) -> None:
    rbac = "rbac.authorization.k8s.io/v1"
    mark = {f"{fleet.fleet}.example.com/aggregate": "true"}
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}]
    part = {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": f"{fleet.fleet}-part", "labels": mark},
            "rules": rules}  # fmt: skip
    whole = {"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": f"{fleet.fleet}-whole"},
             "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": mark}]}, "rules": []}  # fmt: skip
    write(fleet, part, whole)
    fleet.apply()
    cluster = fleet.clusters["m1"]
    wait_until(lambda: cluster.get("clusterrole", f"{fleet.fleet}-whole").get("rules") == rules, "the rules are there")
    assert fleet.plan().changes == ()


def test_the_bundle_of_a_webhook_is_left_to_its_injector(fleet: FleetOnClusters) -> None:
    name = f"{fleet.fleet}.example.com"
    hook = {"name": name, "admissionReviewVersions": ["v1"], "sideEffects": "None", "failurePolicy": "Ignore",
            "clientConfig": {"service": {"name": "none", "namespace": "none"}, "caBundle": "Cg=="}}  # fmt: skip
    metadata = {"name": fleet.fleet, "annotations": {"cert-manager.io/inject-ca-from": "a/b"}}
    body = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
            "metadata": metadata, "webhooks": [hook]}  # fmt: skip
    write(fleet, body)
    fleet.apply()
    bundle = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": "QUJDCg=="}]
    fleet.clusters["m1"].kubectl(
        "patch", "validatingwebhookconfiguration", fleet.fleet, "--type=json", "-p", json.dumps(bundle),
        "--field-manager=cert-manager-cainjector",
    )  # fmt: skip
    assert fleet.plan().changes == ()
    write(fleet, {**body, "webhooks": [{**hook, "timeoutSeconds": 3}]})
    fleet.apply()
    live = fleet.clusters["m1"].get("validatingwebhookconfiguration", fleet.fleet)
    assert (live["webhooks"][0]["timeoutSeconds"], live["webhooks"][0]["clientConfig"]["caBundle"]) == (3, "QUJDCg==")


def test_a_job_has_the_labels_that_an_api_server_would_give_it(fleet: FleetOnClusters) -> None:
    template = {"metadata": {"labels": {"app": "once"}},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "busybox:1"}]}}  # fmt: skip
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "once", "namespace": fleet.namespace},
           "spec": {"template": template}}  # fmt: skip
    placement = {"clusterAffinity": {"clusterNames": ["m1"]}}
    selector = {"apiVersion": "batch/v1", "kind": "Job", "labelSelector": {"matchLabels": {"app": "once"}}}
    policy = {"apiVersion": ACK, "kind": "PropagationPolicy",
              "metadata": {"name": "once", "namespace": fleet.namespace},
              "spec": {"resourceSelectors": [selector], "placement": placement}}  # fmt: skip
    fleet.write("once", job, policy)
    fleet.apply()
    live = fleet.live("m1", "job", "once")
    assert live is not None
    assert live["metadata"]["labels"]["app"] == "once"
    assert fleet.plan().changes == ()
