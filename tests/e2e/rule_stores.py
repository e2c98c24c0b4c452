"""Stores, observations and the `render` command for the case tables under tests/cases/rules.

A case writes its documents as YAML text, as mappings, or in a short form: `{Deployment: web, replicas: 3}` is an
ordinary Deployment demo/web, `{PropagationPolicy: web, placement: {…}}` an ordinary policy that selects Deployments.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from click.testing import CliRunner

from reconciler.cli.render import command

NOW = "2026-11-21T10:00:00Z"
GROUPS = {
    "ack": "policy.one.alibabacloud.com/v1alpha1",
    "legacy": "one.alibabacloud.com/v1alpha1",
    "karmada": "policy.karmada.io/v1alpha1",
}
API_VERSIONS = {
    "ConfigMap": "v1",
    "CronJob": "batch/v1",
    "BackendTLSPolicy": "gateway.networking.k8s.io/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "GRPCRoute": "gateway.networking.k8s.io/v1",
    "Gateway": "gateway.networking.k8s.io/v1",
    "HTTPRoute": "gateway.networking.k8s.io/v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "Ingress": "networking.k8s.io/v1",
    "Job": "batch/v1",
    "Namespace": "v1",
    "PersistentVolumeClaim": "v1",
    "Pod": "v1",
    "PodDisruptionBudget": "policy/v1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "PyTorchJob": "kubeflow.org/v1",
    "ReferenceGrant": "gateway.networking.k8s.io/v1beta1",
    "ReplicaSet": "apps/v1",
    "Secret": "v1",
    "Service": "v1",
    "ServiceAccount": "v1",
    "StatefulSet": "apps/v1",
    "TCPRoute": "gateway.networking.k8s.io/v1alpha2",
    "TLSRoute": "gateway.networking.k8s.io/v1alpha2",
    "UDPRoute": "gateway.networking.k8s.io/v1alpha2",
}
POLICY_KINDS = ("PropagationPolicy", "ClusterPropagationPolicy", "OverridePolicy", "ClusterOverridePolicy")
CLUSTER_SCOPED = ("Namespace", "PriorityClass")
POD_TEMPLATES = ("DaemonSet", "Deployment", "Job", "ReplicaSet", "StatefulSet")
POLICY_FIELDS = ("api", "select", "annotations", "namespace")
DYNAMIC = {"replicaSchedulingType": "Divided", "weightPreference": {"dynamicWeight": "AvailableReplicas"}}
AGGREGATED = {"replicaSchedulingType": "Divided", "replicaDivisionPreference": "Aggregated"}
DUPLICATED = {"replicaSchedulingType": "Duplicated"}


class Rendered(NamedTuple):
    """The output of `render -o json`, and its exit code."""

    document: Any
    exit_code: int

    @property
    def bindings(self) -> dict[str, Any]:
        """Bindings by resource, written as `Deployment demo/web`."""
        return {name_of(binding["resource"]): binding for binding in self.document["bindings"]}

    @property
    def placements(self) -> dict[str, dict[str, int | None]]:
        """Replicas per cluster of every binding."""
        return {
            name: {target["cluster"]: target["replicas"] for target in binding["placement"]}
            for name, binding in self.bindings.items()
        }

    @property
    def objects(self) -> dict[str, Any]:
        """Objects by cluster and resource, written as `m1 Deployment demo/web`."""
        found = {}
        for entry in self.document["objects"]:
            metadata = entry["manifest"]["metadata"]
            resource = {"kind": entry["manifest"]["kind"], "namespace": "", **metadata}
            found[f"{entry['cluster']} {name_of(resource)}"] = entry
        return found


def name_of(resource: Mapping[str, str]) -> str:
    namespace = resource["namespace"]
    return (
        f"{resource['kind']} {namespace}/{resource['name']}" if namespace else f"{resource['kind']} {resource['name']}"
    )


def write_store(folder: Path, case: Mapping[str, Any]) -> Path:
    """The store of a case: its `files` as they stand, its `store` one document a file, and its clusters."""
    folder.mkdir(parents=True, exist_ok=True)
    for path, content in case.get("files", {}).items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content if isinstance(content, str) else text_of(content))
    for number, item in enumerate(case.get("store", [])):
        (folder / f"s{number:02}.yaml").write_text(item if isinstance(item, str) else text_of([item]))
    for name, given in named(case.get("clusters", ["m1", "m2"])):
        (folder / f"cluster-{name}.yaml").write_text(yaml.safe_dump(cluster(name, given or {})))
    if "fleet" in case:
        fleet = {
            "apiVersion": "fleet.reconciler/v1alpha1",
            "kind": "Fleet",
            "metadata": {"name": "test"},
            "spec": case["fleet"],
        }
        (folder / "fleet.yaml").write_text(yaml.safe_dump(fleet))
    return folder


def render(folder: Path, case: Mapping[str, Any]) -> Rendered:
    """Return the output of the command for the store of a case."""
    store = write_store(folder / "store", case)
    args = [str(store), "--dir", "-o", "json", "--now", case.get("now", NOW), *case.get("args", [])]
    seen = observations(case)
    if seen is not None:
        (folder / "observed.yaml").write_text(yaml.safe_dump(seen))
        args += ["--observations", str(folder / "observed.yaml")]
    done = CliRunner().invoke(command, args, catch_exceptions=False)
    assert done.stdout, done.output
    return Rendered(json.loads(done.stdout), done.exit_code)


def named(given: Iterable[str] | Mapping[str, Any]) -> list[tuple[str, Any]]:
    return list(given.items()) if isinstance(given, Mapping) else [(name, {}) for name in given]


def text_of(documents: list[Any]) -> str:
    return yaml.safe_dump_all([document(item) for item in documents], sort_keys=False)


def cluster(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """A Cluster document; taints are written as kubectl writes them, `key=value:Effect`."""
    spec = {key: value for key, value in given.items() if key not in ("labels", "taints")}
    if "taints" in given:
        spec["taints"] = [taint(text) for text in given["taints"]]
    return {
        "apiVersion": "cluster.karmada.io/v1alpha1",
        "kind": "Cluster",
        "metadata": {"name": name, "labels": given.get("labels", {})},
        "spec": {"syncMode": "Push", **spec},
    }


def taint(text: str) -> dict[str, str]:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def document(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """A document in full; a mapping with apiVersion or kind is one already."""
    if "apiVersion" in item or "kind" in item:
        return item
    kind = next(iter(item))
    rest = {key: value for key, value in item.items() if key != kind}
    return policy(kind, item[kind], rest) if kind in POLICY_KINDS else template(kind, item[kind], rest)


def policy(kind: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """`select`: selectors as `apps/v1/Deployment`, `apps/v1/Deployment/web`, or as mappings."""
    metadata: dict[str, Any] = {"name": name}
    if not kind.startswith("Cluster"):
        metadata["namespace"] = given.get("namespace", "demo")
    if "annotations" in given:
        metadata["annotations"] = given["annotations"]
    spec = {key: value for key, value in given.items() if key not in POLICY_FIELDS}
    selectors = given.get("select", ["apps/v1/Deployment"])
    if selectors is not None:
        spec["resourceSelectors"] = [selector(entry) for entry in selectors]
    if kind.endswith("PropagationPolicy"):
        spec["placement"] = placement(spec.get("placement", {}))
    api = given.get("api", "ack")
    return {"apiVersion": GROUPS.get(api, api), "kind": kind, "metadata": metadata, "spec": spec}


def placement(given: Mapping[str, Any]) -> dict[str, Any]:
    """`at`: names of one clusterAffinity; `groups`: clusterAffinities by name; `by`: how replicas are divided."""
    rest = {key: value for key, value in given.items() if key not in ("at", "groups", "by")}
    if "at" in given:
        rest["clusterAffinity"] = {"clusterNames": given["at"]}
    if "groups" in given:
        rest["clusterAffinities"] = [
            {"affinityName": name, "clusterNames": clusters} for name, clusters in given["groups"].items()
        ]
    by = given.get("by")
    if isinstance(by, Mapping):
        weights = [{"targetCluster": {"clusterNames": [name]}, "weight": weight} for name, weight in by.items()]
        preference = {"weightPreference": {"staticWeightList": weights}}
        rest["replicaScheduling"] = {
            "replicaSchedulingType": "Divided",
            "replicaDivisionPreference": "Weighted",
            **preference,
        }
    elif by:
        rest["replicaScheduling"] = {"dynamic": DYNAMIC, "aggregated": AGGREGATED, "duplicated": DUPLICATED}[by]
    return rest


def selector(entry: str | dict[str, Any]) -> dict[str, Any]:
    if not isinstance(entry, str):
        return entry
    parts = entry.split("/")
    versioned = 2 if parts[0] != "v1" else 1
    found = {"apiVersion": "/".join(parts[:versioned]), "kind": parts[versioned]}
    return {**found, "name": parts[versioned + 1]} if len(parts) > versioned + 1 else found


def template(kind: str, name: str, given: dict[str, Any]) -> dict[str, Any]:
    """`pod` goes into the pod spec, `container` into its only container, `requests` are that container's."""
    metadata = {"name": name, "labels": {"app": name, **given.get("labels", {})}}
    if kind not in CLUSTER_SCOPED:
        metadata["namespace"] = given.get("namespace", "demo")
    if "annotations" in given:
        metadata["annotations"] = given["annotations"]
    body: dict[str, Any] = {"apiVersion": given.get("api", API_VERSIONS[kind]), "kind": kind, "metadata": metadata}
    spec = dict(given.get("spec", {}))
    pod = {**({"restartPolicy": "Never"} if kind in ("Job", "CronJob") else {}), **pod_spec(given)}
    if kind in POD_TEMPLATES:
        if kind != "Job":
            spec["selector"] = {"matchLabels": {"app": name}}
        spec["template"] = {"metadata": {"labels": {"app": name}}, "spec": pod}
    elif kind == "CronJob":
        spec = {"schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": pod}}}, **spec}
    elif kind == "Pod":
        spec = {**pod, **spec}
    if "replicas" in given:
        spec["replicas"] = given["replicas"]
    if spec:
        body["spec"] = spec
    return {**body, **given.get("body", {})}


