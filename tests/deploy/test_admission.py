"""API servers take the manifests: every field is known, and the pods are within the strictest of the pod standards.

Source: Kubernetes, "Pod Security Standards" (restricted) and "Server-side field validation".
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.deploy.rendered import kustomized, one, own, pod_template
from tests.real_clusters import RealCluster, wait_until

pytestmark = pytest.mark.apiserver

DURATION = {
    "type": "string",
    "pattern": "^(0|(([0-9]+)y)?(([0-9]+)w)?(([0-9]+)d)?(([0-9]+)h)?(([0-9]+)m)?(([0-9]+)s)?)$",
}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
KEY = {"type": "object", "required": ["key"], "properties": {"key": {"type": "string"}, "name": {"type": "string"}}}


def of(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties}


def listed(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


MONITOR = of(
    ["endpoints", "selector"],
    selector=of([], matchLabels=TEXTS),
    endpoints=listed(
        of([], port={"type": "string"}, path={"type": "string"}, interval=DURATION,
           authorization=of([], type={"type": "string"}, credentials=KEY))
    ),
)  # fmt: skip
RULE = of(
    [],
    groups=listed(
        of(["name"], name={"type": "string", "minLength": 1},
           rules=listed(of(["expr"], alert={"type": "string"}, expr={"x-kubernetes-int-or-string": True},
                           labels=TEXTS, annotations=TEXTS, **{"for": DURATION})))
    ),
)  # fmt: skip


def definition(kind: str, plural: str, spec: dict[str, Any]) -> dict[str, Any]:
    """Return the part of a Prometheus operator's definition that the manifests use."""
    schema = of(
        ["spec"], apiVersion={"type": "string"}, kind={"type": "string"}, metadata={"type": "object"}, spec=spec
    )
    return {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.monitoring.coreos.com"},
        "spec": {"group": "monitoring.coreos.com", "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
                 "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}]},
    }  # fmt: skip


DEFINITIONS = (
    definition("ServiceMonitor", "servicemonitors", MONITOR),
    definition("PrometheusRule", "prometheusrules", RULE),
)


class Place:
    """A kustomization of somebody's own, and its namespace in a real cluster."""

    def __init__(
        self, folder: Path, cluster: RealCluster, binaries: Path, *components: str, overlay: str = "single"
    ) -> None:
        self.cluster = cluster
        self.namespace = cluster.new_namespace("deploy")
        self.folder = own(
            folder, *components, namespace=self.namespace, overlay=overlay,
            RECONCILER_STORE="https://git.example.com/f.git",
        )  # fmt: skip
        self.objects = kustomized(binaries, self.folder)
        cluster.apply(one(self.objects, "Namespace"), one(self.objects, "ServiceAccount"))

    def pod(self, kind: str) -> dict[str, Any]:
        """A pod of a workload's template, in its namespace; a claim is a volume that is not there yet."""
        template = pod_template(one(self.objects, kind))
        spec = template["spec"]
        if kind == "StatefulSet":
            spec["volumes"].append({"name": "state", "persistentVolumeClaim": {"claimName": "state"}})
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": self.namespace}, "spec": spec}

    def dry_run(self, body: dict[str, Any]) -> str:
        return self.cluster.kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(body))


@pytest.fixture
def place(tmp_path: Path, real_cluster: RealCluster, kubernetes_binaries: Path) -> Iterator[Place]:
    found = Place(tmp_path, real_cluster, kubernetes_binaries, "in-cluster", "monitoring")
    yield found
    real_cluster.kubectl("delete", "namespace", found.namespace, "--wait=false")


@pytest.mark.parametrize("kind", ["StatefulSet", "CronJob"])
def test_the_pods_are_within_the_restricted_standard_which_the_namespace_enforces(place: Place, kind: str) -> None:
    labels = place.cluster.get("namespace", place.namespace)["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "restricted"
    pod = place.pod(kind)
    place.dry_run(pod)
    del pod["spec"]["containers"][0]["securityContext"]["capabilities"]
    with pytest.raises(AssertionError, match="violates PodSecurity"):
        place.dry_run(pod)


def test_the_server_takes_all_of_it_and_each_part_does_what_it_is_for(place: Place) -> None:
    kubectl = place.cluster.kubectl
    place.cluster.apply(*DEFINITIONS)
    try:
        for definition in DEFINITIONS:
            kubectl("wait", "--for=condition=Established", "crd", definition["metadata"]["name"], "--timeout=60s")
        taken = kubectl("apply", "--server-side", "--dry-run=server", "--validate=strict", "-k", str(place.folder))
        assert len(taken.splitlines()) == len(place.objects)
        kubectl("apply", "--server-side", "--validate=strict", "-k", str(place.folder))
        again = kubectl("diff", "--server-side", "-k", str(place.folder))
        assert again == "", "the server changes nothing of it"
    finally:
        kubectl("delete", "crd", *(definition["metadata"]["name"] for definition in DEFINITIONS))
    wait_until(lambda: _has(place, "pod", "fleet-reconciler-0"), "the controller to make a pod within the standard")
    wait_until(lambda: _has(place, "pvc", "state-fleet-reconciler-0"), "the volume of the journal to be asked for")
    job = ("create", "job", "once", "--from=cronjob/fleet-reconciler-rebuild-journal", "-n", place.namespace)
    kubectl(*job)
    wait_until(lambda: bool(_pods_of_job(place)), "the job to have a pod")
    (pod,) = _pods_of_job(place)
    claims = [volume["persistentVolumeClaim"]["claimName"] for volume in pod["spec"]["volumes"]
              if "persistentVolumeClaim" in volume]  # fmt: skip
    assert claims == ["state-fleet-reconciler-0"]


@pytest.mark.parametrize("overlay", ["single", "standby"])
def test_without_components_nothing_of_others_is_needed(
    tmp_path: Path, real_cluster: RealCluster, kubernetes_binaries: Path, overlay: str
) -> None:
    place = Place(tmp_path, real_cluster, kubernetes_binaries, overlay=overlay)
    try:
        taken = real_cluster.kubectl("apply", "--server-side", "--dry-run=server", "-k", str(place.folder))
        assert len(taken.splitlines()) == len(place.objects)
    finally:
        real_cluster.kubectl("delete", "namespace", place.namespace, "--wait=false")


def _has(place: Place, kind: str, name: str) -> bool:
    return bool(place.cluster.kubectl("get", kind, name, "-n", place.namespace, "-o", "name", "--ignore-not-found"))


def _pods_of_job(place: Place) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = place.cluster.get("pods", "-n", place.namespace, "-l", "job-name=once")["items"]
    return found
