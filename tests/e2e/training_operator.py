"""A stand-in for the training operator of Kubeflow: it makes the pods of a PyTorchJob and says what becomes of them.

It knows what the real one knows: phases of pods. That a node is lost shows in none of them.
"""

from __future__ import annotations

import json
from typing import Any

from tests.real_clusters import RealCluster

_ANY = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
_ANY_SPEC = {"spec": _ANY, "status": _ANY}

DEFINITION: dict[str, Any] = {
    "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
    "metadata": {"name": "pytorchjobs.kubeflow.org"},
    "spec": {
        "group": "kubeflow.org", "scope": "Namespaced",
        "names": {"kind": "PyTorchJob", "plural": "pytorchjobs", "singular": "pytorchjob"},
        "versions": [{"name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                      "schema": {"openAPIV3Schema": {"type": "object", "properties": _ANY_SPEC}}}],
    },
}  # fmt: skip


def training_job(workers: int, pod_spec: Any) -> dict[str, Any]:
    """A PyTorchJob of one master and some workers, without metadata."""
    template = {"metadata": {"labels": {"app": "bert"}}, "spec": pod_spec}
    specs = {"Master": {"replicas": 1, "template": template}, "Worker": {"replicas": workers, "template": template}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PyTorchJob", "spec": {"pytorchReplicaSpecs": specs}}


class TrainingOperator:
    """The operator of one namespace in one cluster."""

    def __init__(self, cluster: RealCluster, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    def reconcile(self) -> bool:
        """Make the pods that are missing and tell the phase of the set; whether there is one, and all of it runs."""
        sets = self._cluster.get("pytorchjobs", "-n", self._namespace)["items"]
        pods = {pod["metadata"]["name"]: pod for pod in self._cluster.get("pods", "-n", self._namespace)["items"]}
        return [self._reconcile(job, pods) for job in sets] == [True]

    def _reconcile(self, job: dict[str, Any], pods: dict[str, Any]) -> bool:
        wanted = [
            (f"{job['metadata']['name']}-{role.lower()}-{index}", given["template"])
            for role, given in job["spec"]["pytorchReplicaSpecs"].items()
            for index in range(given["replicas"])
        ]
        missing = [self._pod(job, name, template) for name, template in wanted if name not in pods]
        if missing:
            text = json.dumps({"apiVersion": "v1", "kind": "List", "items": missing})
            self._cluster.kubectl("create", "-f", "-", stdin=text)
        is_running = not missing and all(pods[name]["status"].get("phase") == "Running" for name, _ in wanted)
        conditions = [{"type": "Created", "status": "True"}, {"type": "Running", "status": str(is_running)}]
        if job.get("status", {}).get("conditions") != conditions:
            self._tell(job["metadata"]["name"], conditions)
        return is_running

    def _tell(self, name: str, conditions: list[dict[str, str]]) -> None:
        patch = json.dumps({"status": {"conditions": conditions}})
        try:
            self._cluster.kubectl("patch", "pytorchjob", name, "-n", self._namespace,
                                  "--subresource=status", "--type=merge", "-p", patch)  # fmt: skip
        except AssertionError as error:
            if "NotFound" not in str(error):  # It may have gone since it was read.
                raise

    def _pod(self, job: dict[str, Any], name: str, template: dict[str, Any]) -> dict[str, Any]:
        owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "controller": True,
                 "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}  # fmt: skip
        metadata = {"name": name, "namespace": self._namespace, "labels": template["metadata"]["labels"],
                    "ownerReferences": [owner]}  # fmt: skip
        return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template["spec"]}