def pod_spec(given: Mapping[str, Any]) -> dict[str, Any]:
    container = {"name": "main", "image": given.get("image", "nginx:1.27"), **given.get("container", {})}
    requests = given.get("requests", {"cpu": "1"})
    if requests:
        container["resources"] = {"requests": requests}
    return {"containers": [container], **given.get("pod", {})}


def observations(case: Mapping[str, Any]) -> dict[str, Any] | None:
    """`free`: whole CPUs on one node of each cluster; `observed`: clusters in full; `previous`, `constraints`."""
    if not {"free", "observed", "previous", "constraints"} & set(case):
        return None
    clusters: dict[str, dict[str, Any]] = {}
    for name, cpus in case.get("free", {}).items():
        room = {"cpu": str(cpus), "memory": "1Ti", "pods": "10000"}
        clusters[name] = {"name": name, "nodes": [{"name": f"{name}-1", "allocatable": room}]}
    for name, given in case.get("observed", {}).items():
        clusters[name] = {**clusters.get(name, {"name": name}), **given}
    return {
        "version": 1,
        "clusters": list(clusters.values()),
        "bindings": [previous(name, given) for name, given in case.get("previous", {}).items()],
        "constraints": [{**given, "resource": resource(given["resource"])} for given in case.get("constraints", [])],
    }


def previous(name: str, given: Mapping[str, Any]) -> dict[str, Any]:
    targets = [{"cluster": cluster, "replicas": count} for cluster, count in given.items() if cluster != "group"]
    found = {"resource": resource(name), "placement": targets}
    return {**found, "affinityName": given["group"]} if "group" in given else found


def resource(name: str) -> dict[str, str]:
    kind, _, place = name.partition(" ")
    namespace, _, own = place.rpartition("/")
    return {"apiVersion": API_VERSIONS[kind], "kind": kind, "namespace": namespace, "name": own}
