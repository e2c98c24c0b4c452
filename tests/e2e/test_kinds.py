"""Every kind of the product page's table, and custom resources with their definition, in one apply."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reconciler.api.plan import Action
from tests.conftest import ThreeClusters
from tests.e2e.fleet_on_clusters import ACK, FleetOnClusters, of_action, writes_to
from tests.present import present
from tests.real_clusters import wait_until

pytestmark = pytest.mark.apiserver


@pytest.fixture
def fleet(tmp_path: Path, three_clusters: ThreeClusters) -> FleetOnClusters:
    return FleetOnClusters(tmp_path, three_clusters)


def cluster_policy(name: str, *selectors: tuple[str, str, str]) -> dict[str, Any]:
    return {
        "apiVersion": ACK, "kind": "ClusterPropagationPolicy", "metadata": {"name": name},
        "spec": {"placement": {"clusterAffinity": {"clusterNames": ["m1"]}}, "preserveResourcesOnDeletion": False,
                 "resourceSelectors": [{"apiVersion": v, "kind": kind, "name": n} for v, kind, n in selectors]},
    }  # fmt: skip


def widgets(fleet: FleetOnClusters) -> tuple[dict[str, Any], dict[str, Any]]:
    plural = f"w{fleet.fleet}"
    properties = {"size": {"type": "integer"}, "parts": {
        "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
        "items": {"type": "object", "required": ["name"],
                  "properties": {"name": {"type": "string"}, "count": {"type": "integer"}}}}}  # fmt: skip
    schema = {"type": "object", "properties": {"spec": {"type": "object", "properties": properties}}}
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}s.example.com"},
        "spec": {"group": "example.com", "scope": "Namespaced",
                 "names": {"plural": f"{plural}s", "singular": plural, "kind": plural.capitalize()},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]},
    }  # fmt: skip
    widget = {
        "apiVersion": "example.com/v1", "kind": plural.capitalize(),
        "metadata": {"name": "first", "namespace": fleet.namespace},
        "spec": {"size": 1, "parts": [{"name": "a", "count": 1}, {"name": "b", "count": 2}]},
    }  # fmt: skip
    return definition, widget


def test_definition_and_its_resources_go_in_one_apply(fleet: FleetOnClusters) -> None:
    definition, widget = widgets(fleet)
    kind = widget["kind"]
    fleet.write("definition", definition, widget)
    fleet.write("policy", cluster_policy(
        f"w-{fleet.fleet}",
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", definition["metadata"]["name"]),
        ("example.com/v1", kind, "first"),
    ))  # fmt: skip
    plan = fleet.apply().round.plan
    created = [change for change in of_action(plan, Action.CREATE) if change.identity.kind == kind]
    assert [change.reason.rule if change.reason else "" for change in created] == ["unverified"]
    live = present(fleet.live("m1", f"{kind.lower()}s.example.com", "first"))
    assert live["spec"]["parts"] == widget["spec"]["parts"]
    assert fleet.plan().changes == ()
    fleet.write("definition", definition, {**widget, "spec": {"size": 1, "parts": [{"name": "b", "count": 3}]}})
    (change,) = fleet.apply().round.plan.changes
    assert sorted(field.path for field in change.fields) == ["spec.parts[name=a]", "spec.parts[name=b].count"]
    assert fleet.plan().changes == ()


def test_a_job_that_gives_no_numbers_has_those_of_kubernetes(fleet: FleetOnClusters) -> None:
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox:1"}]}
    modes = {"duplicated": {}, "indexed": {"completionMode": "Indexed"}, "divided": {}}
    for name, mode in modes.items():
        body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name, "namespace": fleet.namespace},
                "spec": {"template": {"spec": pod}, **mode}}  # fmt: skip
        policy = fleet.policy(name, "Job", clusters=["m1", "m2"])
        policy["spec"]["resourceSelectors"][0]["apiVersion"] = "batch/v1"
        if name == "divided":
            policy["spec"]["placement"]["replicaScheduling"] = {"replicaSchedulingType": "Divided"}
        fleet.write(name, body, policy)
    fleet.apply()
    for name in modes:
        live = present(fleet.live("m1", "job", name))
        assert (live["spec"]["parallelism"], live["spec"].get("completions")) == (1, 1), name
    assert fleet.plan().changes == ()


def test_deleting_a_definition_needs_confirmation(fleet: FleetOnClusters) -> None:
    definition, _ = widgets(fleet)
    name = definition["metadata"]["name"]
    fleet.write("definition", definition)
    fleet.write(
        "policy", cluster_policy(f"d-{fleet.fleet}", ("apiextensions.k8s.io/v1", "CustomResourceDefinition", name))
    )
    fleet.apply()
    m1, kind = fleet.clusters["m1"], definition["spec"]["names"]["kind"]
    m1.kubectl("create", "namespace", fleet.namespace)
    for number in range(4):
        metadata = {"name": f"foreign-{number}", "namespace": fleet.namespace}
        m1.apply({"apiVersion": "example.com/v1", "kind": kind, "metadata": metadata})
    fleet.write("definition")
    plan = fleet.apply().round.plan
    (change,) = plan.changes
    (problem,) = [found for found in plan.problems if found.code == "deletes-others"]
    names = ", ".join(f"{fleet.namespace}/foreign-{number}" for number in range(3))
    assert problem.cluster == "m1"
    assert problem.message == (
        f"deleting CustomResourceDefinition {name} deletes 4 {kind} ({names}, …) that are not ours with it"
    )
    assert (str(change.action), change.held) == (
        "delete",
        "guard: deleting a CustomResourceDefinition needs confirmation: all objects of its kind go with it, those of "
        "others too",
    )
    assert plan.held_digest
    settings = {"apiVersion": "fleet.reconciler/v1alpha1", "kind": "Fleet", "metadata": {"name": fleet.fleet},
                "spec": {"guards": {"confirm": plan.held_digest}}}  # fmt: skip
    fleet.write("fleet", settings)
    fleet.apply()
    # The API server removes the custom resources first, and then the definition.
    wait_until(lambda: name not in fleet.clusters["m1"].kubectl("get", "crd", "-o", "name"), f"{name} is gone")


def test_all_kinds_of_the_page_are_applied_and_then_at_rest(fleet: FleetOnClusters) -> None:
    namespace, suffix = fleet.namespace, fleet.fleet
    labels = {"app": "x"}
    pod = {"containers": [{"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "10m"}}}]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    once = {"spec": {**pod, "restartPolicy": "Never"}}
    at = {"namespace": namespace}
    documents: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace, "labels": {"team": "a"}}},
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": f"pv-{suffix}"},
         "spec": {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/tmp/x"}}},
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": f"sc-{suffix}"},
         "provisioner": "x/y"},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "x", **at},
         "spec": {"selector": {"matchLabels": labels}, "template": template}},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "x", **at},
         "spec": {"serviceName": "x", "selector": {"matchLabels": labels}, "template": template}},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x", **at},
         "spec": {"selector": {"matchLabels": labels}, "template": template}},
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "x", **at}, "spec": {"template": once}},
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "x", **at},
         "spec": {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": once}}}},
        {"apiVersion": "networking.k8s.io/v1", "kind": "Ingress", "metadata": {"name": "x", **at},
         "spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x", **at},
         "spec": {"selector": labels, "ports": [{"name": "http", "port": 80}, {"name": "dns-tcp", "port": 53},
                                                {"name": "dns", "port": 53, "protocol": "UDP"}]}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "x", **at},
         "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", **at}, "data": {"a": "1"}},
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", **at}, "stringData": {"a": "b"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", **at},
         "spec": {**pod, "tolerations": [{"key": "for", "operator": "Exists"}]}},
        {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "x", **at},
         "spec": {"limits": [{"type": "Container", "default": {"memory": "512Mi"}}]}},
        {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "x", **at},
         "spec": {"hard": {"pods": "100"}}},
        {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "x", **at},
         "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"}}},
    ]  # fmt: skip
    documents[3]["spec"]["selector"] = {"matchLabels": {"app": "d"}}
    documents[3]["spec"]["template"] = {"metadata": {"labels": {"app": "d"}}, "spec": pod}
    selectors = [(body["apiVersion"], body["kind"], body["metadata"]["name"]) for body in documents]
    fleet.write("all", *documents)
    fleet.write("policy", cluster_policy(f"all-{suffix}", *selectors))
    fleet.apply()
    wait_until(lambda: fleet.plan().changes == (), "everything comes to rest")
    since = fleet.clusters["m1"].mark()
    fleet.apply()
    assert writes_to(fleet.clusters["m1"], since) == []
