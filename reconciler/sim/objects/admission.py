"""Changes by the API server on a write: metadata, generation, status protection, addresses, Job labels."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from reconciler.sim.objects.defaults import defaulted
from reconciler.sim.objects.kinds import Resource
from reconciler.sim.objects.normal import Fail, normal
from reconciler.sim.objects.status import Body
from reconciler.sim.objects.structural import structured

_KEPT_METADATA = ("uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds")
_EMPTY_STATUS: dict[str, Body] = {
    "DaemonSet": {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0},
    "StatefulSet": {"availableReplicas": 0, "replicas": 0},
    "ReplicaSet": {"replicas": 0},
    "HorizontalPodAutoscaler": {"currentMetrics": None, "desiredReplicas": 0},
    "PodDisruptionBudget": {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0},
}


def canonical(resource: Resource, body: Body, fail: Fail) -> Body:
    """The object in stored form: typed, pruned, defaulted."""
    if resource.is_custom:
        return structured(resource, body)
    return defaulted(normal(body, fail))


def prepared_create(resource: Resource, body: Body, *, uid: str, time: str) -> Body:
    """A new object before validation."""
    metadata = {k: v for k, v in body["metadata"].items() if k not in _KEPT_METADATA and k != "resourceVersion"}
    metadata |= {"uid": uid, "creationTimestamp": time}
    if resource.has_generation:
        metadata["generation"] = 1
    created = {**body, "metadata": metadata}
    # A Node brings its own status; everything else starts without.
    if resource.has_status and resource.kind not in ("Node", "Namespace", "PersistentVolumeClaim", "Pod", "Service"):
        created.pop("status", None)
        if not resource.is_custom:
            created["status"] = _EMPTY_STATUS.get(
                resource.kind, {"loadBalancer": {}} if resource.kind == "Ingress" else {}
            )
    if resource.kind == "Job":
        created = _job_labels(created, uid)
    if resource.kind == "DaemonSet":
        created = _template_generation(created)
    return created


def prepared_update(resource: Resource, body: Body, old: Body, *, subresource: str) -> Body:
    """A changed object before validation: the parts that this endpoint may not change are those of `old`."""
    server_set = {name: old["metadata"][name] for name in _KEPT_METADATA if name in old["metadata"]}
    metadata = {name: value for name, value in body["metadata"].items() if name not in _KEPT_METADATA} | server_set
    new = {**body, "metadata": metadata}
    if subresource == "status":
        new = {**old, "metadata": _status_metadata(new, old), "status": body.get("status") or {}}
    elif resource.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"]
    if resource.kind == "Job":
        new = _job_labels(new, metadata["uid"], old=old)
    if resource.kind == "DaemonSet":
        new = _template_generation(new, (old["metadata"].get("annotations") or {}).get(_TEMPLATE_GENERATION))
    if resource.has_generation and _is_new_generation(resource, new, old):
        new = {**new, "metadata": {**new["metadata"], "generation": old["metadata"].get("generation", 0) + 1}}
        if resource.kind == "DaemonSet" and new["spec"].get("template") != old["spec"].get("template"):
            new = _template_generation(new, str(new["metadata"]["generation"]))
    return new


def _status_metadata(body: Body, old: Body) -> Body:
    """Writing status may change annotations (the rollout revision) and finalizers, not labels."""
    metadata = dict(body["metadata"])
    metadata.pop("labels", None)
    if "labels" in old["metadata"]:
        metadata["labels"] = old["metadata"]["labels"]
    return metadata


def _is_new_generation(resource: Resource, new: Body, old: Body) -> bool:
    if resource.is_custom:
        ignored = ("metadata", "status") if resource.has_status else ("metadata",)
        return {k: v for k, v in new.items() if k not in ignored} != {k: v for k, v in old.items() if k not in ignored}
    if resource.kind == "Deployment" and new["metadata"].get("annotations") != old["metadata"].get("annotations"):
        return True
    return bool(new.get("spec") != old.get("spec"))


_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def _template_generation(body: Body, generation: str | None = "1") -> Body:
    annotations = {**(body["metadata"].get("annotations") or {}), _TEMPLATE_GENERATION: generation or "1"}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def _job_labels(body: Body, uid: str, old: Body | None = None) -> Body:
    """A Job selects its pods by its uid, and labels itself and its template so."""
    spec = body["spec"]
    if spec.get("manualSelector"):
        return body
    name = body["metadata"]["name"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    template = spec["template"]
    metadata = template.get("metadata") or {}
    template = {**template, "metadata": {**metadata, "labels": {**(metadata.get("labels") or {}), **labels}}}
    selector = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    labelled = {**body, "spec": {**spec, "template": template}}
    labelled["spec"].setdefault("selector", selector)
    if old is None:
        labelled["metadata"] = {**body["metadata"], "labels": {**labels, **(body["metadata"].get("labels") or {})}}
    return labelled


def with_addresses(body: Body, old: Body | None, others: Iterable[Body], rng: random.Random) -> Body:
    """A Service with cluster IPs and node ports: its old ones, else free ones of 10.96.0.0/16 and 30000-32767."""
    spec = dict(body["spec"])
    was = (old or {}).get("spec") or {}
    services = list(others)
    if spec["type"] == "ExternalName":
        return body
    if was.get("type") == "ExternalName":
        was = {}
    if not spec.get("clusterIP"):
        used = {service["spec"].get("clusterIP") for service in services}
        spec["clusterIP"] = was.get("clusterIP") or _free(
            lambda: f"10.96.{rng.randrange(256)}.{rng.randrange(1, 255)}", used
        )
    spec["clusterIPs"] = was.get("clusterIPs") if was.get("clusterIP") == spec["clusterIP"] else [spec["clusterIP"]]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")
    if spec["type"] in ("NodePort", "LoadBalancer") and spec.get("ports"):
        before = {(p["port"], p["protocol"]): p.get("nodePort") for p in was.get("ports") or ()}
        used_ports = {p.get("nodePort") for s in services for p in s["spec"].get("ports") or ()}
        ports = []
        for port in spec["ports"]:
            number = port.get("nodePort") or before.get((port["port"], port["protocol"]))
            number = number or _free(lambda: rng.randrange(30000, 32768), used_ports)
            used_ports.add(number)
            ports.append({**port, "nodePort": number})
        spec["ports"] = ports
    return {**body, "spec": spec}


def _free(draw: Callable[[], object], used: set[object]) -> object:
    for _ in range(100_000):
        value = draw()
        if value not in used:
            return value
    raise AssertionError("no free address is left")
